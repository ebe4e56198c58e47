"""Reports of the ledger: however a window is read or cut, by whatever keys, on either database, it is the same money."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from fleet_for_tests import ANN, GIB, HOUR, NOW, SPAN, T0, A, B, fill, sample
from ledger_for_tests import ingest, price, settings
from sqlalchemy import Engine

from api.resources import costs, energy, usage, workloads
from api.resources.by import TIMES, By, keys_of
from api.resources.idle_sharing import SHARED_BY, IdlePolicy
from api.resources.ledger_days import materialise
from api.resources.ledger_months import close
from api.resources.overview import overview
from api.resources.report_filters import Filters
from api.resources.scope import Scope, scope_of
from core.activity import Activity
from core.errors import UsageError
from core.evidence import Window
from core.ownership import Owner, OwnerConditions, OwnerRule
from core.readings import WorkloadKey
from core.samples import ProcessSample
from core.units import DAY_MS
from store import ledger_totals
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import ledger_pending, owners
from store.rollup import roll_up
from tests.integration.api.conftest import client_for

BOB = WorkloadKey("pod", "ml/llama", "llama", user="bob", host="h1", attributes=(("namespace", "ml"),))
LATER = NOW + 3 * DAY_MS
PAIRS = [
    (one, other)
    for one, other in product(By, By)
    if one is not other and not {one, other} <= TIMES and By.ENGINE not in {one, other}
]


def own(engine: Engine) -> None:
    """Two teams: research has ann, serving has the namespace ml."""
    with session_scope(engine) as session:
        for owner, conditions in (
            (Owner("research", "vision", "cc-1"), OwnerConditions(user="ann")),
            (Owner("serving"), OwnerConditions(namespace="ml")),
        ):
            owners.insert(session, OwnerRule(0, owner, conditions))
        ledger_pending.mark(session, 0, None)


@pytest.fixture
def fleet(ready_database: str) -> Engine:
    """The small fleet over three days: ann on GPU-b on the first, bob's pod on it on the third; GPU-a idle in between."""
    fill(ready_database)
    engine = make_engine(ready_database)
    late = [
        *(
            replace(sample(A, 0, Activity.EMPTY, 70.0, busy_ratio=0.0), ts_ms=T0 + DAY_MS + at * SPAN)
            for at in range(9)
        ),
        *(
            replace(sample(B, 0, Activity.BUSY, 333.3, busy_ratio=0.9), ts_ms=T0 + 2 * DAY_MS + at * SPAN)
            for at in range(7)
        ),
    ]
    with closing(open_connection(ready_database)) as connection:
        sink = Ingest(connection)
        sink.process_samples(
            [ProcessSample(B, T0 + 2 * DAY_MS + at * SPAN, SPAN, BOB, 60.0 * GIB, None, 1) for at in range(7)]
        )
        sink.gpu_samples(late)
        sink.commit()
    roll_up(engine, now_ms=LATER)
    own(engine)
    return engine


def scope_over(engine: Engine, session: Any, window: Window | None = None, **more: Any) -> Scope:
    found = scope_of(session, settings(engine, **more), LATER)
    return found if window is None else replace(found, window=window)


def asked(engine: Engine, by: Any, window: Window | None = None, **more: Any) -> list[Any]:
    idle = more.pop("idle", IdlePolicy.KEEP)
    filters = more.pop("filters", Filters())
    with session_scope(engine) as session:
        return costs.rows(scope_over(engine, session, window, **more), by, filters, idle=idle)


def total(rows: list[Any], field: str = "cost_usd") -> Decimal:
    return sum((getattr(row, field) or Decimal(0) for row in rows), Decimal(0))


def by_key(rows: list[Any]) -> dict[Any, Any]:
    return {tuple(row.keys.values()): row for row in rows}


def ways(engine: Engine) -> Iterator[str]:
    """On the fly, from stored lines, from their totals, and from all of them together."""
    yield "on the fly"
    materialise(engine, settings(engine), LATER)
    yield "lines"
    assert ledger_totals.add_up(engine) == 3
    yield "totals"
    with session_scope(engine) as session:
        ledger_pending.mark(session, T0 + DAY_MS, T0 + 2 * DAY_MS, [A])
    yield "one day waits"
    materialise(engine, settings(engine), LATER)
    yield "one day without totals"


MONEY = ("cost_usd", "idle_cost_usd", "unseen_cost_usd", "energy_cost_usd")
KEYS = [
    *[[by.value] for by in By],
    ["owner", "day"],
    ["activity", "owner"],
    ["user", "hour"],
    ["engine", "day"],
]


def test_every_way_of_reading_gives_the_same_rows(fleet: Engine) -> None:
    first: list[Any] = []
    for way in ways(fleet):
        with session_scope(fleet) as session:
            scope = scope_over(fleet, session)
            found = [table.rows(scope, by) for by in KEYS for table in (costs, usage, energy)]
            found += [workloads.rows(scope), costs.rows(scope, ["user,day"], idle=IdlePolicy.PROPORTIONAL)]
        first = first or found
        assert found == first, way


def test_every_pair_of_keys_adds_up_to_the_same_money(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), LATER)
    ledger_totals.add_up(fleet)
    whole = {field: total(asked(fleet, By.GPU), field) for field in MONEY}
    assert min(whole.values()) > 0
    with session_scope(fleet) as session:
        scope = scope_over(fleet, session)
        for pair in PAIRS:
            rows = costs.rows(scope, pair)
            assert {field: total(rows, field) for field in MONEY} == whole, pair
            assert len({(row.key, row.second_key) for row in rows}) == len(rows)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_splitting_a_window_changes_nothing(fleet: Engine, zone: str) -> None:
    of = settings(fleet, accounting_time_zone=zone)
    materialise(fleet, of, LATER)
    ledger_totals.add_up(fleet)
    for by in (By.OWNER, By.WORKLOAD, By.ACTIVITY):
        whole = by_key(asked(fleet, by, accounting_time_zone=zone))
        for hours in (1, 7, 24, 31):
            cut = T0 + hours * HOUR
            parts = [
                by_key(asked(fleet, by, window, accounting_time_zone=zone))
                for window in (Window(T0, cut), Window(cut, T0 + 3 * DAY_MS))
            ]
            for key, row in whole.items():
                halves = [part[key] for part in parts if key in part]
                assert total(halves) == (row.cost_usd or 0), (by, hours, key)
                assert total(halves, "energy_cost_usd") == (row.energy_cost_usd or 0), (by, hours, key)


def test_owner_and_day_are_two_keys_of_one_row(fleet: Engine) -> None:
    rows = by_key(asked(fleet, ["owner,day"]))
    ann = rows["research", "2026-10-05"]
    assert (ann.key, ann.second_key, ann.label, ann.cost_usd) == (
        "research",
        "2026-10-05",
        "research · 2026-10-05",
        Decimal(4),
    )
    assert ann.keys == {"owner": "research", "day": "2026-10-05"}
    assert ("serving", "2026-10-07") in rows
    assert rows[None, "2026-10-06"].label == "unowned · 2026-10-06"
    assert [row.key for row in asked(fleet, By.PROJECT)] == ["vision", None]
    assert [row.key for row in asked(fleet, By.COST_CENTRE)] == ["cc-1", None]


def test_days_are_those_of_the_accounting_time_zone(fleet: Engine) -> None:
    first, *_ = asked(fleet, By.DAY, accounting_time_zone="America/New_York")
    assert first.key == "2026-10-04"
    with session_scope(fleet) as session:
        days = overview(scope_over(fleet, session, accounting_time_zone="America/New_York")).days
    assert days[0].day == "2026-10-04"


def test_what_nobody_held_is_told_from_gaps_and_unknown_holders(fleet: Engine) -> None:
    labels = {row.key: row.label for row in asked(fleet, By.KIND)}
    assert labels == {
        "gap": "gap",
        "idle": "not held",
        "unattributed": "held, by whom is not known",
        "workload": "held",
    }
    second = Window(T0 + DAY_MS, T0 + DAY_MS + HOUR)
    assert [row.label for row in asked(fleet, By.WORKLOAD, second, filters=Filters(gpu=(A,)))] == ["not held"]


def test_sharing_moves_idle_cost_and_keeps_the_sum(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), LATER)
    for by in SHARED_BY:
        kept = by_key(asked(fleet, by))
        for policy in (IdlePolicy.EVEN, IdlePolicy.PROPORTIONAL):
            shared = by_key(asked(fleet, by, idle=policy))
            for field in ("cost_usd", "idle_cost_usd"):
                assert total(list(shared.values()), field) == total(list(kept.values()), field)
            assert total(list(shared.values()), "shared_usd") == 0
            # No GPU was idle on the day on which the namespace held one.
            assert any(row.shared_usd for row in shared.values()) is (by is not By.NAMESPACE)
            for key, row in shared.items():
                assert (row.cost_usd or 0) - (kept[key].cost_usd or 0) == row.shared_usd
                assert row.shared_usd <= 0 if key[0] is None else row.shared_usd >= 0
            days = by_key(asked(fleet, [by.value, "day"], idle=policy))
            for key in shared:
                of_key = [row for found, row in days.items() if found[0] == key[0]]
                assert total(of_key) == (shared[key].cost_usd or 0)


def test_nobody_pays_for_idle_time_of_a_day_before_they_came(fleet: Engine) -> None:
    rows = by_key(asked(fleet, ["user,day"], idle=IdlePolicy.EVEN))
    # The first day's 1.333334 of empty time is ann's; the day on which nobody worked keeps its own.
    assert rows["ann", "2026-10-05"].shared_usd == Decimal("1.333334")
    assert ("bob", "2026-10-05") not in rows
    assert rows[None, "2026-10-06"].shared_usd == 0
    assert rows[None, "2026-10-06"].idle_cost_usd == Decimal(3)


def test_idle_cost_is_not_shared_out_to_what_is_no_tenant(fleet: Engine) -> None:
    for by in (["gpu"], ["owner", "gpu"], ["day", "owner"]):
        with pytest.raises(UsageError, match="shared out by one of owner"):
            asked(fleet, by, idle=IdlePolicy.EVEN)


FILTERS: list[tuple[Filters, str | None]] = [
    (Filters(gpu=(A,)), None),
    (Filters(host=("h2",)), "0"),
    (Filters(owner=("research",)), "4"),
    (Filters(owner=("research", "serving")), None),
    (Filters(namespace=("ml",)), None),
    (Filters(workload=(f"process/h1/{ANN.key}",)), "4"),
    (Filters(workload=(f"process/h1/{ANN.key}",), owner=("serving",)), "0"),
    (Filters(host=("nowhere",)), "0"),
    (Filters(user=("ann",)), "4"),
    (Filters(user=("ann",), kind=("pod",)), "0"),
    (Filters(kind=("process",), name=("train.py",), user=("ann",)), "4"),
    (Filters(name=("train",)), "0"),
    (Filters(q=("TRAIN ann",)), "4"),
    (Filters(q=("train bob",)), "0"),
    (Filters(project=("nothing",)), "0"),
]


def test_filters_hold_however_a_window_is_read(fleet: Engine) -> None:
    found: dict[int, set[Decimal]] = {at: set() for at in range(len(FILTERS))}
    for _ in ways(fleet):
        for at, (filters, _) in enumerate(FILTERS):
            found[at] |= {total(asked(fleet, by, filters=filters)) for by in (By.OWNER, By.GPU, By.ACTIVITY)}
    whole = total(asked(fleet, By.GPU))
    for at, (filters, usd) in enumerate(FILTERS):
        (one,) = found[at]
        assert usd is None or one == Decimal(usd), filters
        assert one < whole


def test_a_filter_of_gpus_is_the_groups_of_those_gpus(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), LATER)
    rows = {row.key: row.cost_usd for row in asked(fleet, By.GPU)}
    assert total(asked(fleet, By.OWNER, filters=Filters(gpu=(A,)))) == rows[A]
    assert total(asked(fleet, By.OWNER, filters=Filters(gpu=(A, B)))) == (rows[A] or 0) + (rows[B] or 0)


def test_corrections_of_a_closed_month_are_in_the_figures_and_said(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), LATER)
    before = total(asked(fleet, By.OWNER))
    november = T0 + 40 * DAY_MS
    with session_scope(fleet) as session:
        close(session, settings(fleet), november, "2026-10")
    price(fleet, "3.00", B, T0)
    materialise(fleet, settings(fleet), november)
    for at in range(2):
        if at:
            ledger_totals.add_up(fleet)
        rows = by_key(asked(fleet, By.OWNER))
        assert (rows["research",].cost_usd, rows["research",].corrected_usd) == (Decimal(6), Decimal(2))
        assert total(list(rows.values())) - before == total(list(rows.values()), "corrected_usd") > 2
        assert rows["research",].price_basis == "your price for GPU-b of 2026-10-05"
        by_activity = asked(fleet, By.ACTIVITY)
        assert total(by_activity) == total(list(rows.values()))
        assert {row.corrected_usd for row in by_activity} == {None}
    answer = client_for(fleet_url(fleet)).get("/api/v1/costs?by=owner").json()
    assert answer["months_closed"] == ["2026-10"]


def fleet_url(engine: Engine) -> str:
    return settings(engine).database_url


def test_who_used_what(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), LATER)
    with session_scope(fleet) as session:
        rows = {row.name: row for row in workloads.rows(scope_over(fleet, session))}
    ann, bob = rows["train.py"], rows["llama"]
    assert (ann.kind, ann.user, ann.owner, ann.gpu_count) == ("process", "ann", "research", 1)
    assert (ann.allocated_gpu_h, ann.active_gpu_h, ann.effective_gpu_h) == (2.0, 2.0, None)
    assert (ann.cost_usd, ann.idle_cost_usd, ann.energy_kwh) == (Decimal(4), Decimal(0), 0.4)
    assert ann.first_seen_at is not None
    assert ann.last_seen_at is not None
    assert (ann.last_seen_at - ann.first_seen_at).total_seconds() == 2 * 3600
    assert (bob.namespace, bob.owner, bob.host) == ("ml", "serving", "h1")


def test_totals_are_forgotten_with_the_lines_they_are_of(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), LATER)
    ledger_totals.add_up(fleet)
    before = total(asked(fleet, By.OWNER))
    ingest(
        fleet,
        [replace(sample(A, 0, Activity.BUSY, 70.0, busy_ratio=0.9), ts_ms=T0 + DAY_MS + 12 * SPAN)],
        LATER,
    )
    late = total(asked(fleet, By.OWNER))
    materialise(fleet, settings(fleet), LATER)
    assert total(asked(fleet, By.OWNER)) == late > before
    assert ledger_totals.add_up(fleet) > 0
    assert ledger_totals.add_up(fleet) == 0
    assert total(asked(fleet, By.OWNER)) == late
    zone = settings(fleet, accounting_time_zone="Asia/Kolkata")
    materialise(fleet, zone, LATER)
    ledger_totals.add_up(fleet)
    assert total(asked(fleet, By.OWNER, accounting_time_zone="Asia/Kolkata")) == late


def test_rest_takes_two_keys_and_filters_and_defuses_formulas(ready_database: str) -> None:
    fill(ready_database)
    engine = make_engine(ready_database)
    with session_scope(engine) as session:
        evil = Owner("=HYPERLINK(1)", "+1", "-2")
        owners.insert(session, OwnerRule(0, evil, OwnerConditions(user="ann")))
        ledger_pending.mark(session, 0, None)
    client = client_for(ready_database)
    twice = client.get("/api/v1/costs?by=owner&by=day&gpu=GPU-b").json()["items"]
    assert twice == client.get("/api/v1/costs?by=owner,day&gpu=GPU-b").json()["items"]
    assert [row["keys"] for row in twice] == [{"owner": "=HYPERLINK(1)", "day": "2026-10-05"}]
    lines = client.get("/api/v1/costs?by=owner,day&gpu=GPU-b&format=csv").text.splitlines()
    assert lines[1].startswith("'=HYPERLINK(1),'=HYPERLINK(1) · 2026-10-05,4.00,")
    (used,) = client.get("/api/v1/workloads?owner=%3DHYPERLINK(1)").json()["items"]
    assert (used["user"], used["owner"]) == ("ann", "=HYPERLINK(1)")
    assert client.get("/api/v1/usage?by=owner,day,gpu").status_code == 422
    assert client.get("/api/v1/costs?by=gpu&idle=even").status_code == 400


@pytest.mark.parametrize("asked_for", [["owner,owner"], ["day", "week"], ["colour"], ["gpu,host,day"]])
def test_keys_that_make_no_table_are_refused(asked_for: list[str]) -> None:
    with pytest.raises(UsageError, match=r"^by "):
        keys_of(asked_for)
