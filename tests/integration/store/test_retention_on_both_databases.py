"""Purging by age, on both databases."""

from dataclasses import replace

import pytest
from sqlalchemy import Engine, event, inspect, text
from sqlalchemy.orm import Session
from store_samples import H0, NOW, engine_sample, gpu_sample, host_sample, process_sample

from core.errors import StoreError
from core.evidence import Window
from core.samples import GpuEvent
from core.units import DAY_MS, HOUR_MS
from store.dbapi import open_connection
from store.ingest import Ingest
from store.queries import events, hours, jobs, samples
from store.retention import purge
from store.rollup import roll_up

ALWAYS = Window(0, 10**15)
DAYS = 5
END = H0 + DAYS * DAY_MS
"""Midnight after the last day of data."""


@pytest.fixture
def filled(ready_database: str, engine: Engine) -> Engine:
    with open_connection(ready_database) as connection:
        ingest = Ingest(connection)
        for day in range(DAYS):
            at = H0 + day * DAY_MS
            ingest.gpu_samples(
                replace(gpu_sample(0, gpu=gpu), ts_ms=at + hour * HOUR_MS)
                for gpu in ("GPU-a", "GPU-b")
                for hour in (0, 23)
            )
            ingest.process_samples([replace(process_sample(0), ts_ms=at)])
            ingest.engine_samples([replace(engine_sample(0), ts_ms=at)])
            ingest.host_samples([replace(host_sample(0), ts_ms=at)])
            ingest.events([GpuEvent("GPU-a", at, "xid", f"day {day}", 31)])
        ingest.commit()
    return engine


def days_left(session: Session) -> list[int]:
    found = samples.gpu_samples(session, "GPU-a", ALWAYS)
    return sorted({(sample.ts_ms - H0) // DAY_MS for sample in found})


def test_raw_samples_go_by_whole_days_and_hours_stay(filled: Engine, session: Session) -> None:
    roll_up(filled, now_ms=NOW)
    result = purge(filled, now_ms=END + HOUR_MS, raw_days=2, hour_days=100)
    assert days_left(session) == [3, 4]
    assert session.execute(text("SELECT COUNT(*) FROM engine_sample")).scalar() == 2
    assert session.execute(text("SELECT COUNT(*) FROM process_sample")).scalar() == 2
    assert session.execute(text("SELECT COUNT(*) FROM host_sample")).scalar() == 2
    assert len(hours.host_hours(session, ALWAYS)) == DAYS
    assert len(hours.gpu_hours(session, ALWAYS)) == 2 * 2 * DAYS
    assert result.hours == 0
    if filled.dialect.name == "postgresql":
        assert result.partitions == 12
        names = inspect(filled).get_table_names()
        assert "gpu_sample_p20261008" in names
        assert "gpu_sample_p20261007" not in names
    else:
        assert result.samples == 3 * (4 + 1 + 1 + 1)


def test_nothing_that_waits_for_roll_up_is_purged(filled: Engine, session: Session) -> None:
    result = purge(filled, now_ms=END, raw_days=2, hour_days=100)
    assert days_left(session) == [0, 1, 2, 3, 4]
    assert sorted(result.kept_pending) == ["2026-10-05", "2026-10-06", "2026-10-07"]
    session.rollback()
    roll_up(filled, now_ms=NOW)
    purge(filled, now_ms=END, raw_days=2, hour_days=100)
    assert days_left(session) == [3, 4]


def test_samples_that_are_imported_while_a_purge_runs_are_rolled_up_before_they_go(
    filled: Engine, session: Session, ready_database: str
) -> None:
    roll_up(filled, now_ms=NOW)
    late = replace(gpu_sample(0), ts_ms=H0 + 5 * HOUR_MS)
    to_import = [late]

    def import_once(*told: object) -> None:
        if to_import and "rollup_pending" in str(told[2]):
            with open_connection(ready_database) as connection:
                ingest = Ingest(connection)
                ingest.gpu_samples([to_import.pop()])
                ingest.commit()

    event.listen(filled, "after_cursor_execute", import_once)
    result = purge(filled, now_ms=END, raw_days=2, hour_days=100)
    assert "2026-10-05" in result.kept_pending
    assert roll_up(filled, now_ms=NOW).pending_left == 0
    assert late.ts_ms in {hour.hour_ms for hour in hours.gpu_hours(session, ALWAYS)}
    session.rollback()
    purge(filled, now_ms=END, raw_days=2, hour_days=100)
    assert days_left(session) == [3, 4]


def test_late_samples_of_a_purged_day_are_stored_and_purged_again(
    filled: Engine, session: Session, ready_database: str
) -> None:
    roll_up(filled, now_ms=NOW)
    with open_connection(ready_database) as connection:
        ingest = Ingest(connection)
        ingest.gpu_samples([replace(gpu_sample(0), ts_ms=H0 + DAY_MS)])
        ingest.commit()
        purge(filled, now_ms=END, raw_days=2, hour_days=100)
        late = [replace(gpu_sample(6), ts_ms=H0 + DAY_MS + 60_000)]
        if filled.dialect.name == "postgresql":
            # The partition this writer remembers is gone: it says so, and finds its way at the next try.
            with pytest.raises(StoreError, match="no partition"):
                ingest.gpu_samples(late)
        ingest.gpu_samples(late)
        ingest.commit()
    roll_up(filled, now_ms=NOW)
    assert days_left(session) == [1, 3, 4]
    session.rollback()
    purge(filled, now_ms=END, raw_days=2, hour_days=100)
    assert days_left(session) == [3, 4]


def test_hours_usage_and_events_go_at_their_own_age(filled: Engine, session: Session) -> None:
    roll_up(filled, now_ms=NOW)
    result = purge(filled, now_ms=END, raw_days=1, hour_days=2)
    assert {(hour.hour_ms - H0) // DAY_MS for hour in hours.gpu_hours(session, ALWAYS)} == {3, 4}
    assert {(hour.hour_ms - H0) // DAY_MS for hour in hours.usage_hours(session, ALWAYS)} == {3, 4}
    assert len(hours.engine_hours(session, ALWAYS)) == 2
    assert len(hours.host_hours(session, ALWAYS)) == 2
    assert [event.message for event in events.gpu_events(session, ALWAYS)] == ["day 3", "day 4"]
    assert (result.events, result.hours) == (3, 3 * (4 + 1 + 4 + 1))


def test_old_job_runs_go_with_the_raw_samples(filled: Engine, session: Session) -> None:
    jobs.start(session, "roll-up", H0)
    jobs.start(session, "advice", END - 1)
    session.commit()
    assert purge(filled, now_ms=END, raw_days=2, hour_days=100).job_runs == 1
    assert [run.name for run in jobs.last_runs(session)] == ["advice"]


def test_the_result_is_a_sentence(filled: Engine) -> None:
    said = str(purge(filled, now_ms=END, raw_days=4, hour_days=100))
    assert said.endswith("kept until rolled up: 2026-10-05")
