"""Whatever happens to a fleet, on both databases: stored lines are what pricing now gives, and both are the clock × the price."""

from contextlib import closing
from dataclasses import replace
from decimal import Decimal

import pytest
from fleet_for_tests import ANN, GIB, H100, HOUR, MINUTE, NOW, SPAN, T0, A, B, C, fill, sample
from ledger_for_tests import ingest, pending, price, settings, stored, sums, sums_on_the_fly
from sqlalchemy import Connection, Engine
from test_ledger_reading import read
from test_shared_by_setting import CARD, _fill

from api.jobs.roll_up import ROLL_UP
from api.resources import owners
from api.resources.ledger_days import materialise
from api.resources.ledger_months import close
from api.resources.owner_specs import RuleSpec
from core.activity import Activity
from core.evidence import Window
from core.readings import GpuIdentity
from core.samples import GpuSample, ProcessSample
from core.units import DAY_MS
from store import ledger_marks
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import ledger_pending
from store.retention import purge

COSTS = ("cost_usd", "known_ms", "active_ms")
ZONES = ("UTC", "Asia/Kolkata", "America/Los_Angeles", "Australia/Lord_Howe", "Europe/Berlin")


@pytest.fixture
def fleet(ready_database: str) -> Engine:
    """The small fleet, rolled up, not priced yet."""
    fill(ready_database)
    return make_engine(ready_database)


@pytest.fixture
def card(ready_database: str) -> Engine:
    """A database with one H100 and nothing else, at 2 USD per hour."""
    engine = make_engine(ready_database)
    with closing(open_connection(ready_database)) as connection:
        sink = Ingest(connection)
        sink.gpus([GpuIdentity(A, "h1", 0, H100, 80 * GIB)])
        sink.commit()
    price(engine, "2.00", A, 0)
    return engine


def busy(at_ms: int, span_ms: int = HOUR) -> GpuSample:
    """One GPU's time, at work."""
    return GpuSample(A, at_ms, span_ms, span_ms, {"busy_ratio": 0.9}, None, Activity.BUSY)


def holds(engine: Engine, **more: object) -> dict[str, int | None]:
    """Everything is priced, and stored lines are what pricing now gives; the sums."""
    of = settings(engine, **more)
    materialise(engine, of, NOW)
    assert pending(engine) == 0
    found = sums(engine)
    assert found == sums_on_the_fly(engine, of)
    return found


@pytest.mark.parametrize("zone", ZONES)
def test_silent_days_stay_known_in_another_time_zone(fleet: Engine, zone: str) -> None:
    back_ms = T0 + 6 * DAY_MS + 5 * HOUR
    ingest(
        fleet, [GpuSample(A, back_ms, SPAN, SPAN, {"busy_ratio": 0.5}, None, Activity.BUSY)], back_ms + HOUR
    )
    before = holds(fleet)
    assert holds(fleet, accounting_time_zone=zone) == before
    assert holds(fleet) == before


@pytest.mark.parametrize("zone", ZONES)
def test_samples_over_hours_days_and_changes_of_the_clock_cost_what_the_clock_says(
    card: Engine, zone: str
) -> None:
    # 57 minutes each, end to end, over the ends of daylight saving time in October and November.
    step = 57 * MINUTE
    first_ms = T0 - 3 * DAY_MS + 17 * MINUTE
    ingest(card, [busy(first_ms + at * step, step) for at in range(840)], T0 + 40 * DAY_MS)
    found = holds(card, accounting_time_zone=zone)
    assert found["known_ms"] == 840 * step
    assert found["cost_usd"] is not None
    # Whole micro-dollars an hour: only the first and the last are cut.
    assert abs(found["cost_usd"] - 840 * step * 2_000_000 / HOUR) <= 1
    of = settings(card, accounting_time_zone=zone)
    for window in (
        Window(T0, T0 + 25 * DAY_MS),
        Window(T0 + 20 * DAY_MS + 7 * HOUR, T0 + 21 * DAY_MS),
        Window(T0 - 3 * DAY_MS, T0 + 40 * DAY_MS),
    ):
        usd, fly, _ = read(card, of, window)
        assert usd == fly


def test_samples_told_twice_by_different_ways_cost_once(card: Engine) -> None:
    ingest(card, [busy(T0 + at * SPAN, SPAN) for at in range(6)])
    ingest(card, [busy(T0 + at * SPAN + 1_000, SPAN) for at in range(6)])
    found = holds(card)
    assert (found["known_ms"], found["cost_usd"]) == (HOUR + 1_000, 2_000_000 + 556)


def test_a_price_from_the_middle_of_an_hour_holds_from_the_next(card: Engine) -> None:
    ingest(card, [busy(T0 + at * HOUR) for at in range(24)], T0 + 2 * DAY_MS)
    price(card, "4.00", A, T0 + 10 * HOUR + 1)
    assert holds(card)["cost_usd"] == 11 * 2_000_000 + 13 * 4_000_000
    parts = sorted(stored(card, "from_ms", "to_ms", "cost_usd"))
    assert parts == [
        (T0, T0 + 11 * HOUR, 22_000_000),
        (T0 + 11 * HOUR, T0 + 24 * HOUR, 52_000_000),
    ]


def test_late_samples_before_the_first_make_known_what_was_not(card: Engine) -> None:
    ingest(card, [busy(T0 + 5 * DAY_MS)], T0 + 6 * DAY_MS)
    assert holds(card)["cost_usd"] == 2_000_000
    ingest(card, [busy(T0)], T0 + 6 * DAY_MS)
    found = holds(card)
    assert found["known_ms"] == 5 * DAY_MS + HOUR
    assert found["cost_usd"] == (5 * 24 + 1) * 2_000_000
    ingest(card, [busy(T0 + 2 * DAY_MS, SPAN)], T0 + 6 * DAY_MS)
    assert holds(card)["cost_usd"] == (5 * 24 + 1) * 2_000_000


def test_slices_that_nobody_used_are_idle_money(ready_database: str) -> None:
    _fill(ready_database)
    engine = make_engine(ready_database)
    of = replace(settings(engine), usage_share_method="mig_slice")
    ROLL_UP.run(engine, of, NOW)
    price(engine, "7.00", CARD, 0)
    materialise(engine, of, NOW)
    assert sums(engine) == sums_on_the_fly(engine, of)
    lines = stored(engine, "kind", "cost_usd", "idle_cost_usd", "allocated_ms", "share_method")
    assert [row[0] for row in lines] == ["idle", "workload", "workload"]
    idle = lines[0]
    assert idle[1:4] == (idle[1], idle[1], 0)
    assert [row[1] for row in lines] == [
        pytest.approx(usd * 1_000_000, abs=50) for usd in (Decimal(2), Decimal(2), Decimal(3))
    ]
    assert [row[2] for row in lines[1:]] == [0, 0]
    assert {row[4] for row in lines} == {"mig_slice"}


def test_a_crash_in_the_middle_leaves_days_as_they_were_and_marked(
    fleet: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = holds(fleet)
    price(fleet, "4.00", A, T0)
    price(fleet, "5.00", B, T0)
    monkeypatch.setattr("api.resources.ledger_days.MARKS_AT_ONCE", 1)
    remove, calls = ledger_marks.remove, []

    def dies(connection: Connection, marks: list[ledger_marks.LedgerMark]) -> None:
        calls.append(marks)
        if len(calls) == 2:
            raise RuntimeError("power cut")
        remove(connection, marks)

    monkeypatch.setattr(ledger_marks, "remove", dies)
    with pytest.raises(RuntimeError, match="power cut"):
        materialise(fleet, settings(fleet), NOW)
    assert pending(fleet) == 1
    assert before["cost_usd"] is not None
    assert sums(fleet)["cost_usd"] in {before["cost_usd"] + 4_000_000, before["cost_usd"] + 6_000_000}
    assert holds(fleet)["cost_usd"] == 2 * 4_000_000 + 2 * 5_000_000


def test_what_is_imported_from_before_the_oldest_hours_takes_no_line_away(fleet: Engine) -> None:
    later_ms = T0 + 10 * DAY_MS
    ingest(
        fleet, [GpuSample(B, later_ms, SPAN, SPAN, {"busy_ratio": 0.5}, None, Activity.BUSY)], later_ms + HOUR
    )
    holds(fleet)
    purge(fleet, now_ms=later_ms + HOUR, raw_days=1, hour_days=5)
    before = {row for row in stored(fleet, "gpu_id", "day_ms", "kind", *COSTS) if row[1] < T0 + 5 * DAY_MS}
    old = GpuSample(C, T0 - 2 * DAY_MS, SPAN, SPAN, {"busy_ratio": 0.5}, None, Activity.BUSY)
    ingest(fleet, [old], later_ms + HOUR)
    with session_scope(fleet) as session:
        ledger_pending.mark(session, 0, None)
    price(fleet, "9.00", B, T0)
    materialise(fleet, settings(fleet), NOW)
    after = set(stored(fleet, "gpu_id", "day_ms", "kind", *COSTS))
    assert before <= after
    assert pending(fleet) == 0


def test_a_closed_month_follows_late_samples_prices_and_zones_to_the_cent(card: Engine) -> None:
    of = settings(card, accounting_time_zone="Asia/Kolkata")
    hours = [busy(T0 + at * HOUR) for at in range(30 * 24) if at % 7]
    ingest(card, hours, T0 + 40 * DAY_MS)
    materialise(card, of, T0 + 40 * DAY_MS)
    with session_scope(card) as session:
        closed = close(session, of, T0 + 40 * DAY_MS, "2026-10")
    # The last hours of October in UTC are of November there.
    assert closed.cost_usd == Decimal(2) * ((27 * 24) - 5 - 1)
    price(card, "3.00", A, T0 + 3 * DAY_MS + 5 * HOUR)
    ingest(card, [busy(T0 + at * HOUR) for at in range(0, 30 * 24, 7)], T0 + 40 * DAY_MS)
    holds(card, accounting_time_zone="Asia/Kolkata")
    price(card, "2.50", A, T0)
    holds(card, accounting_time_zone="Asia/Kolkata")
    with session_scope(card) as session:
        ledger_pending.mark(session, 0, None)
    assert materialise(card, of, T0 + 40 * DAY_MS).corrections == 0


def test_a_sample_of_the_small_fleet_after_a_gap_is_no_gap(fleet: Engine) -> None:
    holds(fleet)
    ingest(fleet, [sample(C, slot, Activity.BUSY, None, busy_ratio=0.5) for slot in (40, 41)], T0 + DAY_MS)
    found = holds(fleet)
    assert found["known_ms"] == 2 * 2 * HOUR + 42 * SPAN


def test_what_becomes_known_of_a_gpu_prices_the_days_it_had_before(fleet: Engine) -> None:
    new = "GPU-new"
    back_ms = T0 + 3 * DAY_MS
    samples = [
        GpuSample(new, at_ms, HOUR, HOUR, {"busy_ratio": 0.9}, None, Activity.BUSY) for at_ms in (T0, back_ms)
    ]
    ingest(fleet, samples, back_ms + HOUR)
    before = holds(fleet)["cost_usd"]
    assert before is not None
    with closing(open_connection(settings(fleet).database_url)) as connection:
        sink = Ingest(connection)
        sink.gpus([GpuIdentity(new, "h3", 0, H100, 80 * GIB)])
        sink.commit()
        sink.gpus([GpuIdentity(new, "h3", 0, H100, 80 * GIB)])
        sink.commit()
    assert pending(fleet) == 4
    assert holds(fleet)["cost_usd"] == before + (3 * 24 + 1) * 2_000_000
    with closing(open_connection(settings(fleet).database_url)) as connection:
        sink = Ingest(connection)
        sink.gpus([GpuIdentity(new, "h3", 0, H100, 80 * GIB, driver_version="999")])
        sink.commit()
    assert pending(fleet) == 0


def test_what_becomes_known_of_a_workload_finds_its_owner(fleet: Engine) -> None:
    of = settings(fleet)
    with session_scope(fleet) as session:
        owners.add(session, of, NOW, RuleSpec(team="vision", labels=("app=train*",), valid_from="2026-01-01"))
    holds(fleet)
    assert {row for row in stored(fleet, "kind", "owner_id") if row[0] == "workload"} == {("workload", None)}
    told = replace(ANN, attributes=(("app", "trainer"),))
    with closing(open_connection(of.database_url)) as connection:
        sink = Ingest(connection)
        sink.process_samples([ProcessSample(B, T0 + 3 * HOUR, SPAN, told, 70.0 * GIB, None, 1)])
        sink.commit()
    assert pending(fleet) == 1
    materialise(fleet, of, NOW)
    assert sorted(row[1] is None for row in stored(fleet, "kind", "owner_id") if row[0] == "workload") == [
        False,
        True,
    ]
