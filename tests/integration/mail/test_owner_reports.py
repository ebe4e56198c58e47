"""A weekly report per owner: its own money and advice, nothing of anybody else; told once; both databases."""

import json
import re
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from email.message import EmailMessage
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from api.app import create_app
from api.mail_message import report_message
from api.mailing import send_weekly
from api.report import weekly
from api.report_model import WeeklyReport
from api.resources.weekly_reports import as_json
from core.activity import Activity
from core.finding import Action, Advice, Finding, Range, Saving, Subject, Totals
from core.ownership import Owner, OwnerConditions, OwnerRule
from core.readings import GpuIdentity, WorkloadKey
from core.samples import ProcessSample
from core.units import DAY_MS, HOUR_MS
from gpuwise.commands.report import report as command
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import owners, prices, recommendations, report_told
from store.rollup import roll_up
from tests.contract import page_fixtures as good
from tests.integration.api.fleet_for_tests import GIB, H100, SPAN, T0, sample, settings_for
from tests.integration.mail.smtp_for_tests import Inbox, settings_at, smtp_server

NOW: Final = T0 + 25 * HOUR_MS
RED, BLUE = Owner("red"), Owner("blue", "deep")
ALICE: Final = WorkloadKey("process", "11:1", "alpha-train.py", user="alice", host="node-a")
ALICE_SHARED: Final = replace(ALICE, key="12:1", host="node-s")
BOB: Final = WorkloadKey("process", "21:1", "bravo-train.py", user="bob", host="node-b")
BOB_SHARED: Final = replace(BOB, key="22:1", host="node-s")
HELD: Final = (("GPU-aaa", ALICE, 0, 144), ("GPU-bbb", BOB, 0, 131), ("GPU-sss", ALICE_SHARED, 0, 100))
"""A card of red, one of blue (for less time, so that no figure is another's by chance), and one that red holds for 100 of 144 slots and blue for the rest."""


def finding(name: str, gpu_uuids: tuple[str, ...], usd_month: float, **changes: object) -> Finding:
    base = good.finding(
        subject=Subject("gpu", gpu_uuids[0], name),
        cause=name,
        title=f"Stop {name}",
        because=f"It idles, at ${usd_month:,.0f} a month.",
        actions=(Action("Stop it.", f"systemctl stop {name}"),),
        saving=Saving(cash_usd_month=Range(usd_month * 0.9, usd_month, usd_month * 1.1)),
        gpu_uuids=gpu_uuids,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


FINDINGS: Final = (
    finding("red-own", ("GPU-aaa",), 1111.0),
    finding("blue-own", ("GPU-bbb",), 2222.0, because="bravo-train.py of bob holds node-b."),
    finding("of-both", ("GPU-sss",), 3333.0, because="bravo-train.py and alpha-train.py take turns, 3,333."),
    finding(
        "fleet-wide", ("GPU-aaa", "GPU-bbb", "GPU-sss"), 4444.0, subject=Subject("fleet", "fleet", "all")
    ),
    finding("peers", ("GPU-aaa",), 555.0, because="Slower than its peers on node-b, which make 5,555."),
)


@pytest.fixture
def engine(ready_database: str) -> Engine:
    with closing(open_connection(ready_database)) as connection:
        ingest = Ingest(connection)
        ingest.gpus(
            [
                GpuIdentity("GPU-aaa", "node-a", 0, H100, 80 * GIB),
                GpuIdentity("GPU-bbb", "node-b", 0, H100, 80 * GIB),
                GpuIdentity("GPU-sss", "node-s", 0, H100, 80 * GIB),
            ]
        )
        held = [*HELD, ("GPU-sss", BOB_SHARED, 100, 144)]
        for uuid, workload, first, last in held:
            slots = range(first, last)
            ingest.gpu_samples(
                [
                    sample(
                        uuid,
                        slot,
                        Activity.PARKED if slot % 3 == 0 else Activity.BUSY,
                        300.0,
                        busy_ratio=0.5,
                        memory_used_bytes=9.0 * GIB,
                        process_count=1.0,
                    )
                    for slot in slots
                ]
            )
            ingest.process_samples(
                [ProcessSample(uuid, T0 + slot * SPAN, SPAN, workload, 9.0 * GIB, None, 1) for slot in slots]
            )
        ingest.commit()
    made = make_engine(ready_database)
    assert roll_up(made, now_ms=NOW).pending_left == 0
    with session_scope(made) as session:
        owners.insert(session, OwnerRule(0, RED, OwnerConditions(user="alice")))
        owners.insert(session, OwnerRule(0, BLUE, OwnerConditions(user="bob")))
        prices.add(
            session,
            scope_kind="model",
            scope_value=H100,
            usd_per_gpu_hour=Decimal("2.00"),
            billing="on_demand",
            gpus_per_unit=1,
            valid_from_ms=0,
            valid_to_ms=None,
            note="",
        )
        recommendations.record(session, Advice(FINDINGS, (), Totals(None, None, None, None)), NOW)
    return made


def report_for(engine: Engine, audience: Owner | None, now_ms: int = NOW) -> WeeklyReport:
    with session_scope(engine) as session:
        return weekly(session, settings_for(str(engine.url)), now_ms, audience)


def keep(session: Session, report: WeeklyReport) -> None:
    """A mail with this report arrived."""
    report_told.put(session, report.audience, report.period, report.told, NOW)


def everything(report: WeeklyReport) -> str:
    """All that a mail program, a search in its source or a reader of JSON can find, pictures as they were drawn."""
    message = report_message(report, settings_for("sqlite:///x"), NOW, to="reader@example.org")
    assert isinstance(message, EmailMessage)
    parts = [str(part.get_content()) for part in message.walk() if part.get_content_maintype() == "text"]
    charts = [str(chart.svg) + chart.alt + chart.title for chart in report.charts]
    return "\n".join([str(message["Subject"]), *parts, *charts, json.dumps(as_json(report))])


def figures(report: WeeklyReport) -> set[str]:
    """Money that the report states of its audience."""
    found = re.findall(
        r"\$[\d,]+(?:\.\d+)?", " ".join([report.headline, *(tile.figure for tile in report.tiles)])
    )
    return {one for one in found if one != "$0"}


@pytest.mark.parametrize(
    ("mine", "other", "names"),
    [
        (RED, BLUE, ("blue", "deep", "bob", "bravo", "node-b", "GPU-bbb", "fleet-wide", "of-both")),
        (BLUE, RED, ("alice", "alpha", "node-a", "GPU-aaa", "fleet-wide", "of-both", "peers")),
        (Owner("blue"), RED, ("alice", "alpha", "node-a", "GPU-aaa", "fleet-wide", "of-both", "peers")),
    ],
)
def test_no_figure_and_no_name_of_another_owner_is_in_an_owners_mail(
    engine: Engine, mine: Owner, other: Owner, names: tuple[str, ...]
) -> None:
    told = everything(report_for(engine, mine))
    for name in names:
        assert name not in told, name
    strangers = figures(report_for(engine, other)) | figures(report_for(engine, None))
    for figure in strangers - figures(report_for(engine, mine)):
        assert figure not in told, figure
    for number in ("3,333", "4,444", "5,555"):
        assert number not in told, number
    assert ("2,222" in told) == (mine.team == "blue")
    assert ("1,111" in told) == (mine.team == "red")


def test_an_owner_pays_for_what_its_workloads_held(engine: Engine) -> None:
    red, blue, fleet = (report_for(engine, one).overview.money.spend_usd for one in (RED, BLUE, None))
    assert red == pytest.approx(Decimal("81.333333"), abs=Decimal("0.00001"))
    assert blue is not None
    assert fleet is not None
    assert red + blue == pytest.approx(fleet, abs=Decimal("0.00001"))


def test_the_larger_user_of_a_shared_card_is_told_its_part_in_the_rules_words(engine: Engine) -> None:
    rows = {row.title: row for row in report_for(engine, RED).recommendations}
    (veiled,) = [row for title, row in rows.items() if title.endswith("GPU 0 on node-s")]
    assert veiled.sum == "$2,315 / month"
    assert veiled.command is None
    assert "your part" in veiled.sum_note
    assert not any("node-s" in row.title for row in report_for(engine, BLUE).recommendations)


def test_what_an_owner_could_save_is_never_more_than_it_spends(engine: Engine) -> None:
    for one in (RED, BLUE):
        totals = report_for(engine, one).overview.totals
        assert totals is not None
        assert totals.cash_usd_month is not None
        assert totals.spend_usd_month is not None
        assert totals.cash_usd_month.p90 <= totals.spend_usd_month + 0.01


def test_what_was_told_is_not_told_again_as_new(engine: Engine) -> None:
    first = report_for(engine, RED)
    assert len(first.recommendations) == 3
    with session_scope(engine) as session:
        keep(session, first)
        keep(session, first)
    assert report_for(engine, RED).recommendations == first.recommendations, (
        "the same week stays as it was sent"
    )
    with session_scope(engine) as session:
        later = replace(first, period="2026-09-01/2026-09-07")
        keep(session, later)
    again = report_for(engine, RED)
    assert again.recommendations == ()
    assert again.still_open.startswith("Still open: 3 actions that earlier reports told, together $")
    assert report_for(engine, BLUE).still_open == "", "each audience for itself"


def test_an_action_that_grew_by_a_quarter_is_news(engine: Engine) -> None:
    told = report_for(engine, RED)
    small = [replace(one, figure=(one.figure or 0.0) / 1.3) for one in told.told[:1]]
    same = [replace(one, figure=(one.figure or 0.0) / 1.2) for one in told.told[1:]]
    with session_scope(engine) as session:
        keep(session, replace(told, period="2026-09-01/2026-09-07", told=(*small, *same)))
    again = report_for(engine, RED)
    (row,) = again.recommendations
    assert "grew since it was told" in again.grown[row.id]
    assert again.still_open.startswith("Still open: 2 actions")


def test_an_owner_without_gpu_time_has_no_news(engine: Engine) -> None:
    with session_scope(engine) as session:
        owners.insert(session, OwnerRule(0, Owner("green"), OwnerConditions(user="nobody")))
    report = report_for(engine, Owner("green"))
    assert not report.has_data
    assert not report.has_news
    assert "Nothing that green pays for" in everything(report)


def browser(engine: Engine, url: str) -> TestClient:
    app = create_app(settings_for(url))
    app.state.clock = lambda: NOW
    return TestClient(app, base_url="http://127.0.0.1:8787")


def test_rest_and_pages_answer_for_an_owner(engine: Engine, ready_database: str) -> None:
    client = browser(engine, ready_database)
    body = client.get("/api/v1/reports/weekly", params={"owner": "blue", "project": "deep"}).json()
    assert (body["owner"], body["project"]) == ("blue", "deep")
    assert body["overview"]["recommendations"] == []
    assert [one["title"] for one in body["actions"]] == ["Stop blue-own"]
    text = client.get("/api/v1/reports/weekly", params={"owner": "red", "format": "text"})
    assert text.text.startswith("gpuwise weekly report, red")
    preview = client.get("/report/preview", params={"owner": "red"})
    policy = preview.headers["content-security-policy"]
    assert "frame-ancestors 'self'" in policy
    assert policy.endswith("; sandbox allow-popups allow-popups-to-escape-sandbox")
    assert '<base target="_blank">' in preview.text
    assert "<base" not in everything(report_for(engine, RED))
    assert "bob" not in preview.text
    page = client.get("/report", params={"owner": "red"})
    assert 'src="/report/preview?owner=red"' in page.text
    assert "frame-src 'self'" in page.headers["content-security-policy"]
    assert client.get("/report", params={"owner": "grey"}).status_code == 404
    assert client.get("/api/v1/reports/weekly", params={"owner": "grey"}).status_code == 404


def test_the_command_writes_a_file_for_everybody(engine: Engine, ready_database: str, tmp_path: Path) -> None:
    run = CliRunner().invoke
    out = tmp_path / "week"
    answer = run(command, ["weekly", "--all", "--out", str(out), "--database-url", ready_database])
    assert answer.exit_code == 0, answer.output
    names = sorted(path.name for path in out.iterdir())
    assert names[:2] == ["fleet.html", "owner-blue-deep-" + names[1][-11:]]
    assert len(names) == 4
    body = json.loads(
        run(command, ["weekly", "--owner", "blue / deep", "--json", "--database-url", ready_database]).stdout
    )
    assert body["project"] == "deep"
    assert "--owner, --fleet and --all" in str(
        run(command, ["weekly", "--owner", "x", "--all", "--database-url", ready_database]).exception
    )


def test_what_goes_out_is_remembered_and_what_is_looked_at_is_not(
    engine: Engine, ready_database: str
) -> None:
    report_for(engine, None)
    with session_scope(engine) as session:
        assert report_told.before(session, None, "9999") == {}
    with smtp_server(Inbox()) as port:
        settings = replace(
            settings_at(port, report_recipients=("head@example.org",)), database_url=ready_database
        )
        assert "1 sent" in send_weekly(engine, settings, NOW, only=[None])
        assert send_weekly(engine, settings, NOW, only=[RED]).startswith("dry run")
    with session_scope(engine) as session:
        assert len(report_told.before(session, None, "9999")) == 3
        assert report_told.before(session, RED, "9999") == {}


def test_a_day_more_does_not_change_whose_it_is(engine: Engine) -> None:
    assert report_for(engine, RED, NOW + DAY_MS).period == report_for(engine, RED).period
