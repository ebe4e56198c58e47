"""Days of the ledger are what their hours give, on both databases, whatever changes and in whatever order."""

from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool

import pytest
from fleet_for_tests import H100, HOUR, NOW, SPAN, T0, A, B, C, fill, sample
from ledger_for_tests import SUMS, ingest, pending, price, priced, settings, stored, sums, sums_on_the_fly
from sqlalchemy import Engine, text

from api.jobs.ledger import LEDGER
from api.resources.ledger_basis import is_current
from api.resources.ledger_days import materialise
from core.activity import Activity
from core.samples import GpuSample
from core.settings import Settings
from core.units import DAY_MS
from store.engine import make_engine, session_scope
from store.ledger_writer import Priced
from store.lock import ledger_lock
from store.queries import ledger_pending
from store.retention import purge


@pytest.fixture
def fleet(ready_database: str) -> Engine:
    """The small fleet, rolled up, not priced yet."""
    fill(ready_database)
    return make_engine(ready_database)


def test_days_are_what_their_hours_give(fleet: Engine) -> None:
    of = settings(fleet)
    done = materialise(fleet, of, NOW)
    assert (done.gpu_days, done.pending_left, pending(fleet)) == (3, 0, 0)
    assert sums(fleet) == sums_on_the_fly(fleet, of)
    assert sums(fleet)["cost_usd"] == 8_000_000
    kinds = stored(fleet, "kind", "known_ms", "cost_usd")
    assert ("gap", 20 * 60_000, 666_666) in kinds
    assert ("workload", 2 * HOUR, 4_000_000) in kinds
    assert ("unattributed", HOUR, None) in kinds


def test_pricing_again_changes_nothing(fleet: Engine) -> None:
    of = settings(fleet)
    materialise(fleet, of, NOW)
    before = stored(fleet, "day_ms", "gpu_id", "kind", "rate_id", "place_id", *SUMS)
    assert materialise(fleet, of, NOW).gpu_days == 0
    with session_scope(fleet) as session:
        ledger_pending.mark(session, 0, None)
    assert pending(fleet) == 3
    assert materialise(fleet, of, NOW).gpu_days == 3
    assert stored(fleet, "day_ms", "gpu_id", "kind", "rate_id", "place_id", *SUMS) == before


def test_a_late_sample_prices_its_day_anew(fleet: Engine) -> None:
    of = settings(fleet)
    materialise(fleet, of, NOW)
    ingest(fleet, [sample(A, slot, Activity.EMPTY, 70.0, busy_ratio=0.0) for slot in (8, 9)])
    assert pending(fleet) == 1
    materialise(fleet, of, NOW)
    assert sums(fleet) == sums_on_the_fly(fleet, of)
    assert not [row for row in stored(fleet, "kind") if row == ("gap",)]


def test_a_changed_price_prices_the_days_it_touches_anew(fleet: Engine) -> None:
    of = settings(fleet)
    materialise(fleet, of, NOW)
    price(fleet, "4.00", A, T0 + HOUR)
    materialise(fleet, of, NOW)
    assert sums(fleet)["cost_usd"] == 2_000_000 + 4_000_000 + 4_000_000
    assert sums(fleet) == sums_on_the_fly(fleet, of)
    parts = {row for row in stored(fleet, "from_ms", "to_ms", "rate_id") if row[0] == T0 + HOUR}
    assert [(row[0], row[1]) for row in parts] == [(T0 + HOUR, T0 + DAY_MS)]


def test_days_of_silence_are_gaps_once_the_gpu_is_back(fleet: Engine) -> None:
    of = settings(fleet)
    materialise(fleet, of, NOW)
    back_ms = T0 + 3 * DAY_MS + 5 * HOUR
    again = GpuSample(C, back_ms, SPAN, SPAN, {"busy_ratio": 0.5}, None, Activity.BUSY)
    ingest(fleet, [again], back_ms + HOUR)
    assert pending(fleet) == 4
    materialise(fleet, of, NOW)
    assert sums(fleet) == sums_on_the_fly(fleet, of)
    days = {row[0] for row in stored(fleet, "day_ms", "kind") if row[1] == "gap" and row[0] > T0}
    assert days == {T0 + day * DAY_MS for day in (1, 2, 3)}
    with session_scope(fleet) as session:
        ledger_pending.mark(session, T0 + DAY_MS, T0 + 2 * DAY_MS)
    materialise(fleet, of, NOW)
    assert sums(fleet) == sums_on_the_fly(fleet, of)


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/Los_Angeles", "Europe/Berlin"])
def test_another_time_zone_groups_the_same_hours_otherwise(fleet: Engine, zone: str) -> None:
    materialise(fleet, settings(fleet), NOW)
    of = settings(fleet, accounting_time_zone=zone)
    with session_scope(fleet) as session:
        assert not is_current(session, of)
    before = sums(fleet)
    assert materialise(fleet, of, NOW).gpu_days > 0
    assert sums(fleet) == before == sums_on_the_fly(fleet, of)
    assert T0 not in {row[0] for row in stored(fleet, "day_ms")}


def test_other_settings_leave_no_line_as_it_was(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), NOW)
    of = settings(fleet, tariff_usd_per_kwh=0.30, pue=1.1)
    materialise(fleet, of, NOW)
    assert sums(fleet) == sums_on_the_fly(fleet, of)
    with session_scope(fleet) as session:
        assert is_current(session, of)


def test_a_change_while_pricing_leaves_its_day_for_the_next_run(
    fleet: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from store import ledger_writer

    write = ledger_writer.LedgerWriter.write

    def late(self: ledger_writer.LedgerWriter, found: ledger_writer.Priced) -> None:
        monkeypatch.undo()
        with session_scope(fleet) as session:
            ledger_pending.mark(session, 0, None, [A])
        write(self, found)

    monkeypatch.setattr(ledger_writer.LedgerWriter, "write", late)
    done = materialise(fleet, settings(fleet), NOW)
    assert (done.gpu_days, done.pending_left) == (2, 1)
    materialise(fleet, settings(fleet), NOW)
    assert sums(fleet) == sums_on_the_fly(fleet, settings(fleet))


def test_two_processes_do_not_write_the_same_days_twice(fleet: Engine) -> None:
    with ledger_lock(fleet) as held:
        assert held
        assert materialise(fleet, settings(fleet), NOW).busy
        assert LEDGER.run(fleet, settings(fleet), NOW) == "another process writes the ledger"
    assert materialise(fleet, settings(fleet), NOW).gpu_days == 3


def test_a_run_in_small_steps_is_the_same_run(fleet: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.resources.ledger_days.MARKS_AT_ONCE", 1)
    steps: list[tuple[int, int]] = []
    materialise(fleet, settings(fleet), NOW, lambda done, total: steps.append((done, total)))
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert sums(fleet) == sums_on_the_fly(fleet, settings(fleet))


def test_lines_outlive_their_hours(fleet: Engine) -> None:
    of = settings(fleet)
    materialise(fleet, of, NOW)
    before = sums(fleet)
    later_ms = T0 + 10 * DAY_MS
    ingest(
        fleet, [GpuSample(B, later_ms, SPAN, SPAN, {"busy_ratio": 0.5}, None, Activity.BUSY)], later_ms + HOUR
    )
    materialise(fleet, of, NOW)
    purge(fleet, now_ms=later_ms + HOUR, raw_days=1, hour_days=5)
    kept = sums(fleet)
    assert (kept["known_ms"] or 0) > (before["known_ms"] or 0)
    with session_scope(fleet) as session:
        ledger_pending.mark(session, 0, None)
        first_ms = session.execute(text("SELECT min(day_ms) FROM ledger_pending")).scalar_one()
    assert first_ms >= T0 + 9 * DAY_MS
    materialise(fleet, of, NOW)
    assert sums(fleet) == kept
    # A mark that is there all the same changes nothing of what cannot be made anew.
    with session_scope(fleet) as session:
        session.execute(
            text("INSERT INTO ledger_pending (gpu_id, day_ms, mark) SELECT id, :day_ms, 1 FROM gpu"),
            {"day_ms": T0},
        )
    materialise(fleet, of, NOW)
    assert (sums(fleet), pending(fleet)) == (kept, 0)


def test_a_line_says_what_it_was_priced_with(fleet: Engine) -> None:
    materialise(fleet, settings(fleet), NOW)
    with session_scope(fleet) as session:
        rates = session.execute(text("SELECT usd_per_gpu_hour, billing, from_user FROM ledger_rate")).all()
        places = session.execute(
            text("SELECT site, usd_per_kwh, pue, pays_for_power FROM ledger_place")
        ).all()
    assert [tuple(row) for row in rates] == [(2_000_000, "on_demand", True)]
    assert [tuple(row) for row in places] == [("settings", 100_000, 1.25, False)]
    assert H100 in {one.gpu.identity.model for one in priced(fleet, settings(fleet)) if one.price is not None}


def test_days_priced_by_other_processes_are_the_same(fleet: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.resources.ledger_days.MARKS_AT_ONCE", 1)
    of = settings(fleet)
    assert materialise(fleet, of, NOW, workers=2).gpu_days == 3
    assert sums(fleet) == sums_on_the_fly(fleet, of)


def test_a_process_that_dies_leaves_its_days_to_this_one(
    fleet: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from api.resources import ledger_days

    chunks = ledger_days._chunks

    def broken(engine: Engine, of: Settings, workers: int) -> Iterator[Priced]:
        found = chunks(engine, of, 0)
        if workers:
            yield next(found)
            raise BrokenProcessPool
        yield from found

    monkeypatch.setattr(ledger_days, "MARKS_AT_ONCE", 1)
    monkeypatch.setattr(ledger_days, "_chunks", broken)
    assert materialise(fleet, settings(fleet), NOW, workers=2).gpu_days == 3
    assert sums(fleet) == sums_on_the_fly(fleet, settings(fleet))
