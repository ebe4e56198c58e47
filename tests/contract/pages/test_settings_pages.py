"""The pages of settings from fixtures: everything named, hostile words inert, what is missing said first."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from api.pages import (
    settings,
    settings_owners,
    settings_prices,
    settings_recipients,
    settings_tariffs,
    settings_tokens,
)
from api.pages.forms import FormState
from api.resources.effective_prices import EffectivePriceRow
from api.resources.exchange_rates import RateView
from api.resources.owner_claims import Claim
from api.resources.owners import view as rule_view
from api.resources.prices import ImportView
from api.resources.recipients import RecipientView
from api.resources.settings_given import Given
from api.resources.sites import SiteView, TermsView
from api.resources.tariffs import TariffView
from api.resources.unowned import UnownedRow
from api.templating import render
from core.ownership import HostFacts
from core.settings import Settings
from store.queries.mail import Logged
from store.queries.tokens import TokenRecord
from tests.contract import page_fixtures as good
from tests.contract.pages.settings_fixtures import (
    DRY,
    FACTS,
    LOGGED,
    RECIPIENT,
    RULES,
    SITE,
    TARIFF,
    TARIFF_ROW,
    TERMS,
    TOKEN,
    UNOWNED,
    effective,
    price,
    rule,
)
from tests.contract.test_pages_render import Document

HOSTILE = good.HOSTILE
LONG = HOSTILE * 300
FRAME = good.frame("settings")
SECRET = "gw_" + "s" * 43


def prices_page(*rows: EffectivePriceRow, form: FormState | None = None, **more: object) -> str:
    read = settings_prices.Read(
        rows or (effective(),),
        more.get("prices", [price()]),
        [RateView(1, "EUR", "2025-01-01", "1.08")],
        ["x", HOSTILE],  # type: ignore[arg-type]
    )
    made = settings_prices.page_of(
        FRAME,
        read,
        form=form or FormState(),
        preview=more.get("preview"),  # type: ignore[arg-type]
    )
    return render("pages/settings_prices.html", made)


def tariffs_page(row: TariffView = TARIFF_ROW, site: SiteView = SITE, terms: TermsView = TERMS) -> str:
    read = settings_tariffs.Read([row], [TARIFF], [site], [terms], [HOSTILE])
    return render("pages/settings_tariffs.html", settings_tariffs.page_of(FRAME, read))


def owners_page(read: settings_owners.Read | None = None, **more: object) -> str:
    read = read or settings_owners.Read(RULES, UNOWNED, FACTS, [HOSTILE])
    return render("pages/settings_owners.html", settings_owners.page_of(FRAME, read, **more))  # type: ignore[arg-type]


def recipients_page(
    row: RecipientView = RECIPIENT, logged: Logged = LOGGED, form: FormState | None = None
) -> str:
    read = settings_recipients.Read([row], [], [logged], ["vision", HOSTILE], [])
    made = settings_recipients.page_of(FRAME, Settings(), read, form=form or FormState())
    return render("pages/settings_recipients.html", made)


def tokens_page(row: TokenRecord = TOKEN, made: settings_tokens.Made | None = None) -> str:
    page = settings_tokens.page_of(FRAME, [row], hosts=[HOSTILE], made=made, base_url="https://gpu.example")
    return render("pages/settings_tokens.html", page)


def hub(**changes: object) -> settings.SettingsPage:
    read = settings.Read(
        [effective(), effective(stale=True, price_age_days=182)],
        [TERMS],
        RULES,
        [RECIPIENT],
        [],
        [],
        [TOKEN],
        [Given("port", "8818", "command line", "address"), Given("pue", "1.3", "default", "power")],
    )
    return settings.page_of(FRAME, replace(read, **changes))  # type: ignore[arg-type]


PAGES: dict[str, Callable[[], str]] = {
    "prices": prices_page,
    "prices with a preview": lambda: prices_page(
        preview=settings_prices.Preview(
            ImportView(1, 2, 1, [price()]), LONG, (settings_prices.price_line(price(), good.NOW_MS),), True
        )
    ),
    "hostile prices": lambda: prices_page(
        effective(model=LONG, host=LONG, price_basis=LONG),
        effective(usd_per_gpu_hour=None, why_unpriced=LONG),
        prices=[price(scope_value=LONG, note=LONG, commitment=LONG)],
        form=FormState("add", {"scope_value": LONG}, {"": LONG, "scope_value": LONG}),
    ),
    "tariffs": tariffs_page,
    "hostile tariffs": lambda: tariffs_page(
        replace(TARIFF_ROW, name=LONG, note=LONG),
        replace(SITE, name=LONG, note=LONG, tariff=LONG, scope_kind="host", scope_value=LONG),
        replace(TERMS, host=LONG, origins={"tariff": LONG}, carbon_code=LONG),
    ),
    "owners": owners_page,
    "owners tried": lambda: owners_page(dry=DRY),
    "hostile owners": lambda: owners_page(
        settings_owners.Read(
            [rule_view(rule(1, LONG, LONG, LONG), 1, good.NOW_MS)],
            [UnownedRow("pod", LONG, LONG, 1.0, None)],
            [HostFacts(LONG, LONG, LONG, LONG, (("rack", LONG),))],
        ),
        dry=replace(
            DRY,
            rule=rule_view(rule(0, LONG), 1, good.NOW_MS),
            claimed=(Claim(LONG, LONG, LONG, LONG, 1.0, None, LONG),),
        ),
    ),
    "recipients": recipients_page,
    "hostile recipients": lambda: recipients_page(
        replace(RECIPIENT, note=LONG, audience=LONG, last_problem=LONG),
        replace(LOGGED, subject=LONG, message=LONG),
        FormState("r4", {"note": LONG}, {"": LONG}),
    ),
    "tokens": tokens_page,
    "hostile tokens": lambda: tokens_page(replace(TOKEN, name=LONG, host_name=LONG)),
    "hub": lambda: render("pages/settings.html", hub()),
    "hostile hub": lambda: render(
        "pages/settings.html", hub(given=[Given("host", LONG, LONG, "x")], rules=[])
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_it_carries_nothing_inline_and_no_words_of_a_strangers_own(name: str) -> None:
    text = PAGES[name]()
    assert Document(text).inline == []
    assert "alert(1)</script>" not in text
    assert "\u202e" not in re.sub(r'value="[^"]*"', "", text), "a mark that turns text stands in fields alone"


@pytest.mark.parametrize("name", PAGES)
def test_ids_are_one_of_a_kind_and_headings_skip_no_level(name: str) -> None:
    document = Document(PAGES[name]())
    assert len(document.ids) == len(set(document.ids))
    assert document.headings[0] == "h1"
    assert document.headings.count("h1") == 1
    assert document.skips == []


@pytest.mark.parametrize("name", PAGES)
def test_every_field_has_a_label_and_every_header_a_scope(name: str) -> None:
    document = Document(PAGES[name]())
    assert (document.unlabelled, document.unscoped) == ([], 0)


@pytest.mark.parametrize("name", PAGES)
def test_every_page_of_settings_is_in_the_list_of_all_of_them(name: str) -> None:
    nav = PAGES[name]().partition('<nav class="subnav" aria-label="Settings">')[2].partition("</nav>")[0]
    assert re.findall(r'href="([^"]+)"', nav) == [
        "/settings",
        "/settings/prices",
        "/settings/tariffs",
        "/settings/owners",
        "/settings/recipients",
        "/settings/rules",
        "/settings/tokens",
    ]
    assert nav.count('aria-current="page"') == 1


def test_old_and_missing_prices_are_said_first() -> None:
    old = effective(stale=True, price_age_days=182, price_basis="catalogue: median, over 90 days old")
    none = effective(usd_per_gpu_hour=None, why_unpriced="no row", price_basis=None)
    assert (
        settings_prices.headline([old, effective()]) == "1 of 2 GPUs go by a list price that is 182 days old"
    )
    assert settings_prices.headline([none, old]) == (
        "1 of 2 GPUs have no price; 1 go by a list price that is 182 days old"
    )
    assert settings_prices.headline([effective(price_id=3)]) == "All 1 GPU go by your own prices"
    lines = settings_prices.now_lines([effective(), none, old, effective(host="node-2")])
    assert [(line.gpus, line.hosts) for line in lines] == [
        (1, "node-1"),
        (1, "node-1"),
        (2, "node-1, node-2"),
    ]


def test_a_price_says_its_upfront_its_dollars_and_how_to_end_it() -> None:
    text = prices_page()
    for words in ("2.1 EUR", "$2.50 with the upfront", "250,000 EUR upfront", "cud-7", "since 2025-01-01"):
        assert words in text
    assert 'action="/settings/prices/3/end#price-3"' in text


def test_a_tariff_by_time_of_use_is_a_grid_with_a_table() -> None:
    text = tariffs_page()
    assert "$0.118 to $0.172 a kWh by time of use" in text
    assert "Mon 07–21: $0.172 a kWh" in text
    assert "Holds at hall 1." in text.replace("<bdi>", "").replace("</bdi>", "")


def test_a_dry_run_says_hours_dollars_and_who_keeps_what() -> None:
    text = owners_page(dry=DRY)
    assert "It would book 412 GPU-h, $1,120 at today’s prices, of the last 30 days to research" in text
    assert "Earlier rules keep 8\u00a0GPU-h that it fits too" in text
    unpriced = settings_owners.dry_said(replace(DRY, claimed_usd=None))
    assert "$" not in unpriced


def test_what_nobody_owns_leads_to_a_rule_for_it() -> None:
    text = owners_page()
    assert "2 rules for 2 teams; $1,120 of the last 30 days is nobody’s" in text
    assert 'href="/settings/owners?user=bob#add"' in text
    assert "Slurm jobs of bob" in text


def test_a_message_that_did_not_arrive_is_said_first_with_its_reason() -> None:
    text = recipients_page()
    assert "the last message to 1 of them did not arrive" in text
    assert text.count("550 no such user") == 2


def test_a_token_is_shown_once_and_hides_itself_elsewhere() -> None:
    made = settings_tokens.Made(SECRET, TOKEN)
    assert tokens_page(made=made).count(SECRET) == 1
    assert SECRET not in tokens_page()
    assert SECRET not in repr(made)


def test_the_hub_says_what_is_missing() -> None:
    assert hub().headline == "1 of 2 GPUs go by an old list price"
    bare = hub(prices=[effective()], terms=[replace(TERMS, usd_per_kwh=None)], rules=[], recipients=[])
    assert bare.headline == "Electricity has no price; no rule says whose GPU time is; nobody gets mail"
    assert hub(prices=[effective()]).headline == "Prices, tariffs, owners and recipients are set"
