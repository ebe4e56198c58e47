"""Which days are marked by whom, and what has no line at all."""

from contextlib import closing

import pytest
from fleet_for_tests import GIB, HOUR, NOW, SPAN, T0, A, fill
from ledger_for_tests import ingest, pending, settings, stored
from sqlalchemy import Engine, text

from api.resources.ledger_days import materialise
from core.activity import Activity
from core.readings import GpuIdentity
from core.samples import GpuSample
from core.units import DAY_MS
from ledger.day_lines import DayKey
from ledger.line import Hour, Use
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.ledger_reader import HOUR as HOUR_COLUMNS
from store.ledger_reader import USE
from store.ledger_writer import KEY
from store.queries import ledger_pending
from store.rollup import roll_up


@pytest.fixture
def fleet(ready_database: str) -> Engine:
    """The small fleet, priced."""
    fill(ready_database)
    engine = make_engine(ready_database)
    materialise(engine, settings(engine), NOW)
    return engine


def marked(engine: Engine) -> list[int]:
    """Days that are marked, from the fleet's first."""
    with session_scope(engine) as session:
        found = session.execute(text("SELECT day_ms FROM ledger_pending ORDER BY day_ms")).scalars()
        return [(day_ms - T0) // DAY_MS for day_ms in found]


def busy(at_ms: int) -> GpuSample:
    """Ten minutes of work."""
    return GpuSample(A, at_ms, SPAN, SPAN, {"busy_ratio": 0.9}, None, Activity.BUSY)


def test_hours_mark_their_day_alone_where_nothing_is_missing(fleet: Engine) -> None:
    ingest(fleet, [busy(T0 + 2 * HOUR)], T0 + 3 * HOUR)
    assert marked(fleet) == [0]
    materialise(fleet, settings(fleet), NOW)
    ingest(fleet, [busy(T0 + 23 * HOUR)], T0 + DAY_MS)
    materialise(fleet, settings(fleet), NOW)
    # The next day's first hour: of the day before the last minutes are a gap now.
    ingest(fleet, [busy(T0 + 24 * HOUR)], T0 + 25 * HOUR)
    assert marked(fleet) == [0, 1]
    materialise(fleet, settings(fleet), NOW)
    ingest(fleet, [busy(T0 + 25 * HOUR)], T0 + 26 * HOUR)
    assert marked(fleet) == [1]


def test_an_older_sample_marks_the_silence_after_it(fleet: Engine) -> None:
    ingest(fleet, [busy(T0 - 2 * DAY_MS)])
    assert marked(fleet) == [-2, -1, 0]


def test_a_change_marks_days_from_its_start_to_its_end(fleet: Engine) -> None:
    ingest(fleet, [busy(T0 + 4 * DAY_MS)], T0 + 5 * DAY_MS)
    materialise(fleet, settings(fleet), NOW)
    with session_scope(fleet) as session:
        ledger_pending.mark(session, T0 + DAY_MS + HOUR, T0 + 3 * DAY_MS, [A])
    assert set(marked(fleet)) >= {1, 2}
    assert not {3, 4} & set(marked(fleet))
    with session_scope(fleet) as session:
        session.execute(text("DELETE FROM ledger_pending"))
        ledger_pending.mark(session, T0 + 2 * DAY_MS, None, ["GPU-nobody"])
        ledger_pending.mark(session, T0 + 2 * DAY_MS, None, [])
    assert pending(fleet) == 0


def test_a_slice_has_no_line_because_its_card_has(ready_database: str) -> None:
    with closing(open_connection(ready_database)) as connection:
        sink = Ingest(connection)
        sink.gpus(
            [
                GpuIdentity("GPU-card", "h1", 0, "NVIDIA A100-SXM4-80GB", 80 * GIB),
                GpuIdentity("MIG-1", "h1", 0, "NVIDIA A100-SXM4-80GB MIG 1g.10gb", 10 * GIB),
            ]
        )
        sink.gpu_samples(
            GpuSample(uuid, T0, SPAN, SPAN, {"memory_used_bytes": 8.0 * GIB}, None, Activity.UNKNOWN)
            for uuid in ("GPU-card", "MIG-1")
        )
        sink.commit()
    engine = make_engine(ready_database)
    roll_up(engine, now_ms=NOW)
    assert materialise(engine, settings(engine), NOW).pending_left == 0
    (line,) = stored(engine, "kind", "known_ms", "idle_cost_usd")
    assert line == ("unattributed", SPAN, None)


def test_columns_are_read_and_written_in_the_order_of_the_ledger() -> None:
    assert Hour._fields == HOUR_COLUMNS
    assert tuple(name.removesuffix("_id") for name in USE) == Use._fields
    assert tuple(name.removesuffix("_id") for name in KEY) == DayKey._fields
