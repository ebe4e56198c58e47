"""GPUs: identity, and the span of time they were seen."""

from sqlalchemy import ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey


class GpuRow(Base):
    """One GPU (or MIG instance).

    ``first_sample_ms`` … ``last_held_ms`` are kept by ingest, so that no page asks the raw samples for them:
    start of the first and of the newest sample, end of the newest, start of the newest in which the GPU was held.
    ``health`` is the newest state as JSON text (``core.readings.GpuHealth.facts``), asked at ``health_ms``: written
    when it changed, else at most every ten minutes.
    """

    __tablename__ = "gpu"

    id: Mapped[SmallKey]
    gpu_uuid: Mapped[str] = mapped_column(unique=True)
    host_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("host.id"), index=True)
    gpu_index: Mapped[int | None] = mapped_column(Integer)
    model: Mapped[str | None]
    memory_total_bytes: Mapped[int | None]
    pci_bus_id: Mapped[str | None]
    driver_version: Mapped[str | None]
    max_sm_clock_hz: Mapped[float | None]
    power_limit_default_w: Mapped[float | None]
    first_sample_ms: Mapped[int | None]
    last_sample_ms: Mapped[int | None]
    seen_until_ms: Mapped[int | None]
    last_held_ms: Mapped[int | None]
    compute_capability: Mapped[str | None]
    power_averaging_s: Mapped[float | None]
    health: Mapped[str | None]
    health_ms: Mapped[int | None]
