"""The report's page and its mail from fixtures: whose, who gets it, what was sent; names that are inert; never too long."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape

import pytest

from api import formats
from api.mail_message import report_message
from api.mail_text import COLUMNS
from api.pages import report
from api.report import report_of
from api.report_lines import command_of
from api.report_render import render_html, render_text
from api.resources.budgets import BudgetView
from api.resources.recipients import RecipientView
from api.resources.report_sum import LineSum
from api.resources.report_week import HostMoney
from api.templating import render
from core.evidence import Window
from core.finding import Action, Range, Saving, Status
from core.money import usd
from core.outbox import Channel, MessageKind, MessageState
from core.ownership import Owner
from core.settings import Settings
from core.units import DAY_MS
from core.verification import Ledger, Verdict, Verification
from store.queries.advice_life import LifeStep
from store.queries.mail import Logged
from store.queries.verifications import KeptVerification
from tests.contract import page_fixtures as good
from tests.contract.pages import money_fixtures as money
from tests.contract.report_fixtures import week_of

TEN_KB = "n" * 10_000
HEADER = "x\r\nBcc: victim@example.org"
WEEK = Window(good.NOW_MS - good.NOW_MS % DAY_MS - 7 * DAY_MS, good.NOW_MS - good.NOW_MS % DAY_MS)
RECIPIENT = RecipientView(
    id=1,
    source="kept",
    channel="mail",
    address="ann@example.org",
    team="research",
    project=None,
    audience="research",
    weekly=True,
    alerts=False,
    quiet_week="skip",
    paused_until=datetime(2026, 12, 1, tzinfo=UTC),
    note="",
    created_at=None,
    last_state="failed",
    last_at=None,
    last_problem="no such person",
)
SENT = Logged(
    id=1,
    kind=MessageKind.WEEKLY,
    period="2026-11-14/2026-11-20",
    audience=Owner("research"),
    channel=Channel.MAIL,
    shown="ann@example.org",
    recipient_id=1,
    subject="s",
    state=MessageState.REFUSED,
    attempts=1,
    created_at_ms=good.NOW_MS,
    next_try_at_ms=None,
    ended_at_ms=good.NOW_MS,
    message="no such person",
)


def budget(**changes: object) -> BudgetView:
    """As the money pages' own, by the figures that the report prints."""
    figures = {
        "amount_usd": usd(42_000),
        "spent_usd": usd(30_000),
        "breaks_on": "2026-11-28",
        "month": "2026-11",
    }
    ends = {"p10_usd": usd(41_000), "p50_usd": usd(43_000), "p90_usd": usd(45_000), "left_usd": usd(12_000)}
    return money.budget(**(figures | ends | changes))


def test_the_page_shows_the_audience_its_recipients_and_what_was_sent() -> None:
    others = replace(RECIPIENT, address="bob@example.org", team="media")
    page = report.page_of(
        good.frame(),
        Owner("research"),
        WEEK,
        Settings(),
        known=(Owner("media"), Owner("research"), Owner("research", "lab")),
        recipients=(RECIPIENT, others),
        log=(SENT, replace(SENT, audience=None, shown="head@example.org")),
    )
    html = render("pages/report.html", page)
    assert f'sandbox="{report.SANDBOX}" src="/report/preview?owner=research"' in html
    assert "allow-scripts" not in report.SANDBOX
    assert "13 Nov – 19 Nov, UTC. Goes to 1 recipient every Monday" in unescape(html)
    assert 'href="/report?owner=research&amp;project=lab"' in html
    assert "ann@example.org" in html
    assert "paused until 2026-12-01" in html
    assert "2026-11-14 to 2026-11-20" in html
    assert "refused" in html
    assert "bob@example.org" not in html
    assert "head@example.org" not in html
    assert "No mail server is set" in html


def test_without_any_data_the_page_says_how_to_begin() -> None:
    frame = replace(good.frame(), newest_ms=None)
    html = render("pages/report.html", report.page_of(frame, None, WEEK, Settings()))
    assert "No report yet" in html
    assert "<iframe" not in html
    assert "gpuwise demo" in html


def test_budgets_done_and_verified_are_in_both_parts() -> None:
    item = good.recommendation(7, Status.VERIFIED)
    made = Verification(Verdict.SAVED, "s", Ledger.CASH, Range(900.0, 1200.0, 1500.0), 1500.0)
    found = week_of(
        budgets=(budget(), budget(name="All", scope_kind="all", status="ok", breaks_on=None)),
        steps=((LifeStep(8, 1, Status.DONE, "ann"), good.recommendation(8, Status.DONE)),),
        verified=((KeptVerification(1, 7, "r", 0, 1, made), item),),
    )
    report_ = report_of(found, Settings())
    for text in (render_text(report_), unescape(re.sub(r"<[^>]+>", "", render_html(report_, {})))):
        flat = " ".join(text.replace("\xa0", " ").split())
        assert "$30,000 of $42,000 spent; $41,000–45,000 expected at the end of the month" in flat
        assert "at risk: over it about 28 Nov" in flat
        assert "saves $1,200 a month of $1,500 predicted (80 %)" in flat
        assert "Done:" in flat
    assert [line.name for line in report_.budgets] == ["All, November", "Research, November"]


def test_text_is_at_most_eighty_columns_wide_but_for_addresses_and_commands() -> None:
    text = render_text(report_of(week_of(budgets=(budget(),)), Settings()), to="ann@example.org")
    long = [
        line for line in text.splitlines() if len(line) > COLUMNS and "://" not in line and "$ " not in line
    ]
    assert long == []


@pytest.mark.parametrize("name", [good.HOSTILE, HEADER, TEN_KB, "=cmd()", "\u202eevil", "'\";--"])
def test_hostile_names_are_inert_in_every_part(name: str) -> None:
    view = good.overview(
        price_note=name,
        recommendations=(
            good.recommendation(1, title=name, because=name, actions=(Action(name, f"rm {name}"),)),
        ),
    )
    found = week_of(
        view,
        audience=Owner(name),
        hosts=(HostMoney(name, 1, LineSum()),),
        silent=(name,),
        budgets=(budget(name=name),),
    )
    message = report_message(report_of(found, Settings()), Settings(), good.NOW_MS, to="ann@example.org")
    assert message["Bcc"] is None
    assert "\n" not in str(message["Subject"])
    assert len(str(message["Subject"])) < 200
    assert len(bytes(message)) < 100_000
    html, text = (str(message.get_body((kind,)).get_content()) for kind in ("html", "plain"))  # type: ignore[union-attr]
    for part in (html, text):
        assert "\u202e" not in part
        assert "\r" not in part
    assert "<script>alert" not in html
    assert (
        "<script"
        not in render(
            "pages/report.html",
            report.page_of(good.frame(), report_of(found, Settings()).audience, WEEK, Settings()),
        )
        .split("<main")[1]
        .split("</main")[0]
    )


def test_a_big_fleet_with_long_names_stays_under_100_kb() -> None:
    name = "gpu-" + "node-with-a-very-long-name-" * 20
    recs = tuple(
        good.recommendation(
            i,
            title=f"{i} {name * 3}",
            because=name * 9,
            cause=str(i),
            actions=(Action("x", f"nvidia-smi -i {','.join(f'GPU-{j:036d}' for j in range(14))}"),),
            saving=Saving(cash_usd_month=Range(1.0, 2.0, 3.0)),
        )
        for i in range(1, 300)
    )
    found = week_of(
        good.overview(gpu_count=1000, host_count=125, recommendations=recs, open_count=len(recs)),
        hosts=tuple(HostMoney(f"{name}{i}", 8, LineSum()) for i in range(125)),
        silent=tuple(f"GPU {i} on {name}" for i in range(200)),
        budgets=tuple(budget(id=i, name=f"{name}{i}") for i in range(60)),
        steps=tuple((LifeStep(one.id, 1, Status.DONE, None), one) for one in recs),
    )
    made = report_of(found, Settings(base_url="https://" + "g" * 200 + ".example.org"))
    message = report_message(made, Settings(), good.NOW_MS, to="ann@example.org")
    assert len(bytes(message)) < 100_000
    assert len([part for part in message.walk() if part.get_content_type() == "image/png"]) == 2


def test_the_hosts_end_with_all_of_them_which_is_the_headline() -> None:
    made = report_of(week_of(), Settings())
    spent, idle = formats.money(made.overview.money.spend_usd), formats.money(made.overview.money.idle_usd)
    assert spent in made.headline
    html, text = render_html(made), render_text(made)
    (row,) = re.findall(r"<tfoot.*?</tfoot>", html, re.DOTALL)
    assert [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>.*?</td>", row)][1:] == [
        spent,
        idle,
    ]
    assert "2 more hosts are in “All”" in html
    assert re.search(rf"^All +\d+ GPUs +{re.escape(spent)}, idle {re.escape(idle)}$", text, re.MULTILINE)
    alone = report_of(week_of(hosts=(HostMoney("a", 8, LineSum()),)), Settings())
    assert "<tfoot" not in render_html(alone)


def test_a_command_comes_out_whole_or_not_at_all() -> None:
    assert command_of("kill 1\nkill 2") == "kill 1\nkill 2"
    assert command_of("x" * 5_000) is None
    assert command_of("kill \u202e1") is None
    assert command_of(None) is None


def test_the_mail_is_readable_in_the_dark_and_says_why_it_came() -> None:
    made = report_of(week_of(), Settings())
    html = render_html(made, {}, to="ann@example.org")
    assert "prefers-color-scheme" in html
    assert 'content="light dark"' in html
    assert "You get this because ann@example.org" in html
    assert '<html lang="en">' in html
    assert all(
        'role="presentation"' in table or "hosts" in table for table in re.findall(r"<table[^>]*>", html)
    )


def test_a_command_that_fills_a_mail_is_left_to_its_page() -> None:
    many = Action("x", f"nvidia-smi -i {','.join(f'GPU-{number:036d}' for number in range(8))}")
    item = good.recommendation(1, actions=(many,))
    made = report_of(week_of(good.overview(recommendations=(item,), open_count=1)), Settings())
    for text in (render_text(made), render_html(made, {})):
        assert "Its command is too long for a mail: copy it in gpuwise." in " ".join(text.split())
        assert "nvidia-smi" not in text


def test_pictures_and_their_legend_turn_dark_together() -> None:
    html = render_html(report_of(week_of(), Settings()), {"days": "cid:a", "funnel": "cid:b"})
    dark = html.split("@media screen and (prefers-color-scheme:dark", 1)[1].split("</style>", 1)[0]
    assert ".pic,.key{filter:invert(.9) hue-rotate(180deg)}" in dark.replace(", ", ",")
    assert ".pic{background" not in dark
