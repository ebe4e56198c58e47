"""Pages of money and energy render from fixtures: groups over time, parts of a cost, budgets with their forms."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from api import formats
from api.pages import budgets, cost_parts, costs, energy
from api.pages.breakdown_links import choices_of
from api.pages.breakdown_rows import rows_of
from api.pages.filters import filter_bar
from api.pages.forms import FormState
from api.pages.frame import Frame
from api.pages.view import Address
from api.resources.budgets import BudgetStanding, FormerMonth
from api.resources.by import By
from api.resources.cost_parts import CostParts, EnergyPart, PricePart
from api.resources.costs import row_of
from api.resources.energy_bands import Band, Bands
from api.templating import render
from ledger.budgets import Outlook
from ledger.forecast import Range
from store.queries.idle_energy import IdleEnergy
from tests.contract import page_fixtures as good
from tests.contract.pages import money_fixtures as money

MANY = [f"team {n}" for n in range(12)]


def costs_page(frame: Frame, *labels: str, by: By = By.OWNER, address: str = "/costs") -> costs.CostsPage:
    found = money.breakdown(*labels, by=by)
    where = Address(address)
    return costs.page_of(
        frame,
        found,
        view_address=where,
        choices=choices_of(where, found.asked, good.WINDOW),
        filters=filter_bar(where, {"host": ["h1"]}),
        closed=["2025-11"],
        files={"csv": "/a.csv", "csv_time": "/b.csv", "focus": "/c.csv"},
    )


def energy_page(frame: Frame, *labels: str) -> energy.EnergyPage:
    found = money.breakdown(*labels)
    where = Address("/energy")
    return energy.page_of(
        frame,
        found,
        address=where,
        choices={**choices_of(where, found.asked, good.WINDOW), "idle": ()},
        filters=filter_bar(where, {}),
        idle=IdleEnergy(3.6e6, 7.2e6, 3600.0, 3600.0),
    )


PRICE = PricePart(
    kind="workload",
    price_basis=money.RATE.basis,
    billing="reserved",
    price_id=7,
    price_scope="model H100",
    valid_from_ms=good.WINDOW.from_ms,
    valid_to_ms=None,
    usd_per_gpu_hour=Decimal(2),
    gpu_h=30.0,
    cost_usd=Decimal("60.000001"),
    idle_cost_usd=Decimal(15),
    first_day="2025-11-17",
    last_day="2025-11-19",
)
ENERGY = EnergyPart(
    "hall 1", "flat", 15.0, 0.3, "setting", 1.25, 24.4, Decimal("2.9"), Decimal(0), False, 9750.0, "WLD"
)


def parts_page(frame: Frame, label: str = "research") -> cost_parts.CostPartsPage:
    row = replace(row_of(("research",), (By.OWNER,), money.lines(label, 30)), cost_usd=Decimal("61.000001"))
    found = CostParts(
        row, (PRICE,), (replace(PRICE, cost_usd=Decimal(1), price_scope=None),), (ENERGY,), Decimal(0), 2.0
    )
    where = Address("/costs/parts", (("by", "owner"), ("key", label)))
    return cost_parts.page_of(
        frame, found, by_name="team", address=where, filters=filter_bar(where, {}), subject_href="/owners/x"
    )


VIEW = money.budget()
OUTLOOK = Outlook(
    Decimal(700),
    Range(Decimal(950), Decimal(1100), Decimal(1200)),
    date(2025, 11, 20),
    tuple(Range(Decimal(700 + 20 * n), Decimal(700 + 36 * n), Decimal(700 + 45 * n)) for n in range(1, 12)),
    tuple((date(2025, 11, n), Decimal(35 * n)) for n in range(1, 21)),
    11,
    False,
    40,
    {},
    None,
)
STANDING = BudgetStanding(
    VIEW, OUTLOOK, date(2025, 12, 1), (FormerMonth("2025-10", Decimal(1100), Decimal(1000)),)
)


def budgets_page(frame: Frame, *standings: BudgetStanding, form: FormState | None = None) -> str:
    return render(
        "pages/budgets.html",
        budgets.page_of(frame, standings, month="2025-11", known=["research"], form=form),
    )


PAGES: dict[str, Callable[[Frame], str]] = {
    "costs": lambda f: render("pages/costs.html", costs_page(f, *MANY)),
    "costs, nothing": lambda f: render("pages/costs.html", costs_page(f)),
    "parts": lambda f: render("pages/cost_parts.html", parts_page(f), exact=cost_parts.exact),
    "energy": lambda f: render("pages/energy.html", energy_page(f, *MANY)),
    "energy, nothing": lambda f: render("pages/energy.html", energy_page(f)),
    "budgets": lambda f: budgets_page(f, STANDING),
    "budgets, none": budgets_page,
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_money_has_one_heading_first_and_no_inline_code(name: str) -> None:
    html = PAGES[name](good.frame())
    assert html.count("<h1") == 1
    assert not re.search(r"<style|\sstyle=|<script(?![^>]*\ssrc=)", html)
    assert html.index("<h1") < html.index("<h2")


@pytest.mark.parametrize("name", ["costs, nothing", "energy, nothing"])
def test_an_empty_page_of_money_says_what_to_do_next(name: str) -> None:
    html = PAGES[name](good.frame(newest_ms=None, coverage_ratio=None))
    assert "gpuwise agent" in html
    assert "gpuwise import" in html


def test_twelve_groups_are_seven_layers_and_the_others_as_one() -> None:
    page = costs_page(good.frame(), *MANY)
    assert [layer.name for layer in page.legend] == [*MANY[:7], "others"]
    assert sum(layer.total or 0 for layer in page.legend) == page.whole.cost_usd
    assert len(page.lines) == 12


def last_rows(html: str) -> list[list[str]]:
    """The cells of each table's last row, as text."""
    return [
        [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd][^>]*>.*?</t[hd]>", row)]
        for row in re.findall(r"<tfoot>(.*?)</tfoot>", html, re.DOTALL)
    ]


def test_the_last_row_of_the_costs_is_all_of_them_shown_or_not() -> None:
    page = costs_page(good.frame(), *(f"team {n}" for n in range(60)), "nobody")
    assert len(page.lines) == 50
    whole = formats.money(page.whole.cost_usd)
    over_time, by_group, used = last_rows(render("pages/costs.html", page))
    assert over_time[:2] == ["All", whole]
    assert over_time[2:] == [formats.money(layer.total) for layer in page.legend]
    assert by_group[:4] == ["All", "", whole, "100\u00a0%"]
    assert by_group[5] == formats.money(page.whole.idle_cost_usd)
    assert used[:2] == ["All", whole]


def test_the_last_row_of_the_energy_is_the_headline_s() -> None:
    page = energy_page(good.frame(), *MANY)
    over_time, by_group = last_rows(render("pages/energy.html", page))
    drew, at_site = formats.kwh(page.whole.energy_kwh), formats.kwh(page.cost.site_energy_kwh)
    assert over_time[:3] == ["All", drew, at_site]
    assert by_group[2:4] == [drew, "100\u00a0%"]
    assert by_group[5] == at_site
    assert by_group[6] == formats.watts(page.whole.mean_power_w), "a mean is no sum"
    assert drew in page.headline


def test_energy_by_place_and_by_price_ends_with_all_of_it() -> None:
    dear = Band("tou", Decimal("0.2"), 100.0, 20.0, 10, 0.25)
    bands = Bands(good.WINDOW, True, (dear, Band(None, None, 300.0, None, 10, 0.75)))
    page = replace(energy_page(good.frame(), "nobody"), bands=bands, places=(ENERGY, ENERGY))
    by_price, by_place = last_rows(render("pages/energy.html", page))[-2:]
    assert by_price == ["All", "", "400\u00a0kWh", "100\u00a0%", "", "$20.00"]
    assert by_place[4] == formats.kwh(page.cost.site_energy_kwh)
    parts = parts_page(good.frame())
    parts = replace(parts, parts=replace(parts.parts, energy=(ENERGY, ENERGY)))
    row = last_rows(render("pages/cost_parts.html", parts, exact=cost_parts.exact))[-1]
    assert row[1] == "30\u00a0kWh"
    assert row[6] == cost_parts.exact(parts.parts.row.energy_cost_usd)


def test_one_group_alone_has_no_last_row() -> None:
    assert len(last_rows(render("pages/costs.html", costs_page(good.frame(), "nobody")))) == 2, "of the days"


def test_each_figure_of_the_costs_opens_to_its_parts() -> None:
    html = PAGES["costs"](good.frame())
    assert 'href="/costs/parts?by=owner&amp;key=key+0"' in html
    assert 'href="/costs/parts?by=owner&amp;nobody=1"' in html
    assert (
        "since=2025-11-18T00%3A00%3A00Z&amp;until=2025-11-19T00%3A00%3A00Z&amp;by=owner&amp;key=key+0" in html
    )


def test_the_title_of_the_stack_says_what_it_shows() -> None:
    page = costs_page(good.frame(), "research", "media", "nobody")
    assert page.title == "research is 50 % of the cost"


def test_a_closed_month_is_marked_on_its_days() -> None:
    assert PAGES["costs"](good.frame()).count('<span class="closed">closed</span>') == 3


def test_costs_sort_by_their_headers() -> None:
    page = costs.page_of(
        good.frame(),
        money.breakdown("b", "a", "nobody"),
        view_address=Address("/costs", (("sort", "name"),)),
        choices=choices_of(Address("/costs"), money.breakdown("b", "a").asked, good.WINDOW),
        filters=filter_bar(Address("/costs"), {}),
    )
    assert [line.row.label for line in page.lines] == ["a", "b", "nobody"]
    assert page.sort["name"].order == "ascending"


def test_without_a_price_there_is_no_cost_and_no_chart() -> None:
    found = money.breakdown("a", "b", rate=None)
    page = costs.page_of(
        good.frame(),
        found,
        view_address=Address("/costs"),
        choices=choices_of(Address("/costs"), found.asked, good.WINDOW),
        filters=filter_bar(Address("/costs"), {}),
    )
    assert page.chart is None
    assert page.headline == "No price is known for these GPUs"
    assert "$0" not in render("pages/costs.html", page)


def test_parts_print_the_figure_to_the_micro_dollar_and_say_that_they_add_up() -> None:
    html = PAGES["parts"](good.frame())
    assert html.count("$61.000001") == 2, "the figure, and the sum of its parts"
    assert "adds up to the figure" in html
    assert "price 7 for model H100, from 2025-10-21" in html
    assert "price 7, removed since" in html
    assert "2 GPU-hours more have no price" in html


def test_parts_that_do_not_add_up_say_so() -> None:
    found = parts_page(good.frame())
    wrong = replace(found.parts, row=replace(found.parts.row, cost_usd=Decimal(62)))
    page = cost_parts.page_of(
        good.frame(),
        wrong,
        by_name="team",
        address=Address("/costs/parts"),
        filters=filter_bar(Address("/x"), {}),
    )
    assert not page.adds_up


def test_energy_says_what_empty_and_parked_gpus_drew() -> None:
    html = PAGES["energy"](good.frame())
    assert "empty 1\xa0kWh, parked 2\xa0kWh" in html
    assert "<strong>3\xa0kWh</strong>" in html


def test_a_budget_says_its_state_and_the_day_it_is_crossed() -> None:
    html = PAGES["budgets"](good.frame())
    assert "Expected to end at $1,100 of $1,000, crossing it on 27 November." in html
    assert "<strong>At risk</strong>" in html
    assert "$100 above $1,000" in html, "October"
    assert 'class="forecast"' in html


def test_a_refused_form_keeps_what_was_typed_beside_what_is_wrong() -> None:
    form = FormState(
        "add", {"name": "Vision", "amount_usd": "lots"}, {"amount_usd": "amount_usd is 'lots': give a number"}
    )
    html = budgets_page(good.frame(), form=form)
    assert 'value="Vision"' in html
    field = html[html.index('value="lots"') :].split("</label>")[0]
    assert 'aria-invalid="true"' in field
    assert "give a number" in field


@pytest.mark.parametrize(
    "html",
    [
        lambda: render("pages/costs.html", costs_page(good.frame(), good.HOSTILE, "b")),
        lambda: render(
            "pages/cost_parts.html", parts_page(good.frame(), good.HOSTILE), exact=cost_parts.exact
        ),
        lambda: render("pages/energy.html", energy_page(good.frame(), good.HOSTILE, "b")),
        lambda: budgets_page(good.frame(), replace(STANDING, view=replace(VIEW, name=good.HOSTILE))),
        lambda: budgets_page(good.frame(), form=FormState("add", {}, {"": good.HOSTILE})),
    ],
    ids=["costs", "parts", "energy", "budgets", "a refused form"],
)
def test_hostile_names_are_inert_on_pages_of_money(html: Callable[[], str]) -> None:
    text = html()
    assert "<script>alert" not in text
    assert "\u202e" not in text


def test_runs_of_one_program_are_one_line_of_costs() -> None:
    runs = {(f"pid:{i}",): money.lines("train.py", 10) for i in range(3)} | {
        ("x",): money.lines("dear.py", 5)
    }
    rows = rows_of(runs, costs.spend)
    assert [(row.label, row.count, row.lines.label) for row in rows] == [
        ("train.py", 3, "train.py"),
        ("dear.py", 1, "dear.py"),
    ]
    assert rows[0].lines.spend_usd == Decimal(60)
    assert rows[0].parameters()["label"] == "train.py"


@pytest.mark.parametrize(("by", "words"), [(By.ENGINE, "2 engines"), (By.WORKLOAD, "2 runs")])
def test_groups_that_people_cannot_tell_apart_are_counted_as_what_they_are(by: By, words: str) -> None:
    page = costs_page(good.frame("costs"), "Qwen3", "Qwen3", "Mistral", "nobody", by=by)
    assert words in render("pages/costs.html", page=page)


def test_an_unknown_cost_is_not_made_known_by_adding() -> None:
    (row,) = rows_of({(f"pid:{i}",): money.lines("train.py", 10, rate=None) for i in range(2)}, costs.spend)
    assert row.lines.spend_usd is None
