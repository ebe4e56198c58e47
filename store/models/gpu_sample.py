"""Raw samples of GPUs: one row per GPU and interval."""

from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class GpuSampleRow(Base):
    """One interval of one GPU; columns after the keys are ``core.metrics.GPU_COLUMNS``, NULL is unknown.

    No foreign key and no check: they would be paid on every row of the hottest path, and ingest, the only
    writer, gives keys it has just looked up and words of its own enumerations. A day is a partition on PostgreSQL.
    """

    __tablename__ = "gpu_sample"
    __table_args__ = {"sqlite_with_rowid": False, "postgresql_partition_by": "RANGE (ts_ms)"}  # noqa: RUF012

    gpu_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    ts_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    span_ms: Mapped[int] = mapped_column(Integer)
    covered_ms: Mapped[int] = mapped_column(Integer)
    energy_method: Mapped[str | None]
    activity: Mapped[str]
    busy_ratio: Mapped[float | None]
    busy_max_ratio: Mapped[float | None]
    busy_min_ratio: Mapped[float | None]
    memory_busy_ratio: Mapped[float | None]
    memory_used_bytes: Mapped[float | None]
    memory_reserved_bytes: Mapped[float | None]
    power_w: Mapped[float | None]
    power_max_w: Mapped[float | None]
    power_limit_w: Mapped[float | None]
    energy_j: Mapped[float | None]
    sm_clock_hz: Mapped[float | None]
    memory_clock_hz: Mapped[float | None]
    temperature_c: Mapped[float | None]
    memory_temperature_c: Mapped[float | None]
    event_reasons_flags: Mapped[float | None]
    pcie_rx_bytes_per_s: Mapped[float | None]
    pcie_tx_bytes_per_s: Mapped[float | None]
    sm_active_ratio: Mapped[float | None]
    sm_occupancy_ratio: Mapped[float | None]
    tensor_active_ratio: Mapped[float | None]
    dram_active_ratio: Mapped[float | None]
    fp32_active_ratio: Mapped[float | None]
    process_count: Mapped[float | None]
    tensor_hmma_active_ratio: Mapped[float | None]
    tensor_imma_active_ratio: Mapped[float | None]
    tensor_dfma_active_ratio: Mapped[float | None]
    fp64_active_ratio: Mapped[float | None]
    fp16_active_ratio: Mapped[float | None]
    nvlink_rx_bytes_per_s: Mapped[float | None]
    nvlink_tx_bytes_per_s: Mapped[float | None]
    encoder_busy_ratio: Mapped[float | None]
    decoder_busy_ratio: Mapped[float | None]
    jpeg_busy_ratio: Mapped[float | None]
    ofa_busy_ratio: Mapped[float | None]
    temperature_margin_c: Mapped[float | None]
    performance_state_index: Mapped[float | None]
    slowed_power_cap_s: Mapped[float | None]
    slowed_sync_boost_s: Mapped[float | None]
    slowed_board_limit_s: Mapped[float | None]
    slowed_low_utilization_s: Mapped[float | None]
    slowed_reliability_s: Mapped[float | None]
    slowed_sw_thermal_s: Mapped[float | None]
    slowed_hw_thermal_s: Mapped[float | None]
    slowed_power_brake_s: Mapped[float | None]
