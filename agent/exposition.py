"""What the agent saw last as Prometheus text: its GPUs, the engines on them, the host, and its own cost.

Names are those of ``core.exposition``, as on the server's page. Two things differ: values are of one reading instead of
a sample, and counters are the totals that the driver and the engines give, so ``rate()`` works on them. What is not
current has no series: an old value is not a current one.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from core.exposition import (
    ENGINE_PREFIX,
    GPU_PREFIX,
    engine_labels,
    exported_name,
    family,
    gpu_labels,
    host_metric_name,
)
from core.metrics import ENGINE_METRICS, GPU_METRICS, HOST_METRICS, Kind, Metric
from core.readings import EngineIdentity, EngineReading, GpuIdentity, GpuReading
from core.samples import GpuEvent, HostSample
from core.units import MINUTE_MS

CURRENT_S: Final = MINUTE_MS / 1000
"""Readings wait up to 15 s for their profiling counters (``agent.windows``); after a minute something is wrong."""
AWAY: Final = frozenset({"lost", "stuck"})
"""Events after which a GPU's values are no longer true."""

Reading = TypeVar("Reading")
Dated = dict[str, tuple[float, Reading]]
"""Readings by whose they are, each with the second of a steady clock at which it came."""


class Exposition:
    """Keeps the newest of everything; fed by the hub, read by whoever serves the page.

    Args:
        host: name of this host in the store. version: of the agent.
        monotonic: seconds of a clock that never steps.
    """

    def __init__(self, host: str, version: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._host, self._version = host, version
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._gpus: dict[str, GpuIdentity] = {}
        self._engines: dict[str, EngineIdentity] = {}
        self._gpu_readings: Dated[GpuReading] = {}
        self._engine_readings: Dated[EngineReading] = {}
        self._host_sample: tuple[float, HostSample] | None = None
        self._away: set[str] = set()

    def take(self, things: Sequence[object]) -> None:
        """Note what came; what is none of this page's is passed over."""
        now_s = self._monotonic()
        with self._lock:
            for thing in things:
                if isinstance(thing, GpuReading):
                    self._gpu_readings[thing.gpu_uuid] = now_s, thing
                elif isinstance(thing, EngineReading):
                    self._engine_readings[thing.engine] = now_s, thing
                elif isinstance(thing, GpuIdentity):
                    self._gpus[thing.gpu_uuid] = thing
                elif isinstance(thing, EngineIdentity):
                    self._engines[thing.engine] = thing
                elif isinstance(thing, HostSample):
                    self._host_sample = now_s, thing
                elif isinstance(thing, GpuEvent):
                    self._note(thing)

    def text(self) -> str:
        """The whole page."""
        now_s = self._monotonic()
        with self._lock:
            gpus, engines, away = dict(self._gpus), dict(self._engines), set(self._away)
            gpu_readings = _current(self._gpu_readings, now_s)
            engine_readings = _current(self._engine_readings, now_s)
            host_sample = self._host_sample
        lines = [
            *_gpu_lines(gpus, gpu_readings, away),
            *_engine_lines(engines, engine_readings),
            *self._host_lines(host_sample, now_s),
        ]
        return "\n".join(lines) + "\n"

    def _note(self, event: GpuEvent) -> None:
        if event.kind in AWAY:
            self._away.add(event.gpu_uuid)
            self._gpu_readings.pop(event.gpu_uuid, None)
        elif event.kind == "found":
            self._away.discard(event.gpu_uuid)

    def _host_lines(self, dated: tuple[float, HostSample] | None, now_s: float) -> Iterator[str]:
        yield from family(
            "gpuwise_agent_build_info",
            "gauge",
            "1; the version of the agent is in the label.",
            [({"host": self._host, "version": self._version}, 1.0)],
        )
        if dated is None or now_s - dated[0] > CURRENT_S + dated[1].span_ms / 1000:
            return
        values = dated[1].values
        for metric in HOST_METRICS:
            if metric.name in values:
                series = [({"host": self._host}, values[metric.name])]
                yield from family(host_metric_name(metric), "gauge", metric.help, series)


def _current(dated: Dated[Reading], now_s: float) -> list[Reading]:
    """What came lately; the rest is forgotten, so that engines that come and go do not pile up."""
    for key in [key for key, (at_s, _) in dated.items() if now_s - at_s > CURRENT_S]:
        del dated[key]
    return [reading for _, reading in dated.values()]


def _gpu_lines(gpus: dict[str, GpuIdentity], readings: Sequence[GpuReading], away: set[str]) -> Iterator[str]:
    labels = {uuid: gpu_labels(identity) for uuid, identity in gpus.items()}
    seen = [(labels.get(one.gpu_uuid, {"gpu_uuid": one.gpu_uuid}), one) for one in readings]
    for metric in _read_as_such(GPU_METRICS):
        series = [(whose, one.values[metric.name]) for whose, one in seen if metric.name in one.values]
        yield from family(exported_name(metric, GPU_PREFIX), _type(metric), metric.help, series)
    yield from family(
        f"{GPU_PREFIX}_last_reading_timestamp_seconds",
        "gauge",
        "When the newest reading was taken.",
        [(whose, one.ts_ms / 1000) for whose, one in seen],
    )
    yield from family(
        f"{GPU_PREFIX}_answers",
        "gauge",
        "1; 0 while the GPU is lost or a driver call for it does not return.",
        [(whose, float(uuid not in away)) for uuid, whose in labels.items()],
    )


def _engine_lines(engines: dict[str, EngineIdentity], readings: Sequence[EngineReading]) -> Iterator[str]:
    seen = [
        (engine_labels(engines.get(one.engine) or EngineIdentity(one.engine, None, "")), one)
        for one in readings
    ]
    for metric in _read_as_such(ENGINE_METRICS):
        series = [(whose, one.values[metric.name]) for whose, one in seen if metric.name in one.values]
        yield from family(exported_name(metric, ENGINE_PREFIX), _type(metric), metric.help, series)


def _read_as_such(metrics: Sequence[Metric]) -> Iterator[Metric]:
    """Without those that fold another metric's readings (highest, lowest): Prometheus folds for itself."""
    return (metric for metric in metrics if metric.of is None)


def _type(metric: Metric) -> str:
    return "counter" if metric.kind is Kind.COUNTER else "gauge"
