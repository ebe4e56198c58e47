"""Raw samples of hosts: one row per host and interval."""

from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class HostSampleRow(Base):
    """One interval of one host; columns after the span are ``core.metrics.HOST_COLUMNS``, NULL is unknown.

    Without foreign key and partitioned by day on PostgreSQL, as ``gpu_sample`` and for its reasons.
    """

    __tablename__ = "host_sample"
    __table_args__ = {"sqlite_with_rowid": False, "postgresql_partition_by": "RANGE (ts_ms)"}  # noqa: RUF012

    host_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    ts_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    span_ms: Mapped[int] = mapped_column(Integer)
    cpu_busy_ratio: Mapped[float | None]
    cpu_busiest_ratio: Mapped[float | None]
    iowait_ratio: Mapped[float | None]
    host_memory_used_bytes: Mapped[float | None]
    host_memory_total_bytes: Mapped[float | None]
    host_power_w: Mapped[float | None]
    agent_cpu_ratio: Mapped[float | None]
    agent_memory_bytes: Mapped[float | None]
    agent_tick_s: Mapped[float | None]
    agent_tick_max_s: Mapped[float | None]
    agent_written_bytes: Mapped[float | None]
    agent_skipped_count: Mapped[float | None]
    agent_dropped_count: Mapped[float | None]
    agent_waiting_count: Mapped[float | None]
