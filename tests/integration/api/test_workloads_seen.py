"""First and last hour of workloads: told by days, and the same as by hours, whatever the window."""

from dataclasses import replace

import pytest
from fleet_for_tests import ANN, GIB, HOUR, NOW, SPAN, T0, B, fill, sample
from ledger_for_tests import settings
from sqlalchemy import Engine, insert, select

from core.activity import Activity
from core.evidence import Window
from core.samples import ProcessSample
from core.units import DAY_MS
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.models.day_pending import DayPendingRow
from store.models.gpu import GpuRow
from store.models.usage_day import UsageDayRow
from store.models.usage_hour import UsageHourRow
from store.queries.workloads_seen import workloads_seen
from store.rollup import roll_up

HOURS = (0, 1, 24 + 5, 24 + 6, 48 + 23, 72, 73)
EDGES = (T0, T0 + HOUR, T0 + DAY_MS, T0 + DAY_MS + 6 * HOUR + 1, T0 + 3 * DAY_MS, T0 + 3 * DAY_MS + 2 * HOUR)
WINDOWS = [Window(a, b) for a in EDGES for b in EDGES if a < b]


@pytest.fixture
def fleet(ready_database: str) -> Engine:
    """The small fleet; ann has GPU-b in some hours of four days, another workload in some of them."""
    fill(ready_database)
    engine = make_engine(ready_database)
    other = replace(ANN, key="7:1791158000000", name="serve.py")
    with open_connection(settings(engine).database_url) as connection:
        sink = Ingest(connection)
        for hour in HOURS:
            at_ms = T0 + hour * HOUR
            sink.gpu_samples([replace(sample(B, 0, Activity.BUSY, 200.0, busy_ratio=0.9), ts_ms=at_ms)])
            held = [ANN] if hour % 2 else [ANN, other]
            sink.process_samples([ProcessSample(B, at_ms, SPAN, who, GIB, None, 1) for who in held])
        sink.commit()
    roll_up(engine, now_ms=NOW + 5 * DAY_MS)
    return engine


def by_hours(engine: Engine, window: Window) -> dict[int, tuple[int, int]]:
    """The same, hour by hour."""
    row = UsageHourRow
    found: dict[int, tuple[int, int]] = {}
    with engine.connect() as connection:
        rows = connection.execute(select(row.workload_id, row.hour_ms))
        for workload_id, hour_ms in rows.all():
            if workload_id is not None and window.from_ms - HOUR < hour_ms < window.to_ms:
                first, last = found.get(workload_id, (hour_ms, 0))
                found[workload_id] = min(first, hour_ms), max(last, hour_ms + HOUR)
    return found


def told(engine: Engine, window: Window) -> dict[int, tuple[int, int]]:
    with session_scope(engine) as session:
        return workloads_seen(session, window)


def test_days_tell_what_hours_tell(fleet: Engine) -> None:
    assert len(by_hours(fleet, WINDOWS[-1])) >= 1
    for window in WINDOWS:
        assert told(fleet, window) == by_hours(fleet, window), window


def test_a_day_that_waits_is_told_by_its_hours(fleet: Engine) -> None:
    whole = Window(T0, T0 + 4 * DAY_MS)
    with fleet.begin() as connection:
        gpu_id = connection.execute(select(GpuRow.id).where(GpuRow.gpu_uuid == B)).scalar_one()
        connection.execute(UsageDayRow.__table__.update().values(first_ms=T0 - DAY_MS))  # type: ignore[attr-defined]
        for day in range(4):
            connection.execute(
                insert(DayPendingRow).values(kind="gpu", entity_id=gpu_id, day_ms=T0 + day * DAY_MS)
            )
    assert told(fleet, whole) == by_hours(fleet, whole)
