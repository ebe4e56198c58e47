"""Hours of GPUs: what everything slower than the live view reads."""

from sqlalchemy import CheckConstraint, ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from core.samples import EnergyMethod
from store.models.base import Base, one_of


class GpuHourRow(Base):
    """``core.hours.GpuHour`` as a row: ``<activity>_s`` and ``<activity>_j`` hold seconds and joules by activity.

    ``sampled_from_ms`` and ``sampled_to_ms``: the span of the samples it was folded from (``store.hour_merge``).
    """

    __tablename__ = "gpu_hour"
    __table_args__ = (
        CheckConstraint(one_of("energy_method", EnergyMethod), name="energy_method"),
        {"sqlite_with_rowid": False},
    )

    gpu_id: Mapped[int] = mapped_column(Integer, ForeignKey("gpu.id"), primary_key=True, autoincrement=False)
    hour_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, index=True)
    covered_s: Mapped[float]
    energy_j: Mapped[float | None]
    energy_method: Mapped[str | None]
    energy_covered_s: Mapped[float]
    allocated_s: Mapped[float]
    active_s: Mapped[float]
    effective_s: Mapped[float]
    effective_unknown_s: Mapped[float]
    empty_s: Mapped[float]
    parked_s: Mapped[float]
    starved_s: Mapped[float]
    spinning_s: Mapped[float]
    memory_bound_s: Mapped[float]
    compute_bound_s: Mapped[float]
    mixed_s: Mapped[float]
    busy_s: Mapped[float]
    unknown_s: Mapped[float]
    empty_j: Mapped[float | None]
    parked_j: Mapped[float | None]
    starved_j: Mapped[float | None]
    spinning_j: Mapped[float | None]
    memory_bound_j: Mapped[float | None]
    compute_bound_j: Mapped[float | None]
    mixed_j: Mapped[float | None]
    busy_j: Mapped[float | None]
    unknown_j: Mapped[float | None]
    busy_ratio: Mapped[float | None]
    memory_busy_ratio: Mapped[float | None]
    sm_active_ratio: Mapped[float | None]
    sm_occupancy_ratio: Mapped[float | None]
    tensor_active_ratio: Mapped[float | None]
    dram_active_ratio: Mapped[float | None]
    fp32_active_ratio: Mapped[float | None]
    memory_used_bytes: Mapped[float | None]
    memory_used_max_bytes: Mapped[float | None]
    power_w: Mapped[float | None]
    power_max_w: Mapped[float | None]
    power_limit_w: Mapped[float | None]
    empty_power_w: Mapped[float | None]
    parked_power_w: Mapped[float | None]
    sm_clock_hz: Mapped[float | None]
    throttled_s: Mapped[float | None]
    temperature_max_c: Mapped[float | None]
    pcie_bytes_per_s: Mapped[float | None]
    sampled_from_ms: Mapped[int | None]
    sampled_to_ms: Mapped[int | None]
    nvlink_bytes_per_s: Mapped[float | None]
    tensor_hmma_active_ratio: Mapped[float | None]
    tensor_imma_active_ratio: Mapped[float | None]
    tensor_dfma_active_ratio: Mapped[float | None]
    fp64_active_ratio: Mapped[float | None]
    fp16_active_ratio: Mapped[float | None]
    slowed_power_s: Mapped[float | None]
    slowed_thermal_s: Mapped[float | None]
    temperature_margin_min_c: Mapped[float | None]
