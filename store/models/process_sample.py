"""Raw samples of workloads on GPUs: one row per GPU, interval and workload."""

from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class ProcessSampleRow(Base):
    """What one workload held of one GPU in one interval.

    Without foreign key and partitioned by day on PostgreSQL, as ``gpu_sample`` and for its reasons.
    """

    __tablename__ = "process_sample"
    __table_args__ = {"sqlite_with_rowid": False, "postgresql_partition_by": "RANGE (ts_ms)"}  # noqa: RUF012

    gpu_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    ts_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    workload_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    span_ms: Mapped[int] = mapped_column(Integer)
    memory_used_bytes: Mapped[float | None]
    busy_ratio: Mapped[float | None]
    process_count: Mapped[int] = mapped_column(Integer)
    cpu_ratio: Mapped[float | None]
    cpu_thread_ratio: Mapped[float | None]
