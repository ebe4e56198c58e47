"""The simulated fleet as a source: identities, and readings of any GPU, engine and process at any instant.

Gauges are functions of the instant alone. Counters are kept by the probe that reads them, from its first reading
on: a counter means something only as a difference between two readings of one run.
"""

import uuid
from dataclasses import dataclass, field
from typing import Final

from agent.sources.simulator.cast import Cast, Seat, ServerSeat, cast
from agent.sources.simulator.load import Load
from agent.sources.simulator.program import Process
from agent.sources.simulator.sensors import Sensors
from core.readings import (
    EngineIdentity,
    EngineReading,
    GpuIdentity,
    GpuReading,
    ProcessReading,
    WorkloadKey,
)

_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "https://gpuwise.invalid/demo-fleet")
DRIVER_VERSION: Final = "580.95.05"


def gpu_uuid(host: str, index: int) -> str:
    """The GPU's UUID; the same in every demo database."""
    return f"GPU-{uuid.uuid5(_NAMESPACE, f'{host}/{index}')}"


@dataclass(slots=True)
class Counter:
    """A total that grows by the mean of two rates over the time between their readings (the fold's own rule)."""

    ts_ms: int | None = None
    rate: float = 0.0
    total: float = 0.0

    def advance(self, ts_ms: int, rate: float) -> float:
        """The total at ``ts_ms``, where it grows by ``rate`` per second; zero at the first call."""
        if self.ts_ms is not None and ts_ms > self.ts_ms:
            self.total += (ts_ms - self.ts_ms) * (rate + self.rate) / 2000
        self.ts_ms, self.rate = ts_ms, rate
        return self.total


@dataclass(slots=True)
class GpuProbe:
    """Reads one GPU of the fleet."""

    seat: Seat
    identity: GpuIdentity
    sensors: Sensors
    silences: tuple[tuple[int, int], ...]
    energy: Counter = field(default_factory=Counter)
    latest: tuple[int, Load] | None = None
    workload: tuple[Process, WorkloadKey] | None = None

    def load(self, ts_ms: int) -> Load:
        """What runs on it; asked once for a reading and its processes."""
        if self.latest is None or self.latest[0] != ts_ms:
            self.latest = (ts_ms, self.seat.program.load(ts_ms))
        return self.latest[1]

    def read(self, ts_ms: int) -> GpuReading | None:
        """Its readings; None while its agent is down."""
        values = self.sensors.read(self.load(ts_ms), ts_ms)
        joules = self.energy.advance(ts_ms, values["power_w"])
        if _is_silent(self.silences, ts_ms):
            return None
        values["energy_j"] = joules
        return GpuReading(self.identity.gpu_uuid, ts_ms, values)

    def processes(self, ts_ms: int) -> list[ProcessReading]:
        """Processes on it; none while its agent is down."""
        found = self.seat.program.process(ts_ms)
        if found is None or _is_silent(self.silences, ts_ms):
            return []
        load = self.load(ts_ms)
        if self.workload is None or self.workload[0] != found:
            self.workload = found, _workload(found, self.seat.host)
        return [
            ProcessReading(
                gpu_uuid=self.identity.gpu_uuid,
                ts_ms=ts_ms,
                pid=found.pid,
                workload=self.workload[1],
                memory_used_bytes=load.memory_used_bytes,
                busy_ratio=load.busy_ratio,
            )
        ]


@dataclass(slots=True)
class EngineProbe:
    """Scrapes one engine of the fleet."""

    seat: ServerSeat
    identity: EngineIdentity
    silences: tuple[tuple[int, int], ...]
    counters: dict[str, Counter] = field(default_factory=dict)

    def read(self, ts_ms: int) -> EngineReading | None:
        """Its gauges and counters; None while the agent of its host is down."""
        server = self.seat.server
        state = server.state(ts_ms)
        rates = server.rates(state)
        if not self.counters:
            self.counters = {name: Counter() for name in rates}
        totals = {name: self.counters[name].advance(ts_ms, rate) for name, rate in rates.items()}
        if _is_silent(self.silences, ts_ms):
            return None
        return EngineReading(self.identity.engine, ts_ms, server.gauges(state) | totals)


@dataclass(frozen=True, slots=True)
class Fleet:
    """All probes of one anchor. Make a new one for each run that reads: probes keep counters."""

    gpus: tuple[GpuProbe, ...]
    engines: tuple[EngineProbe, ...]


def _workload(process: Process, host: str) -> WorkloadKey:
    key = f"{process.pid}:{process.start_ms}"
    return WorkloadKey(kind="process", key=key, name=process.name, user=process.user, host=host)


def fleet(anchor_ms: int) -> Fleet:
    """The fleet whose history ends at ``anchor_ms``."""
    crew = cast(anchor_ms)
    return Fleet(
        gpus=tuple(_gpu_probe(crew, seat) for seat in crew.seats),
        engines=tuple(
            EngineProbe(seat, _engine_identity(seat), _silences(crew, seat.host)) for seat in crew.servers
        ),
    )


def _gpu_probe(crew: Cast, seat: Seat) -> GpuProbe:
    identity = GpuIdentity(
        gpu_uuid=gpu_uuid(seat.host, seat.index),
        host=seat.host,
        index=seat.index,
        model=seat.card.model,
        memory_total_bytes=seat.card.memory_total_bytes,
        pci_bus_id=f"00000000:{0x18 + 0x11 * seat.index:02X}:00.0",
        driver_version=DRIVER_VERSION,
        max_sm_clock_hz=seat.card.max_sm_clock_hz,
        power_limit_default_w=seat.card.power_limit_w,
    )
    seed = uuid.UUID(identity.gpu_uuid[4:]).int & 0xFFFF_FFFF
    return GpuProbe(seat, identity, Sensors(seat.card, seed), _silences(crew, seat.host))


def _silences(crew: Cast, host: str) -> tuple[tuple[int, int], ...]:
    return tuple((one.from_ms, one.to_ms) for one in crew.silences if one.host == host)


def _is_silent(silences: tuple[tuple[int, int], ...], ts_ms: int) -> bool:
    """Whether the host's agent was down."""
    return any(start <= ts_ms < end for start, end in silences) if silences else False


def _engine_identity(seat: ServerSeat) -> EngineIdentity:
    return EngineIdentity(
        engine=seat.engine,
        host=seat.host,
        kind="vllm",
        model=seat.server.model,
        settings=seat.server.settings,
        gpu_uuids=tuple(gpu_uuid(seat.host, index) for index in seat.indices),
    )
