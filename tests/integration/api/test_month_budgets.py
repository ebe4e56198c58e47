"""Budgets and forecasts over REST and on the command line, on both databases: read from stored days and on the fly."""

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
from fleet_for_tests import settings_for
from server_for_tests import serving
from sqlalchemy import text
from starlette.testclient import TestClient

from api.app import create_app
from api.resources.ledger_days import materialise
from core.activity import Activity
from core.ownership import HostFacts, Owner, OwnerConditions, OwnerRule
from core.readings import GpuIdentity, WorkloadKey
from core.samples import GpuSample, ProcessSample
from gpuwise.commands import budgets as command
from gpuwise.commands import kept
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import host_facts, ledger_pending, owners, prices
from store.rollup import roll_up

DAY, HOUR = 86_400_000, 3_600_000
OCT = 1_790_812_800_000  # 2026-10-01T00:00:00Z
FIRST, UNTIL = OCT - 30 * DAY, OCT + 4 * DAY + DAY // 2
NOW = UNTIL + 5_000
ANN = WorkloadKey("process", "1:1", "train.py", user="ann", host="h1")


def fill(url: str) -> None:
    """GPU-a on h1, held by ann, GPU-b on h2, empty: a dollar an hour each, 34 days and a half."""
    slots = range(FIRST, UNTIL, HOUR)
    held = {"memory_used_bytes": 1e9, "process_count": 1.0}
    with closing(open_connection(url)) as connection:
        sink = Ingest(connection)
        sink.gpus(
            [GpuIdentity(f"GPU-{name}", host, 0, "H", 80 << 30) for name, host in (("a", "h1"), ("b", "h2"))]
        )
        sink.gpu_samples(
            GpuSample(f"GPU-{name}", at, HOUR, HOUR, values, None, activity)
            for name, activity, values in (
                ("a", Activity.BUSY, {"busy_ratio": 1.0, **held}),
                ("b", Activity.EMPTY, {"busy_ratio": 0.0}),
            )
            for at in slots
        )
        sink.process_samples([ProcessSample("GPU-a", at, HOUR, ANN, 1e9, None, 1) for at in slots])
        sink.commit()
    roll_up(make_engine(url), now_ms=NOW)
    with session_scope(make_engine(url)) as session:
        prices.add(
            session,
            scope_kind="all",
            scope_value="",
            usd_per_gpu_hour=Decimal(1),
            billing="on_demand",
            gpus_per_unit=1,
            valid_from_ms=0,
            valid_to_ms=None,
            note="",
        )
        host_facts.write(session, HostFacts("h1", cluster="eu", labels=(("rack", "7"),)))
        owners.insert(session, OwnerRule(0, Owner("vision", "train", "47"), OwnerConditions(user="ann")))


@pytest.fixture
def web(ready_database: str) -> Iterator[TestClient]:
    """The application; the clock stands in the middle of 5 October."""
    fill(ready_database)
    app = create_app(settings_for(ready_database))
    app.state.clock = lambda: NOW
    with TestClient(app, base_url="http://127.0.0.1:8787") as client:
        yield client


@pytest.fixture
def empty(ready_database: str) -> TestClient:
    """The application over an empty database."""
    app = create_app(settings_for(ready_database))
    app.state.clock = lambda: NOW
    return TestClient(app, base_url="http://127.0.0.1:8787")


def items(client: TestClient, path: str) -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["items"]
    return rows


def post(client: TestClient, **body: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/budgets", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def forecasts(client: TestClient, by: str, query: str = "") -> dict[str | None, tuple[str, str, str, str]]:
    return {
        row["key"]: (row["spent_usd"], row["p10_usd"], row["p50_usd"], row["p90_usd"])
        for row in items(client, f"forecast?by={by}{query}")
    }


ONE, TWO = ("108.00", "744.00", "744.00", "744.00"), ("216.00", "1488.00", "1488.00", "1488.00")


def test_each_part_of_the_fleet_is_carried_on_however_its_days_are_read(web: TestClient) -> None:
    engine = web.app.state.engine  # type: ignore[attr-defined]
    wanted = {
        "all": {"all": TWO},
        "owner": {"vision": ONE, None: ONE},
        "project": {"train": ONE, None: ONE},
        "cost_centre": {"47": ONE, None: ONE},
        "cluster": {"eu": ONE, None: ONE},
        "host": {"h1": ONE, "h2": ONE},
    }
    assert {by: forecasts(web, by) for by in wanted} == wanted
    materialise(engine, web.app.state.settings, NOW)  # type: ignore[attr-defined]
    assert {by: forecasts(web, by) for by in wanted} == wanted
    with session_scope(engine) as session:
        ledger_pending.mark(session, OCT - 3 * DAY, OCT + 2 * DAY, ["GPU-a"])
    assert {by: forecasts(web, by) for by in wanted} == wanted
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM ledger_pending")).scalar_one() > 0


def test_a_forecast_says_what_it_rests_on(web: TestClient) -> None:
    (row,) = items(web, "forecast?by=all")
    assert (row["history_days"], row["left_out_days"], row["why"], row["is_over"]) == (34, {}, None, False)
    assert row["data_until"] == "2026-10-05T12:00:00.000Z"
    (past,) = items(web, "forecast?by=all&month=2026-09")
    assert (past["p10_usd"], past["p90_usd"], past["is_over"]) == ("1440.00", "1440.00", True)
    (later,) = items(web, "forecast?by=all&month=2026-11")
    assert (later["spent_usd"], later["p50_usd"]) == (None, None)
    assert later["why"] == "data end on 2026-10-04, before the month begins"
    assert items(web, "forecast?by=all&month=2026-01")[0]["why"] == "no data reach into it"


def test_budgets_say_how_the_month_goes(web: TestClient) -> None:
    post(web, name="whole fleet", amount_usd="1500")
    post(web, name="vision", scope_kind="team", scope_value="vision", amount_usd=500, note="agreed in May")
    post(web, name="rack", scope_kind="label", scope_value="rack=7", amount_usd="100.00")
    found = {row["name"]: row for row in items(web, "budgets")}
    assert list(found) == ["whole fleet", "vision", "rack"]
    assert {name: row["status"] for name, row in found.items()} == {
        "whole fleet": "ok",
        "vision": "at_risk",
        "rack": "over",
    }
    vision = found["vision"]
    assert (vision["breaks_on"], vision["breaks_earliest"], vision["breaks_latest"]) == ("2026-10-21",) * 3
    assert (vision["spent_usd"], vision["left_usd"], vision["left_usd_per_day"]) == (
        "108.00",
        "392.00",
        "14.51",
    )
    assert (vision["days_left"], vision["spent_ratio"], vision["note"]) == (27, 0.216, "agreed in May")
    assert (found["rack"]["breaks_on"], found["rack"]["left_usd"]) == ("2026-10-05", "-8.00")
    assert items(web, "budgets?month=2026-09") == []
    csv = web.get("/api/v1/budgets?format=csv").text.splitlines()
    assert csv[0].startswith("id,name,scope_kind,scope_value,amount_usd")
    assert len(csv) == 4


def test_a_change_from_a_month_on_leaves_the_months_before(web: TestClient) -> None:
    made = post(
        web, name="vision", scope_kind="team", scope_value="vision", amount_usd="500", from_month="2026-08"
    )
    answer = web.patch(f"/api/v1/budgets/{made['id']}", json={"amount_usd": "900", "since_month": "2026-10"})
    assert (answer.status_code, answer.json()["amount_usd"], answer.json()["status"]) == (200, "900.00", "ok")
    then = {
        month: [row["amount_usd"] for row in items(web, f"budgets?month={month}")]
        for month in ("2026-09", "2026-10")
    }
    assert then == {"2026-09": ["500.00"], "2026-10": ["900.00"]}
    ended = web.patch(f"/api/v1/budgets/{answer.json()['id']}", json={"to_month": "2026-10"}).json()
    assert (ended["to_month"], items(web, "budgets?month=2026-11")) == ("2026-10", [])
    assert web.delete(f"/api/v1/budgets/{made['id']}").status_code == 204
    assert web.delete(f"/api/v1/budgets/{made['id']}").status_code == 404
    assert web.patch(f"/api/v1/budgets/{made['id']}", json={"note": "x"}).status_code == 404


GOOD: Final = {"name": "vision", "scope_kind": "team", "scope_value": "vision", "amount_usd": "500"}


BAD: Final[list[tuple[dict[str, Any], int, str]]] = [
    ({"amount_usd": "-1"}, 422, "amount_usd"),
    ({"amount_usd": "NaN"}, 422, "NaN is out of bounds"),
    ({"amount_usd": "many"}, 422, "'many' is no amount"),
    ({"amount_usd": "1.005"}, 422, "too fine"),
    ({"from_month": "October"}, 400, "from_month is 'October': give a month such as 2026-10"),
    ({"from_month": "2026-10", "to_month": "2026-09"}, 400, "to_month is '2026-09'"),
    (
        {"scope_value": "physics"},
        400,
        "scope_value is 'physics', and there is no team of that name: there are vision",
    ),
    ({"scope_kind": "cost_centre"}, 400, "there is no cost centre of that name: there are 47"),
    ({"scope_kind": "host"}, 400, "there is no host of that name: there are h1, h2"),
    ({"scope_kind": "cluster"}, 400, "there is no cluster of that name: there are eu"),
    ({"scope_kind": "label", "scope_value": "rack=9"}, 400, "there are cluster=eu, rack=7"),
    ({"scope_kind": "galaxy"}, 400, "scope_kind is 'galaxy'"),
    ({"name": "taken"}, 400, "name is 'taken', and budget 1 of that name has months in common"),
    ({"colour": "red"}, 422, "colour"),
]


def test_a_budget_that_could_not_be_watched_is_refused(empty: TestClient) -> None:
    engine = empty.app.state.engine  # type: ignore[attr-defined]
    with closing(open_connection(empty.app.state.settings.database_url)) as connection:  # type: ignore[attr-defined]
        sink = Ingest(connection)
        sink.gpus([GpuIdentity("GPU-a", "h1"), GpuIdentity("GPU-b", "h2")])
        sink.commit()
    with session_scope(engine) as session:
        host_facts.write(session, HostFacts("h1", cluster="eu", labels=(("rack", "7"),)))
        owners.insert(session, OwnerRule(0, Owner("vision", "train", "47"), OwnerConditions(user="ann")))
    post(empty, name="taken", amount_usd="1")
    for change, status, says in BAD:
        answer = empty.post("/api/v1/budgets", json=GOOD | change)
        assert (answer.status_code, says in answer.json()["detail"]) == (status, True), answer.text
    assert [row["name"] for row in items(empty, "budgets")] == ["taken"]


def test_a_refused_change_changes_nothing(empty: TestClient) -> None:
    post(empty, name="x", amount_usd="1", from_month="2026-08")
    post(empty, name="y", amount_usd="1", from_month="2026-08")
    for body, says in (
        ({}, "nothing is given"),
        ({"amount_usd": "2", "since_month": "2026-08"}, "since_month is '2026-08'"),
        ({"amount_usd": "2", "since_month": "2026-07"}, "since_month is '2026-07'"),
        ({"amount_usd": "2", "since_month": "soon"}, "since_month is 'soon'"),
        ({"name": "y", "since_month": "2026-09"}, "budget 2 of that name"),
        ({"to_month": "2026-07"}, "to_month is '2026-07'"),
    ):
        answer = empty.patch("/api/v1/budgets/1", json=body)
        assert (answer.status_code, says in answer.json()["detail"]) == (400, True), answer.text
    (before, _) = items(empty, "budgets?month=2026-12")
    assert (before["name"], before["to_month"], before["amount_usd"]) == ("x", None, "1.00")


def test_without_data_nothing_is_said(empty: TestClient) -> None:
    made = post(empty, name="all", amount_usd="1")
    assert (made["status"], made["spent_usd"], made["data_until"]) == (None, None, None)
    assert empty.get("/api/v1/forecast?by=all&month=2026-1").status_code == 400


@pytest.fixture
def told(web: TestClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The command line over the same database, at the same time."""
    from gpuwise.__main__ import main

    settings = web.app.state.settings  # type: ignore[attr-defined]
    for module in (command, kept):
        monkeypatch.setattr(module, "now_ms", lambda: NOW)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["budgets", *words, "--database-url", settings.database_url])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_command_line_tells_people(told: Any) -> None:
    assert told("list")[1].startswith("No budgets in this month")
    code, out, _ = told("add", "--name", "vision", "--team", "vision", "--amount", "500")
    assert code == 0
    assert "team vision" in out
    assert "at risk" in out
    assert "2026-10-21" in out
    assert "Month: 2026-10; data until 2026-10-05 12:00 UTC" in out
    made = json.loads(told("set", "1", "--amount", "800", "--since", "2026-11", "--json")[1])
    assert [(row["id"], row["amount_usd"], row["from_month"], row["month"]) for row in made] == [
        (2, "800.00", "2026-11", "2026-11")
    ]
    assert json.loads(told("end", "2", "--month", "2026-12", "--json")[1])[0]["to_month"] == "2026-12"
    assert json.loads(told("remove", "1", "--json")[1]) == []
    assert json.loads(told("forecast", "--by", "host", "--json")[1])[0]["p50_usd"] == "744.00"
    assert "unowned" in told("forecast")[1]


ODD: Final[list[tuple[tuple[str, ...], str]]] = [
    (("add", "--name", "x", "--amount", "-5"), "amount_usd"),
    (
        ("add", "--name", "x", "--amount", "5", "--team", "a", "--host", "b"),
        "--team and --host name 2 scopes",
    ),
    (("add", "--name", "x", "--amount", "5", "--team", "nobody"), "there is no team of that name"),
    (("list", "--month", "2026-99"), "month is '2026-99'"),
    (("end", "9", "--month", "2026-12"), "no budget 9"),
]


def test_the_command_line_says_what_is_off(told: Any) -> None:
    for words, says in ODD:
        code, out, err = told(*words)
        assert (code, out) == (2, "")
        assert says in err


def test_a_server_is_asked_for_the_same(
    sqlite_template: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpuwise.__main__ import main

    def story(*where: str) -> list[Any]:
        steps = (
            ("add", "--name", "fleet", "--amount", "5000", "--from", "2026-01", "--note", "agreed"),
            ("set", "1", "--amount", "6000", "--since", "2027-01"),
            ("end", "2", "--month", "2027-12"),
            ("list", "--month", "2026-03"),
            ("forecast", "--by", "all", "--month", "2026-03"),
            ("remove", "1"),
        )
        found = []
        for words in steps:
            assert main(["budgets", *words, *where, "--json"]) == 0, capsys.readouterr().err
            found.append(json.loads(capsys.readouterr().out))
        return found

    here, there = tmp_path / "here.db", tmp_path / "there.db"
    for path in (here, there):
        shutil.copyfile(sqlite_template, path)
    told = story("--database-url", f"sqlite:///{here}")
    assert told[3][0]["amount_usd"] == "5000.00"
    with serving(f"sqlite:///{there}") as server:
        assert story("--server", server) == told
