"""Costs by engine: what is stored told apart by engines says what pricing each hour says, whatever happens to a fleet."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from fleet_for_tests import ENGINE, HOUR, SPAN, T0, A, B, C, engine_samples, fill, sample
from ledger_for_tests import ingest, pending, price, settings
from sqlalchemy import Engine, text

from api.resources import costs, energy, ledger_anew, usage
from api.resources.by import By
from api.resources.ledger_days import materialise
from api.resources.ledger_months import close
from api.resources.report_filters import Filters
from api.resources.scope import scope_of
from core.activity import Activity
from core.evidence import Window
from core.ownership import Owner, OwnerConditions, OwnerRule
from core.readings import EngineIdentity
from core.samples import EngineSample, GpuSample
from core.units import DAY_MS
from store import ledger_totals, schema
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import ledger_pending, ledger_sums, owners
from store.retention import purge
from store.rollup import roll_up

LATER = T0 + 9 * DAY_MS
OTHER, BOTH, NEXT = "h1:8001/0", "h1:8002/0", "h1:8003/0"
ON = {OTHER: (A,), BOTH: (A, B), NEXT: (B,)}
SEEN = {OTHER: (0, 24, 8 * 24), BOTH: (0, 1), NEXT: (48, 8 * 24 + 1)}
"""Hours from the start in which each was seen; the fleet's own engine in the first."""
QUESTIONS: tuple[tuple[Any, list[str]], ...] = (
    *((costs, ["engine", by.value]) for by in By if by is not By.ENGINE),
    *((table, by) for table in (costs, usage, energy) for by in (["engine"], ["day", "engine"])),
    *((table, ["engine", "activity"]) for table in (usage, energy)),
)
WINDOWS = (None, Window(T0 + HOUR, T0 + 8 * DAY_MS + HOUR))


def seen(engine: str, hours: Sequence[int]) -> list[EngineSample]:
    """Samples of an engine in these hours."""
    one = engine_samples()[0]
    return [replace(one, engine=engine, ts_ms=T0 + hour * HOUR) for hour in hours]


def tell(engine: Engine, samples: Sequence[EngineSample], identities: Sequence[EngineIdentity] = ()) -> None:
    """Engines that are known and seen now, rolled up."""
    with closing(open_connection(settings(engine).database_url)) as connection:
        sink = Ingest(connection)
        sink.engines(identities)
        sink.engine_samples(samples)
        sink.commit()
    roll_up(engine, now_ms=LATER)


@pytest.fixture
def fleet(ready_database: str) -> Engine:
    """The small fleet over nine days, silent from the fourth to the eighth, three more engines on its GPUs, two owners."""
    fill(ready_database)
    engine = make_engine(ready_database)
    late = [
        *(sample(A, 144 + at, Activity.EMPTY, 70.0, busy_ratio=0.0) for at in range(9)),
        *(sample(B, 288 + at, Activity.BUSY, 333.3, busy_ratio=0.9) for at in range(7)),
        *(sample(A, 8 * 144 + at, Activity.BUSY, 123.4, busy_ratio=0.9) for at in range(11)),
        *(sample(B, 8 * 144 + at, Activity.PARKED, 99.9, busy_ratio=0.0) for at in range(11)),
    ]
    ingest(engine, late, LATER)
    with session_scope(engine) as session:
        for owner, host in ((Owner("serving", "chat"), "h1"), (Owner("others"), "h2")):
            owners.insert(session, OwnerRule(0, owner, OwnerConditions(host=host)))
        ledger_pending.mark(session, 0, None)
    tell(
        engine,
        [one for name, hours in SEEN.items() for one in seen(name, hours)],
        [EngineIdentity(name, "h1", "vllm", f"acme/{name[-3]}", {}, uuids) for name, uuids in ON.items()],
    )
    return engine


def asked(engine: Engine, by: Any, window: Window | None = None, **more: Any) -> list[Any]:
    """Rows of costs."""
    filters = more.pop("filters", Filters())
    with session_scope(engine) as session:
        scope = scope_of(session, settings(engine, **more), LATER)
        return costs.rows(scope if window is None else replace(scope, window=window), by, filters)


def everything(engine: Engine, **more: Any) -> list[list[Any]]:
    """Rows of each question over each window."""
    found = []
    with session_scope(engine) as session:
        whole = scope_of(session, settings(engine, **more), LATER)
        for window in WINDOWS:
            scope = whole if window is None else replace(whole, window=window)
            found += [table.rows(scope, by) for table, by in QUESTIONS]
    return found


def ways(engine: Engine) -> Iterator[str]:
    """On the fly, from days, from weeks, and from all of them together."""
    yield "on the fly"
    assert materialise(engine, settings(engine), LATER).gpu_days > 0
    yield "days"
    ledger_totals.add_up(engine)
    yield "weeks"
    with session_scope(engine) as session:
        ledger_pending.mark(session, T0, T0 + DAY_MS, [A])
    yield "one day waits"
    materialise(engine, settings(engine), LATER)
    yield "one week without its sum"


def total(rows: list[Any], field: str = "cost_usd") -> Decimal:
    return sum((getattr(row, field) or Decimal(0) for row in rows), Decimal(0))


def cost_of(rows: list[Any]) -> dict[str | None, Decimal | None]:
    return {row.key: row.cost_usd for row in rows}


def told_days(engine: Engine) -> set[tuple[str, int]]:
    """GPUs and days that are told apart."""
    statement = "SELECT gpu_uuid, day_ms FROM ledger_engine_day JOIN gpu ON gpu.id = gpu_id"
    with engine.connect() as connection:
        return {(uuid, (day_ms - T0) // DAY_MS) for uuid, day_ms in connection.execute(text(statement))}


def test_every_way_of_reading_gives_the_same_rows_by_engine(fleet: Engine) -> None:
    first: list[list[Any]] = []
    for way in ways(fleet):
        found = everything(fleet)
        first = first or found
        for at, (one, other) in enumerate(zip(first, found, strict=True)):
            assert other == one, (way, WINDOWS[at // len(QUESTIONS)], QUESTIONS[at % len(QUESTIONS)])
    assert told_days(fleet) == {(A, 0), (B, 0), (A, 1), (B, 2), (A, 8), (B, 8)}


def test_many_days_that_wait_are_left_out_one_by_one(fleet: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    fly = [asked(fleet, by) for by in (["engine"], ["engine", "host"], ["engine", "week"])]
    materialise(fleet, settings(fleet), LATER)
    ledger_totals.add_up(fleet)
    monkeypatch.setattr(ledger_sums, "MOST_TERMS", 0)
    with session_scope(fleet) as session:
        ledger_pending.mark(session, T0, T0 + DAY_MS, [A])
        ledger_pending.mark(session, T0 + 8 * DAY_MS, None, [B])
    assert [asked(fleet, by) for by in (["engine"], ["engine", "host"], ["engine", "week"])] == fly


def test_engines_share_the_hours_in_which_they_were_seen_together(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), LATER)
    ledger_totals.add_up(fleet)
    rows = cost_of(asked(fleet, By.ENGINE, Window(T0, T0 + 2 * HOUR)))
    # GPU-a's first hour is three engines', its second and all of GPU-b's one's, at 2 USD an hour.
    third = Decimal("0.666666")
    assert rows[ENGINE] is not None
    assert {third, third + Decimal("0.000002")} >= {rows[ENGINE], rows[OTHER]}
    assert rows[BOTH] == third + 2 + 4
    assert rows.keys() == {ENGINE, OTHER, BOTH, None}
    assert total(asked(fleet, By.ENGINE)) == total(asked(fleet, By.GPU))


def test_filters_hold_by_engine_however_a_window_is_read(fleet: Engine) -> None:
    filters = [
        Filters(gpu=(A,)),
        Filters(gpu=(C,)),
        Filters(host=("h1",)),
        Filters(owner=("serving",)),
        Filters(project=("chat",), gpu=(B,)),
        Filters(user=("ann",)),
        Filters(kind=("engine",)),
    ]
    first: list[Any] = []
    for way in ways(fleet):
        found = [asked(fleet, By.ENGINE, filters=one) for one in filters]
        first = first or found
        assert found == first, way
        for one, rows in zip(filters, found, strict=True):
            assert total(rows) == total(asked(fleet, By.OWNER, filters=one)), one
    assert all(first[at] for at in (0, 2, 3, 4, 5, 6))


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/New_York"])
def test_days_told_apart_follow_the_time_zone(fleet: Engine, zone: str) -> None:
    fly = everything(fleet, accounting_time_zone=zone)
    materialise(fleet, settings(fleet), LATER)
    materialise(fleet, settings(fleet, accounting_time_zone=zone), LATER)
    ledger_totals.add_up(fleet)
    assert everything(fleet, accounting_time_zone=zone) == fly
    with fleet.connect() as connection:
        lost = connection.execute(
            text(
                "SELECT count(*) FROM ledger_engine_day AS told WHERE NOT EXISTS (SELECT 1 FROM ledger_day "
                "WHERE ledger_day.gpu_id = told.gpu_id AND ledger_day.day_ms = told.day_ms)"
            )
        )
        assert lost.scalar() == 0


def test_an_engine_seen_in_a_gap_marks_the_day_once(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), LATER)
    tell(fleet, seen(OTHER, [5 * 24 + 3]))
    assert pending(fleet) == 1
    materialise(fleet, settings(fleet), LATER)
    assert (A, 5) in told_days(fleet)
    gap = Window(T0 + 5 * DAY_MS, T0 + 6 * DAY_MS)
    assert cost_of(asked(fleet, By.ENGINE, gap, filters=Filters(gpu=(A,)))) == {
        OTHER: Decimal(2),
        None: Decimal(46),
    }
    tell(fleet, [replace(one, ts_ms=one.ts_ms + SPAN) for one in seen(OTHER, [5 * 24 + 3])])
    assert pending(fleet) == 0, "it was seen in that hour before"


def test_another_gpu_of_an_engine_marks_days_whose_samples_are_gone(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), LATER)
    before = cost_of(asked(fleet, By.ENGINE, filters=Filters(gpu=(C,))))
    purge(fleet, now_ms=T0 + 20 * DAY_MS, raw_days=1, hour_days=400)
    tell(fleet, [], [EngineIdentity(OTHER, "h2", "vllm", "acme/b", {}, (C,))])
    with fleet.connect() as connection:
        marked = connection.execute(
            text("SELECT gpu_uuid, day_ms FROM ledger_pending JOIN gpu ON gpu.id = gpu_id")
        )
        days = {(uuid, (day_ms - T0) // DAY_MS) for uuid, day_ms in marked}
    assert days == {(uuid, day) for uuid in (A, C) for day in (0, 1, 8)}
    fly = everything(fleet)
    materialise(fleet, settings(fleet), LATER)
    assert everything(fleet) == fly
    assert {uuid for uuid, day in told_days(fleet) if day == 1} == set(), (
        "C is not known then, A has none left"
    )
    after = asked(fleet, By.ENGINE, filters=Filters(gpu=(C,)))
    assert OTHER not in before
    assert OTHER in {row.key for row in after}


def test_days_whose_hours_are_gone_stay_told_apart(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), LATER)
    ledger_totals.add_up(fleet)
    whole = Window(T0, LATER)
    before = asked(fleet, By.ENGINE, whole)
    purge(fleet, now_ms=T0 + 12 * DAY_MS, raw_days=1, hour_days=5)
    price(fleet, "9.00", A, T0)
    materialise(fleet, settings(fleet), LATER)
    first = Window(T0, T0 + 7 * DAY_MS)
    assert cost_of(asked(fleet, By.ENGINE, first)).keys() == {ENGINE, OTHER, BOTH, NEXT, None}
    assert total(asked(fleet, By.ENGINE, first)) == total(asked(fleet, By.GPU, first))
    assert total(asked(fleet, By.ENGINE, whole)) > total(before), "the last day has hours, and the new price"


def test_corrections_of_a_closed_month_are_in_the_figures_by_engine(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), LATER)
    november = T0 + 40 * DAY_MS
    with session_scope(fleet) as session:
        close(session, settings(fleet), november, "2026-10")
    price(fleet, "3.00", B, T0)
    price(fleet, "5.00", C, T0)
    fly = everything(fleet)
    materialise(fleet, settings(fleet), november)
    for _ in range(2):
        for one, other in zip(fly, everything(fleet), strict=True):
            assert [row.label for row in other] == [row.label for row in one]
            if other and hasattr(other[0], "cost_usd"):
                assert cost_rows(other) == cost_rows(one)
        ledger_totals.add_up(fleet)
    assert total(asked(fleet, By.ENGINE)) == total(asked(fleet, By.OWNER))


def cost_rows(rows: list[Any]) -> list[Any]:
    """Without what was booked later, which only pricing anew knows nothing of."""
    return [(row.key, row.cost_usd, row.idle_cost_usd, row.unseen_cost_usd) for row in rows]


def test_a_ledger_of_the_revision_before_is_exact_at_once_and_told_apart_by_the_next_run(
    fleet: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_anew, "MOST_AT_ONCE", 1)
    fly = asked(fleet, By.ENGINE)
    materialise(fleet, settings(fleet), LATER)
    ledger_totals.add_up(fleet)
    url = settings(fleet).database_url
    schema.downgrade(url, "0026")
    schema.upgrade(url)
    assert told_days(fleet) == set()
    assert pending(fleet) == 6, "days on which an engine was seen, and no other"
    assert asked(fleet, By.ENGINE) == fly
    with session_scope(fleet) as session:
        ledger_anew.show_stored(session)
        shown = costs.rows(scope_of(session, settings(fleet), LATER), By.ENGINE)
        assert ledger_anew.anew(session, settings(fleet), LATER) is not None
    assert shown == fly, "a page does not show them as nobody's until then"
    materialise(fleet, settings(fleet), LATER)
    ledger_totals.add_up(fleet)
    assert asked(fleet, By.ENGINE) == fly


def test_a_page_shows_engines_as_they_were_priced_before(
    fleet: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_anew, "MOST_AT_ONCE", 1)
    materialise(fleet, settings(fleet), LATER)
    before = asked(fleet, By.ENGINE)
    price(fleet, "7.00", A, T0)
    with session_scope(fleet) as session:
        ledger_anew.show_stored(session)
        assert costs.rows(scope_of(session, settings(fleet), LATER), By.ENGINE) == before
    assert asked(fleet, By.ENGINE) != before


def test_nothing_is_told_apart_without_engines(ready_database: str) -> None:
    engine = make_engine(ready_database)
    with session_scope(engine) as session:
        ledger_pending.mark(session, 0, None)
    ingest(engine, [GpuSample(A, T0, SPAN, SPAN, {"busy_ratio": 0.9}, None, Activity.BUSY)], LATER)
    materialise(engine, settings(engine), LATER)
    assert told_days(engine) == set()
    assert [row.key for row in asked(engine, By.ENGINE)] == [None]
