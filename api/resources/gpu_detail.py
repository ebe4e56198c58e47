"""One GPU up close: its samples, its hours, its events. The only table that reads raw samples."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Final

from api.resources import gpus
from api.resources.columns import about, metric
from api.resources.gpus import GpuRow
from api.resources.report_filters import Filters
from api.resources.scope import Scope
from core.activity import Activity
from core.clock import from_ms
from core.errors import NotFoundError
from core.evidence import Window
from core.hours import GpuHour
from core.metrics import GPU_COLUMNS
from core.samples import EnergyMethod, GpuEvent, GpuSample
from store.queries import events as event_queries
from store.queries import fleet, hours
from store.queries import samples as sample_queries
from store.queries.fleet import FleetGpu
from store.queries.health import gpu_health


@dataclass(frozen=True, slots=True)
class GpuDetail(GpuRow):
    """One GPU with what only its own page asks for."""

    pci_bus_id: Annotated[str | None, about("As the driver prints it.")]
    driver_version: Annotated[str | None, about("Kernel driver.")]
    compute_capability: Annotated[
        str | None, about("E.g. 9.0: tells which number formats its tensor cores know.")
    ]
    max_sm_clock_hz: Annotated[float | None, about("Highest SM clock the card allows.")]
    power_averaging_s: Annotated[
        float | None, about("Time that its power readings average over; 0: none; null: not known.")
    ]
    health: Annotated[
        Mapping[str, float | str],
        about(
            "State by name (ECC and row-remap counts, PCIe link, modes, power limits), as its agent last asked for it; "
            "what is absent is unknown."
        ),
    ]
    health_asked_at: Annotated[datetime | None, about("When, UTC; null: no agent has told.")]


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One sample: readings folded over an interval. Null is unknown."""

    sampled_at: Annotated[datetime, about("Start of the interval, UTC.")]
    span_s: Annotated[float, about("Length of the interval.")]
    coverage_ratio: Annotated[float, about("Share of the interval that readings vouch for.")]
    activity: Annotated[Activity, about("What the GPU was doing.")]
    energy_method: Annotated[EnergyMethod | None, about("counter or integrated; null: energy unknown.")]
    busy_ratio: Annotated[float | None, metric("busy_ratio")]
    busy_max_ratio: Annotated[float | None, metric("busy_max_ratio")]
    busy_min_ratio: Annotated[float | None, metric("busy_min_ratio")]
    memory_busy_ratio: Annotated[float | None, metric("memory_busy_ratio")]
    memory_used_bytes: Annotated[float | None, metric("memory_used_bytes")]
    memory_reserved_bytes: Annotated[float | None, metric("memory_reserved_bytes")]
    power_w: Annotated[float | None, metric("power_w")]
    power_max_w: Annotated[float | None, metric("power_max_w")]
    power_limit_w: Annotated[float | None, metric("power_limit_w")]
    energy_j: Annotated[float | None, metric("energy_j")]
    sm_clock_hz: Annotated[float | None, metric("sm_clock_hz")]
    memory_clock_hz: Annotated[float | None, metric("memory_clock_hz")]
    temperature_c: Annotated[float | None, metric("temperature_c")]
    memory_temperature_c: Annotated[float | None, metric("memory_temperature_c")]
    event_reasons_flags: Annotated[float | None, metric("event_reasons_flags")]
    pcie_rx_bytes_per_s: Annotated[float | None, metric("pcie_rx_bytes_per_s")]
    pcie_tx_bytes_per_s: Annotated[float | None, metric("pcie_tx_bytes_per_s")]
    sm_active_ratio: Annotated[float | None, metric("sm_active_ratio")]
    sm_occupancy_ratio: Annotated[float | None, metric("sm_occupancy_ratio")]
    tensor_active_ratio: Annotated[float | None, metric("tensor_active_ratio")]
    dram_active_ratio: Annotated[float | None, metric("dram_active_ratio")]
    fp32_active_ratio: Annotated[float | None, metric("fp32_active_ratio")]
    process_count: Annotated[float | None, metric("process_count")]
    tensor_hmma_active_ratio: Annotated[float | None, metric("tensor_hmma_active_ratio")]
    tensor_imma_active_ratio: Annotated[float | None, metric("tensor_imma_active_ratio")]
    tensor_dfma_active_ratio: Annotated[float | None, metric("tensor_dfma_active_ratio")]
    fp64_active_ratio: Annotated[float | None, metric("fp64_active_ratio")]
    fp16_active_ratio: Annotated[float | None, metric("fp16_active_ratio")]
    nvlink_rx_bytes_per_s: Annotated[float | None, metric("nvlink_rx_bytes_per_s")]
    nvlink_tx_bytes_per_s: Annotated[float | None, metric("nvlink_tx_bytes_per_s")]
    encoder_busy_ratio: Annotated[float | None, metric("encoder_busy_ratio")]
    decoder_busy_ratio: Annotated[float | None, metric("decoder_busy_ratio")]
    jpeg_busy_ratio: Annotated[float | None, metric("jpeg_busy_ratio")]
    ofa_busy_ratio: Annotated[float | None, metric("ofa_busy_ratio")]
    temperature_margin_c: Annotated[float | None, metric("temperature_margin_c")]
    performance_state_index: Annotated[float | None, metric("performance_state_index")]
    slowed_power_cap_s: Annotated[float | None, metric("slowed_power_cap_s")]
    slowed_sync_boost_s: Annotated[float | None, metric("slowed_sync_boost_s")]
    slowed_board_limit_s: Annotated[float | None, metric("slowed_board_limit_s")]
    slowed_low_utilization_s: Annotated[float | None, metric("slowed_low_utilization_s")]
    slowed_reliability_s: Annotated[float | None, metric("slowed_reliability_s")]
    slowed_sw_thermal_s: Annotated[float | None, metric("slowed_sw_thermal_s")]
    slowed_hw_thermal_s: Annotated[float | None, metric("slowed_hw_thermal_s")]
    slowed_power_brake_s: Annotated[float | None, metric("slowed_power_brake_s")]


@dataclass(frozen=True, slots=True)
class HourRow:
    """Samples folded over one clock hour. Null is unknown; 3600 − covered_s is a gap."""

    hour_at: Annotated[datetime, about("Start of the hour, UTC.")]
    covered_s: Annotated[float, about("Seconds for which samples vouch.")]
    seconds_by_activity: Annotated[Mapping[Activity, float], about("Covered seconds by activity.")]
    joules_by_activity: Annotated[Mapping[Activity, float], about("Known energy by activity.")]
    energy_j: Annotated[float | None, about("All known energy of the hour.")]
    energy_method: Annotated[EnergyMethod | None, about("counter, integrated or mixed.")]
    energy_covered_s: Annotated[float, about("Seconds behind energy_j.")]
    allocated_s: Annotated[float, about("Seconds a workload held the GPU.")]
    active_s: Annotated[float, about("Seconds not empty and not parked.")]
    effective_s: Annotated[float, about("Seconds known to be effective.")]
    effective_unknown_s: Annotated[float, about("Active seconds where nothing can tell.")]
    busy_ratio: Annotated[float | None, metric("busy_ratio")]
    memory_busy_ratio: Annotated[float | None, metric("memory_busy_ratio")]
    sm_active_ratio: Annotated[float | None, metric("sm_active_ratio")]
    sm_occupancy_ratio: Annotated[float | None, metric("sm_occupancy_ratio")]
    tensor_active_ratio: Annotated[float | None, metric("tensor_active_ratio")]
    dram_active_ratio: Annotated[float | None, metric("dram_active_ratio")]
    fp32_active_ratio: Annotated[float | None, metric("fp32_active_ratio")]
    memory_used_bytes: Annotated[float | None, metric("memory_used_bytes")]
    memory_used_max_bytes: Annotated[float | None, about("Highest memory in use.")]
    power_w: Annotated[float | None, metric("power_w")]
    power_max_w: Annotated[float | None, about("Highest power reading.")]
    power_limit_w: Annotated[float | None, metric("power_limit_w")]
    empty_power_w: Annotated[float | None, about("Mean power while empty.")]
    parked_power_w: Annotated[float | None, about("Mean power while parked.")]
    sm_clock_hz: Annotated[float | None, about("Mean SM clock while active.")]
    throttled_s: Annotated[float | None, about("Active seconds with a thermal or brake bit set.")]
    temperature_max_c: Annotated[float | None, about("Highest temperature.")]
    pcie_bytes_per_s: Annotated[float | None, about("Mean traffic, both directions.")]
    nvlink_bytes_per_s: Annotated[float | None, about("Mean NVLink traffic, both directions.")]
    tensor_hmma_active_ratio: Annotated[float | None, metric("tensor_hmma_active_ratio")]
    tensor_imma_active_ratio: Annotated[float | None, metric("tensor_imma_active_ratio")]
    tensor_dfma_active_ratio: Annotated[float | None, metric("tensor_dfma_active_ratio")]
    fp64_active_ratio: Annotated[float | None, metric("fp64_active_ratio")]
    fp16_active_ratio: Annotated[float | None, metric("fp16_active_ratio")]
    slowed_power_s: Annotated[
        float | None, about("Seconds in which the power cap or the board's limit held clocks back.")
    ]
    slowed_thermal_s: Annotated[
        float | None, about("Seconds in which heat or the server's power brake held clocks back.")
    ]
    temperature_margin_min_c: Annotated[
        float | None, about("Least distance to the temperature at which the card slows down.")
    ]


KINDS: Final = (
    "xid, lost, stuck (a driver call does not return), found (either is over), driver, ecc, row_remap, retired_pages, "
    "recovery_action, pcie_link, mode, mig, unavailable; more may come."
)


@dataclass(frozen=True, slots=True)
class EventRow:
    """Something that happened to the GPU."""

    at: Annotated[datetime, about("When, UTC.")]
    kind: Annotated[str, about(KINDS)]
    message: Annotated[str, about("What happened, in one sentence.")]
    code: Annotated[int | None, about("Number of the event (XID); null: it has none.")]


SAME_NAME: Final = tuple(
    field.name
    for field in fields(HourRow)
    if field.name not in {"hour_at", "seconds_by_activity", "joules_by_activity"}
)


def find(scope: Scope, gpu_uuid: str) -> FleetGpu:
    """The GPU of that UUID.

    Raises:
        NotFoundError: none is known.
    """
    for gpu in fleet.gpus(scope.session):
        if gpu.identity.gpu_uuid == gpu_uuid:
            return gpu
    raise NotFoundError(f"no GPU {gpu_uuid}: GET /api/v1/gpus lists those known here")


def detail(scope: Scope, gpu_uuid: str) -> GpuDetail:
    """One GPU.

    Raises:
        NotFoundError: none is known.
    """
    identity = find(scope, gpu_uuid).identity
    only = Filters(gpu=(gpu_uuid,))
    (row,) = (row for row in gpus.rows(scope, only) if row.gpu_uuid == gpu_uuid)
    health = gpu_health(scope.session, gpu_uuid).get(gpu_uuid)
    return GpuDetail(
        **{field.name: getattr(row, field.name) for field in fields(GpuRow)},
        pci_bus_id=identity.pci_bus_id,
        driver_version=identity.driver_version,
        compute_capability=identity.compute_capability,
        max_sm_clock_hz=identity.max_sm_clock_hz,
        power_averaging_s=identity.power_averaging_s,
        health={} if health is None else health.facts,
        health_asked_at=None if health is None else from_ms(health.ts_ms),
    )


def samples(
    scope: Scope, gpu_uuid: str, *, after_ms: int | None = None, limit: int | None = None
) -> list[SampleRow]:
    """Samples of the window by time, the first ``limit`` of them; ``after_ms`` leaves out those up to then."""
    find(scope, gpu_uuid)
    window = scope.window if after_ms is None else Window(after_ms + 1, scope.window.to_ms)
    return [_sample(row) for row in sample_queries.gpu_samples(scope.session, gpu_uuid, window, limit)]


def _sample(row: GpuSample) -> SampleRow:
    return SampleRow(
        sampled_at=from_ms(row.ts_ms),
        span_s=row.span_ms / 1000,
        coverage_ratio=row.covered_ms / row.span_ms,
        activity=row.activity,
        energy_method=row.energy_method,
        **{name: row.values.get(name) for name in GPU_COLUMNS},
    )


def gpu_hours(scope: Scope, gpu_uuid: str) -> list[HourRow]:
    """Hours of the window by time."""
    find(scope, gpu_uuid)
    return [_hour(row) for row in hours.gpu_hours(scope.session, scope.window, [gpu_uuid])]


def _hour(row: GpuHour) -> HourRow:
    return HourRow(
        hour_at=from_ms(row.hour_ms),
        seconds_by_activity=row.seconds,
        joules_by_activity=row.joules,
        **{name: getattr(row, name) for name in SAME_NAME},
    )


def events(scope: Scope, gpu_uuid: str) -> list[EventRow]:
    """Events of the window by time."""
    find(scope, gpu_uuid)
    return [_event(row) for row in event_queries.gpu_events(scope.session, scope.window, gpu_uuid)]


def _event(row: GpuEvent) -> EventRow:
    return EventRow(at=from_ms(row.ts_ms), kind=row.kind, message=row.message, code=row.code)
