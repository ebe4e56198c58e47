"""Weeks of GPUs and hours of GPU models are what their days and hours are, whatever came when."""

from contextlib import closing
from dataclasses import replace

import pytest
from fleet_for_tests import HOUR, SPAN, T0, A, B, fill, sample
from ledger_for_tests import ingest, settings
from sqlalchemy import Engine, func, select

from core.activity import Activity
from core.evidence import Window
from core.samples import GpuSample
from core.units import DAY_MS
from store import day_sums
from store.day_writer import mark_days
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.known import known_gpus
from store.models.demand_day import DemandDayRow
from store.models.demand_hour import DemandHourRow
from store.models.gpu_day import GpuDayRow
from store.models.gpu_week import GpuWeekRow
from store.queries.activity_power import watts_by_activity
from store.queries.demand import DrawnByState, HourOfMany, drawn_by_state, hours_of
from store.retention import purge

DAYS = (0, 1, 2, 6, 7, 9, 13, 14, 15, 21)
"""Days with samples, from a Monday on."""
LATER = T0 + 30 * DAY_MS
WINDOWS = {
    "all": Window(T0 - DAY_MS, T0 + 23 * DAY_MS),
    "weeks and days": Window(T0 + DAY_MS, T0 + 15 * DAY_MS),
    "parts of days": Window(T0 + HOUR // 2, T0 + 14 * DAY_MS + HOUR),
    "within a day": Window(T0, T0 + HOUR),
}


@pytest.fixture
def fleet(ready_database: str) -> Engine:
    """Two GPUs over three weeks, an hour and more on some days."""
    fill(ready_database)
    engine = make_engine(ready_database)
    ingest(engine, [one for day in DAYS for one in _day(day)], LATER)
    return engine


def _day(day: int) -> list[GpuSample]:
    return [
        *(
            replace(
                sample(A, 0, Activity.PARKED if at % 3 else Activity.EMPTY, 70.0 + day, busy_ratio=0.0),
                ts_ms=T0 + day * DAY_MS + at * SPAN,
            )
            for at in range(9)
        ),
        *(
            replace(
                sample(B, 0, Activity.BUSY, 300.0 + day, busy_ratio=0.9), ts_ms=T0 + day * DAY_MS + at * SPAN
            )
            for at in range(7)
        ),
    ]


def added(hours: list[HourOfMany]) -> dict[int, tuple[int, int, int]]:
    found: dict[int, tuple[int, int, int]] = {}
    for one in hours:
        known = found.get(one.hour_ms, (0, 0, 0))
        found[one.hour_ms] = (
            known[0] + one.known_ms,
            known[1] + one.allocated_ms,
            known[2] + one.active_ms,
        )
    return found


def close_to(drawn: DrawnByState) -> object:
    values = [
        value for one in (drawn.empty, drawn.parked, drawn.working) for value in (one.seconds, one.joules)
    ]
    return pytest.approx(values)


def flat(drawn: DrawnByState) -> list[float]:
    return [
        value for one in (drawn.empty, drawn.parked, drawn.working) for value in (one.seconds, one.joules)
    ]


def check(engine: Engine) -> None:
    """Sums by model say what the hours of the GPUs say, sums of weeks what the days say."""
    with session_scope(engine) as session:
        gpus = known_gpus(session.connection())
        ids, models = [gpu.id for gpu in gpus], {gpu.identity.model for gpu in gpus}
        for name, window in WINDOWS.items():
            assert added(hours_of(session, window, ids, models)) == added(hours_of(session, window, ids)), (
                name
            )
            assert flat(drawn_by_state(session, window, ids, models)) == close_to(
                drawn_by_state(session, window, ids)
            ), name
        for column in ("parked_s", "empty_j", "busy_j"):
            week, day = (
                session.execute(select(func.sum(getattr(row, column)))).scalar()
                for row in (GpuWeekRow, GpuDayRow)
            )
            assert week == pytest.approx(day), column


def made(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(select(func.count()).select_from(DemandDayRow)).scalar_one())


def test_sums_say_what_hours_and_days_say(fleet: Engine) -> None:
    assert made(fleet) == len(DAYS) - 1  # the newest day changes with every run
    check(fleet)


def test_late_samples_make_their_sums_anew(fleet: Engine) -> None:
    late = [replace(one, ts_ms=one.ts_ms + 5 * HOUR) for one in _day(7)]
    ingest(fleet, late, LATER)
    assert made(fleet) == len(DAYS) - 1
    check(fleet)


def test_days_that_wait_to_be_folded_are_read_from_their_hours(fleet: Engine) -> None:
    with session_scope(fleet) as session:
        before = watts_by_activity(session, WINDOWS["all"])
        gpu_id = known_gpus(session.connection())[0].id
        mark_days(session.connection(), "gpu", [(gpu_id, T0 + 7 * DAY_MS)])
    with fleet.begin() as connection:
        day_sums.forget(connection, {T0})
    check(fleet)
    day_sums.add_up(fleet)
    assert made(fleet) == len(DAYS) - 1
    with session_scope(fleet) as session:
        after = watts_by_activity(session, WINDOWS["all"])
    assert {uuid: {a: pytest.approx(w) for a, w in of.items()} for uuid, of in before.items()} == after


def test_power_is_the_same_from_weeks_as_from_days(fleet: Engine) -> None:
    with session_scope(fleet) as session:
        from_weeks = {name: watts_by_activity(session, window) for name, window in WINDOWS.items()}
        # A mark of every day has them read from their hours.
        gpus = known_gpus(session.connection())
        marks = [(gpu.id, T0 + day * DAY_MS) for gpu in gpus for day in range(23)]
        mark_days(session.connection(), "gpu", marks)
        for name, window in WINDOWS.items():
            hourly = watts_by_activity(session, window)
            assert set(hourly) == set(from_weeks[name]), name
            for uuid, of in hourly.items():
                assert of == pytest.approx(from_weeks[name][uuid]), (name, uuid)


def test_sums_go_with_the_hours_that_are_purged(fleet: Engine) -> None:
    now_ms = T0 + 14 * DAY_MS + 10 * DAY_MS
    purge(fleet, now_ms=now_ms, raw_days=1, hour_days=10)
    with fleet.connect() as connection:
        oldest = [
            connection.execute(select(func.min(column))).scalar()
            for column in (DemandHourRow.hour_ms, GpuWeekRow.day_ms, DemandDayRow.day_ms)
        ]
    assert oldest == [T0 + 14 * DAY_MS] * 3


def test_a_gpu_whose_model_becomes_another_is_wanted_under_that(fleet: Engine) -> None:
    with session_scope(fleet) as session:
        gpu = known_gpus(session.connection())[0]
    with closing(open_connection(settings(fleet).database_url)) as connection:
        sink = Ingest(connection)
        sink.gpus([replace(gpu.identity, model="H900")])
        sink.commit()
    assert made(fleet) == 0
    day_sums.add_up(fleet)
    assert made(fleet) == len(DAYS) - 1
    check(fleet)
    with session_scope(fleet) as session:
        window = WINDOWS["all"]
        mine = hours_of(session, window, [gpu.id], {"H900"})
        assert added(mine) == added(hours_of(session, window, [gpu.id]))
