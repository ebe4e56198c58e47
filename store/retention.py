"""What is past its age goes: raw samples by the day, hours, usage, events and the records of old job runs.

Nothing that is not rolled up yet is purged: each transaction looks for marks of its day when nobody can write any
more. PostgreSQL drops whole day partitions; SQLite deletes a day of one GPU at a time, each in a transaction of its
own, so that ingest is never kept waiting.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Engine, Table, delete, func, insert, select, text
from sqlalchemy.exc import OperationalError

from core.clock import from_ms
from core.units import DAY_MS
from store.day_sums import WEEK_MS
from store.engine import begin_write
from store.models.day_pending import DayPendingRow
from store.models.demand_day import DemandDayRow
from store.models.demand_hour import DemandHourRow
from store.models.engine_day import EngineDayRow
from store.models.engine_hour import EngineHourRow
from store.models.gpu_day import GpuDayRow
from store.models.gpu_event import GpuEventRow
from store.models.gpu_hour import GpuHourRow
from store.models.gpu_week import GpuWeekRow
from store.models.host_day import HostDayRow
from store.models.host_hour import HostHourRow
from store.models.host_share import HostShareRow
from store.models.job_run import JobRunRow
from store.models.meta import MetaRow
from store.models.rollup_pending import RollupPendingRow
from store.models.usage_day import UsageDayRow
from store.models.usage_hour import UsageHourRow
from store.partitions import LISTED, day_of
from store.tables import METADATA

_OWNER: Final = {
    "gpu_sample": "gpu",
    "process_sample": "gpu",
    "engine_sample": "engine",
    "host_sample": "host",
}
PURGED_KEY: Final = "hours_purged_until_ms"
LOCK_WAIT_S: Final = 5
"""How long a partition's drop waits for readers; after that the next run tries again."""


@dataclass(slots=True)
class PurgeResult:
    """What went. On PostgreSQL samples go with their partitions and are counted as those."""

    samples: int = 0
    partitions: int = 0
    hours: int = 0
    events: int = 0
    job_runs: int = 0
    kept_pending: set[str] = field(default_factory=set)
    """Days (ISO) past their age that were kept, because hours of theirs wait to be rolled up."""

    def __str__(self) -> str:
        said = (
            f"{self.samples} samples, {self.partitions} partitions, {self.hours} hours, "
            f"{self.events} events, {self.job_runs} job runs purged"
        )
        return (
            f"{said}; kept until rolled up: {', '.join(sorted(self.kept_pending))}"
            if self.kept_pending
            else said
        )


def purge(engine: Engine, *, now_ms: int, raw_days: int, hour_days: int) -> PurgeResult:
    """Remove raw samples older than ``raw_days`` whole UTC days, and all else older than ``hour_days``."""
    result = PurgeResult()
    raw_day = now_ms // DAY_MS - raw_days
    for table in _OWNER:
        if engine.dialect.name == "postgresql":
            _drop_partitions(engine, table, raw_day, result)
        else:
            _delete_days(engine, METADATA.tables[table], raw_day, result)
    hour_before_ms = (now_ms // DAY_MS - hour_days) * DAY_MS
    with engine.begin() as connection:
        for model in (GpuHourRow, EngineHourRow, HostHourRow, UsageHourRow):
            result.hours += connection.execute(delete(model).where(model.hour_ms < hour_before_ms)).rowcount
        if result.hours:
            _tell_purged(connection, hour_before_ms)
        for days in (GpuDayRow, EngineDayRow, HostDayRow, HostShareRow, UsageDayRow, DayPendingRow):
            connection.execute(delete(days).where(days.day_ms < hour_before_ms))
        # A week of which a part is left stays: no window reaches over it any more.
        connection.execute(delete(GpuWeekRow).where(GpuWeekRow.day_ms + WEEK_MS <= hour_before_ms))
        connection.execute(delete(DemandDayRow).where(DemandDayRow.day_ms < hour_before_ms))
        connection.execute(delete(DemandHourRow).where(DemandHourRow.hour_ms < hour_before_ms))
        result.events += connection.execute(
            delete(GpuEventRow).where(GpuEventRow.ts_ms < hour_before_ms)
        ).rowcount
        # Job runs explain the recent past; a year of minutes would be half a million rows.
        result.job_runs += connection.execute(
            delete(JobRunRow).where(JobRunRow.started_at < from_ms(raw_day * DAY_MS))
        ).rowcount
    return result


def hours_purged_until_ms(connection: Connection) -> int:
    """Hours before this one may be gone, whatever is imported again from before it; 0: none are."""
    told = connection.execute(select(MetaRow.value).where(MetaRow.key == PURGED_KEY)).scalar()
    return 0 if told is None else int(told)


def _tell_purged(connection: Connection, before_ms: int) -> None:
    """Keep the furthest that hours were ever purged to: raising ``hour_days`` brings none back."""
    if before_ms > hours_purged_until_ms(connection):
        connection.execute(delete(MetaRow).where(MetaRow.key == PURGED_KEY))
        connection.execute(insert(MetaRow).values(key=PURGED_KEY, value=str(before_ms)))


def _pending_days(connection: Connection) -> set[int]:
    """Days with marks of any kind: an hour is folded from the samples of its GPUs and engines together."""
    hours = connection.execute(select(RollupPendingRow.hour_ms).distinct()).scalars()
    return {hour_ms // DAY_MS for hour_ms in hours}


def _waits(connection: Connection, day: int) -> bool:
    """Hours of ``day`` wait to be rolled up."""
    hour_ms = RollupPendingRow.hour_ms
    marks = select(hour_ms).where(hour_ms >= day * DAY_MS, hour_ms < (day + 1) * DAY_MS).limit(1)
    return connection.execute(marks).first() is not None


def _keep(result: PurgeResult, day: int) -> None:
    result.kept_pending.add(from_ms(day * DAY_MS).date().isoformat())


def _drop_partitions(engine: Engine, table: str, before_day: int, result: PurgeResult) -> None:
    with engine.connect() as connection:
        listed = text(LISTED.replace("?", ":table"))
        names = [name for (name,) in connection.execute(listed, {"table": table})]
        pending = _pending_days(connection)
    for name in sorted(names):
        day = day_of(name)
        if day is None or day >= before_day:
            continue
        if day in pending:
            _keep(result, day)
            continue
        try:
            with engine.begin() as connection:
                _stop_writers(connection, table, name)
                if _waits(connection, day):
                    _keep(result, day)
                    continue
                connection.execute(text(f"DROP TABLE {name}"))
        except OperationalError:  # a long reader holds it
            continue
        result.partitions += 1


def _stop_writers(connection: Connection, table: str, partition: str) -> None:
    """Wait for the writers of a partition to commit, their marks with them, and let no other begin.

    In the order in which ingest takes its locks (table, partition, marks), so that neither waits for the other.
    """
    connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'"))
    connection.execute(text(f"LOCK TABLE ONLY {table} IN ACCESS EXCLUSIVE MODE"))
    connection.execute(text(f"LOCK TABLE {partition} IN ACCESS EXCLUSIVE MODE"))
    connection.execute(text("LOCK TABLE rollup_pending IN SHARE ROW EXCLUSIVE MODE"))


def _delete_days(engine: Engine, table: Table, before_day: int, result: PurgeResult) -> None:
    key = next(iter(table.primary_key.columns))
    with engine.connect() as connection:
        pending = _pending_days(connection)
        keys = connection.execute(select(METADATA.tables[_OWNER[table.name]].c.id)).scalars().all()
    for key_value in keys:
        for day in _days(engine, table, key, key_value, before_day):
            if day in pending:
                _keep(result, day)
                continue
            with engine.begin() as connection:
                begin_write(connection)
                if _waits(connection, day):
                    _keep(result, day)
                    continue
                result.samples += connection.execute(
                    delete(table).where(
                        key == key_value, table.c.ts_ms >= day * DAY_MS, table.c.ts_ms < (day + 1) * DAY_MS
                    )
                ).rowcount


def _days(engine: Engine, table: Table, key: Any, key_value: int, before_day: int) -> Iterator[int]:
    """Days before ``before_day`` that hold samples of one GPU, engine or host; empty stretches are skipped."""
    from_ms_ = None
    while True:
        statement = select(func.min(table.c.ts_ms)).where(key == key_value)
        if from_ms_ is not None:
            statement = statement.where(table.c.ts_ms >= from_ms_)
        with engine.connect() as connection:
            oldest_ms = connection.execute(statement).scalar()
        if oldest_ms is None or oldest_ms // DAY_MS >= before_day:
            return
        yield oldest_ms // DAY_MS
        from_ms_ = (oldest_ms // DAY_MS + 1) * DAY_MS
