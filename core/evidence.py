"""What a rule may see: hours, identities, prices and the site's settings. Built by the store, read by the advisor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from core.days import EngineDay, GpuDay, HostDay, engine_day, folded_by_day, gpu_day, host_day
from core.histogram import Histogram
from core.hours import EngineHour, GpuHour, HostHour
from core.readings import EngineIdentity, GpuIdentity, WorkloadKey
from core.samples import GpuEvent
from core.series import HourSeries, parts_of
from core.units import HOUR_MS


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time, start inclusive, end exclusive, UTC epoch milliseconds."""

    from_ms: int
    to_ms: int

    @property
    def hours(self) -> float:
        """Length in hours."""
        return (self.to_ms - self.from_ms) / HOUR_MS


@dataclass(frozen=True, slots=True)
class Price:
    """Price of one GPU-hour in force: the user's row or the catalogue's median.

    Attributes:
        usd_per_gpu_hour: dollars.
        basis: for people: ``your price of 2026-09-01`` or ``catalogue: median on-demand of H100-SXM5-80GB, …``.
        billing: ``on_demand``, ``reserved``, ``spot``, ``committed``, ``owned``.
        gpus_per_unit: GPUs that can only be released together (a node of 8); 1 when each can.
        as_of: ISO date of the price.
        from_user: the user gave it (else the catalogue did). price_id: the user's row.
        commitment: name of the commitment that it belongs to; None: none.
        list_usd_per_gpu_hour: the catalogue's price beside it; None where it lists none.
    """

    usd_per_gpu_hour: Decimal
    basis: str
    billing: str
    gpus_per_unit: int
    as_of: str
    from_user: bool
    price_id: int | None = None
    commitment: str | None = None
    list_usd_per_gpu_hour: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """The site's settings that advice and ledger need (``core.settings`` by the same names).

    ``hourly_usd_per_kwh``: electricity price of each hour of the day, 0 to 23 UTC, where the tariff has such; None: one
    price all day, or unknown.
    """

    tariff_usd_per_kwh: float | None
    pue: float
    host_share_ratio: float
    carbon_g_per_kwh: float | None
    pays_for_power: bool
    billing: str
    own_capex_usd: float | None = None
    own_gpu_count: int = 8
    own_life_years: float = 4.0
    own_residual_ratio: float = 0.15
    own_cost_of_capital_ratio: float = 0.08
    own_maintenance_ratio: float = 0.05
    own_staff_usd_per_year: float = 18_000.0
    own_idle_kw: float = 2.2
    own_active_kw: float = 6.2
    hourly_usd_per_kwh: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a day that has not 24 hours."""
        if self.hourly_usd_per_kwh is not None and len(self.hourly_usd_per_kwh) != 24:
            raise ValueError(
                f"hourly_usd_per_kwh has {len(self.hourly_usd_per_kwh)} prices: give 24, hour 0 UTC first"
            )


@dataclass(frozen=True, slots=True)
class WorkloadUse:
    """One workload on one GPU over the window, from its usage hours.

    Attributes:
        workload: which. first_ms, last_ms: start of its first and end of its last hour there.
        allocated_s, active_s: GPU-seconds, split where GPUs are shared.
        cpu_ratio, cpu_thread_ratio: means over the time in which they are known; 1 is one core, one thread at work.
        shared: other workloads held the GPU in the same hours.
    """

    workload: WorkloadKey
    first_ms: int
    last_ms: int
    allocated_s: float
    active_s: float
    cpu_ratio: float | None = None
    cpu_thread_ratio: float | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class HostEvidence:
    """One host over the window: its hours with an agent that reads them, which may be read only when touched."""

    host: str
    hours: Sequence[HostHour] = ()
    cpu_count: int | None = None

    @property
    def days(self) -> Sequence[HostDay]:
        """Its days; where they are stored, no hour is read for them."""
        hours = self.hours
        return hours.days if isinstance(hours, HourSeries) else folded_by_day(hours, host_day)


@dataclass(frozen=True, slots=True)
class GpuEvidence:
    """One GPU over the window.

    Attributes:
        identity: as the driver names it. gpu_key: row of the GPU catalogue; None when the name resolves to none.
        hours: its hours in the window, by time; missing hours are gaps. They may be read only when touched: look at
            ``days`` or ``parts`` first, which hold what adds up.
        first_sample_ms, last_sample_ms: of all its data up to the window's end, not only the window's.
        price: in force at the window's end; None: unpriced.
        bare_idle_w: learned power while no process holds it (p1 of empty time); None when never seen empty.
        host_gpu_count: GPUs known on its host.
        uses: workloads that held it, most GPU-seconds first. events: in the window, by time.
        health: facts of ``core.readings.GpuHealth`` as last asked; empty when never. health_ms: when that was.
    """

    identity: GpuIdentity
    gpu_key: str | None
    hours: Sequence[GpuHour]
    first_sample_ms: int
    last_sample_ms: int
    price: Price | None
    bare_idle_w: float | None
    host_gpu_count: int
    uses: tuple[WorkloadUse, ...] = ()
    events: tuple[GpuEvent, ...] = ()
    health: Mapping[str, float | str] = field(default_factory=dict)
    health_ms: int | None = None

    @property
    def gpu_uuid(self) -> str:
        """UUID."""
        return self.identity.gpu_uuid

    @property
    def days(self) -> Sequence[GpuDay]:
        """Its days; where they are stored, no hour is read for them."""
        hours = self.hours
        return hours.days if isinstance(hours, HourSeries) else folded_by_day(hours, gpu_day)

    @property
    def parts(self) -> Sequence[GpuHour]:
        """What to add up instead of its hours: whole days where they are stored."""
        return parts_of(self.hours)

    @property
    def covered_h(self) -> float:
        """Hours for which samples vouch."""
        return sum(part.covered_s for part in self.parts) / 3600

    @property
    def active_h(self) -> float:
        """Hours with work."""
        return sum(part.active_s for part in self.parts) / 3600

    @property
    def energy_j(self) -> float | None:
        """Known energy; None when none is known."""
        known = [part.energy_j for part in self.parts if part.energy_j is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class EngineEvidence:
    """One LLM engine over the window.

    Attributes:
        identity: name, kind, model, published settings.
        gpu_uuids: GPUs it runs on; empty when that could not be told. join: how it was told: ``process``,
            ``host`` (only engine and GPUs of that host) or ``unknown``.
        hours: its hours in the window, by time; they may be read only when touched, see ``days`` and ``parts``.
    """

    identity: EngineIdentity
    gpu_uuids: tuple[str, ...]
    join: str
    hours: Sequence[EngineHour]

    @property
    def days(self) -> Sequence[EngineDay]:
        """Its days; where they are stored, no hour is read for them."""
        hours = self.hours
        return hours.days if isinstance(hours, HourSeries) else folded_by_day(hours, engine_day)

    @property
    def parts(self) -> Sequence[EngineHour]:
        """What to add up instead of its hours: merged ones where they are stored."""
        return parts_of(self.hours)

    @property
    def seen_hours(self) -> Sequence[int]:
        """Starts of its hours with samples; where days are stored, no hour is read for them."""
        hours = self.hours
        if isinstance(hours, HourSeries):
            return hours.starts_with("covered_s")
        return [hour.hour_ms for hour in hours if hour.covered_s > 0]

    @property
    def busy_hours(self) -> Sequence[int]:
        """Starts of its hours with requests running; where days are stored, no hour is read for them."""
        hours = self.hours
        if isinstance(hours, HourSeries):
            return hours.starts_with("busy_s")
        return [hour.hour_ms for hour in hours if hour.busy_s > 0]

    @property
    def has_paired_prompts(self) -> bool:
        """No hour knows only one of prompt tokens and prompt tokens from the cache: their sums can be compared."""
        hours = self.hours
        if isinstance(hours, HourSeries):
            return hours.every_day("paired")
        return all((hour.prompt_tokens is None) == (hour.cached_prompt_tokens is None) for hour in hours)

    @property
    def covered_s(self) -> float:
        """Seconds seen."""
        return sum(part.covered_s for part in self.parts)

    @property
    def busy_s(self) -> float:
        """Seconds with requests running."""
        return sum(part.busy_s for part in self.parts)

    @property
    def running(self) -> Histogram:
        """Batch size over busy time."""
        return Histogram.merged(part.running for part in self.parts)

    @property
    def waiting(self) -> Histogram:
        """Waiting requests over busy time."""
        return Histogram.merged(part.waiting for part in self.parts)

    @property
    def kv_used(self) -> Histogram:
        """KV-cache use over busy time."""
        return Histogram.merged(part.kv_used for part in self.parts)

    def total(self, name: str) -> float | None:
        """Sum of an hour field such as ``generated_tokens``; None when no hour knows it."""
        known = [value for part in self.parts if (value := getattr(part, name)) is not None]
        return float(sum(known)) if known else None


def _place(gpu: GpuEvidence) -> tuple[bool, str, bool, int, str]:
    host, index = gpu.identity.host, gpu.identity.index
    return (host is not None, host or "", index is None, index or 0, gpu.gpu_uuid)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Evidence:
    """The fleet over one window: all a run of the rules may see. What is derived from it may be kept as long as it lives."""

    now_ms: int
    window: Window
    gpus: tuple[GpuEvidence, ...]
    engines: tuple[EngineEvidence, ...]
    site: Site
    hosts: tuple[HostEvidence, ...] = ()

    @classmethod
    def joined(cls, chunks: Sequence["Evidence"]) -> "Evidence":
        """Chunks of one window as one piece, in the order of the fleet: GPUs by host and index, engines by name."""
        first = chunks[0]
        return cls(
            now_ms=first.now_ms,
            window=first.window,
            gpus=tuple(sorted((gpu for chunk in chunks for gpu in chunk.gpus), key=_place)),
            engines=tuple(
                sorted((e for chunk in chunks for e in chunk.engines), key=lambda e: e.identity.engine)
            ),
            site=first.site,
            hosts=tuple(sorted((host for chunk in chunks for host in chunk.hosts), key=lambda h: h.host)),
        )

    def gpu(self, gpu_uuid: str) -> GpuEvidence | None:
        """The GPU of that UUID, when it has evidence in the window."""
        return next((gpu for gpu in self.gpus if gpu.gpu_uuid == gpu_uuid), None)

    def host(self, name: str | None) -> HostEvidence | None:
        """The host of that name, when its agent told of it in the window."""
        return next((host for host in self.hosts if host.host == name), None)
