"""One sample of every GPU of this host, as JSON-ready objects: a look at what the agent would store."""

import time
from dataclasses import asdict
from typing import Any, Final

from agent.attribution import Attribution
from agent.collectors.dcgm import DcgmCollector
from agent.collectors.engines import EngineCollector
from agent.collectors.host import HostCollector
from agent.fold import GpuFold
from agent.intake import Intake, Something
from agent.reader import Reader
from agent.scraper import Scraper
from core.clock import SteadyClock, iso
from core.errors import GpuwiseError
from core.metrics import ENGINE_COLUMNS, GPU_COLUMNS, HOST_COLUMNS
from core.readings import EngineIdentity, EngineReading, GpuHealth, GpuReading, ProcessReading
from core.samples import GpuSample
from core.settings import Settings
from core.version import VERSION

LOOK_S: Final = 4.0
"""Long enough for two pairs of profiling counters a second apart after the probe that finds whether there are any."""
INTERVAL_S: Final = 0.5
GPM_S: Final = 1.0
START_S: Final = 25.0
"""How long the first reading may take: attaching cards without persistence mode takes seconds each."""
_ONE_INTERVAL_MS: Final = 1 << 60
"""A span that no border of ours falls into."""


class _Seen:
    """Everything that came by during the look."""

    def __init__(self) -> None:
        self.fold = GpuFold(span_ms=_ONE_INTERVAL_MS)
        self.first_ms: dict[str, int] = {}
        self.processes: dict[str, dict[int, ProcessReading]] = {}
        self.health: dict[str, GpuHealth] = {}
        self.engines: dict[str, EngineIdentity] = {}
        self.engine_readings: dict[str, EngineReading] = {}

    def take(self, things: list[Something]) -> None:
        for thing in things:
            if isinstance(thing, GpuReading):
                self.first_ms.setdefault(thing.gpu_uuid, thing.ts_ms)
                self.fold.add(thing)
            elif isinstance(thing, ProcessReading):
                self.processes.setdefault(thing.gpu_uuid, {})[thing.pid] = thing
            elif isinstance(thing, GpuHealth):
                self.health[thing.gpu_uuid] = thing
            elif isinstance(thing, EngineIdentity):
                self.engines[thing.engine] = thing
            elif isinstance(thing, EngineReading):
                self.engine_readings[thing.engine] = thing


def once(settings: Settings, host: str) -> list[dict[str, Any]]:
    """Read every GPU for some seconds.

    Returns:
        One object per GPU: identity, interval, activity, every metric of the catalogue (null: unknown), health,
        processes with what they belong to, engines that run on it, and the host.

    Raises:
        GpuwiseError: the driver cannot be used.
    """
    clock = SteadyClock()
    collector = HostCollector(host, version=VERSION)
    collector.sample(clock.ms_now(), 0, {})
    intake = Intake(host, Attribution(host), clock)
    reader = Reader(interval_s=INTERVAL_S, gpm_s=GPM_S)
    seen = _Seen()
    started = time.monotonic()
    until = started + START_S
    try:
        while time.monotonic() < until:
            for frame in reader.poll(0.2):
                if frame[0] == "down":
                    raise GpuwiseError(frame[2])
                if frame[0] == "tick" and until == started + START_S:
                    until = time.monotonic() + LOOK_S
                seen.take(intake.take(frame))
    finally:
        reader.close()
    seen.take(intake.release())
    scraper = Scraper(EngineCollector(host, settings.engine_urls), DcgmCollector(settings.dcgm_url), clock)
    scraper.servers = intake.servers
    scraper.round(with_dcgm=False)
    while not scraper.found.empty():
        seen.take([scraper.found.get()])
    sample = collector.sample(clock.ms_now(), _ONE_INTERVAL_MS, {})
    figures = {} if sample is None else sample.values
    machine = {**asdict(collector.identity()), **{name: figures.get(name) for name in HOST_COLUMNS}}
    return [_object(one, intake, seen, machine) for one in seen.fold.flush()]


def _object(sample: GpuSample, intake: Intake, seen: _Seen, machine: dict[str, Any]) -> dict[str, Any]:
    uuid = sample.gpu_uuid
    health = seen.health.get(uuid)
    return {
        **asdict(intake.gpus[uuid]),
        "at": iso(seen.first_ms[uuid]),
        "covered_s": sample.covered_ms / 1000,
        "activity": sample.activity.value,
        "energy_method": None if sample.energy_method is None else sample.energy_method.value,
        **{name: sample.values.get(name) for name in GPU_COLUMNS},
        "health": None if health is None else dict(health.facts),
        "processes": [_process(one) for one in seen.processes.get(uuid, {}).values()],
        "engines": [_engine(one, seen) for one in seen.engines.values() if uuid in one.gpu_uuids],
        "machine": machine,
    }


def _process(reading: ProcessReading) -> dict[str, Any]:
    workload = reading.workload
    return {
        "pid": reading.pid,
        "name": workload.name,
        "user": workload.user,
        "memory_used_bytes": reading.memory_used_bytes,
        "busy_ratio": reading.busy_ratio,
        "cpu_ratio": reading.cpu_ratio,
        "cpu_thread_ratio": reading.cpu_thread_ratio,
        "workload": {"kind": workload.kind, "key": workload.key, **dict(workload.attributes)},
    }


def _engine(identity: EngineIdentity, seen: _Seen) -> dict[str, Any]:
    reading = seen.engine_readings.get(identity.engine)
    values = {} if reading is None else reading.values
    return {**asdict(identity), **{name: values.get(name) for name in ENGINE_COLUMNS}}
