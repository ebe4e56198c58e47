"""The simulated fleet as dcgm-exporter and vLLM servers that a Prometheus scrapes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from prometheus_server import Server

from agent.sources.simulator.fleet import EngineProbe, GpuProbe
from core.gpu_metrics import GPU_METRICS
from core.readings import GpuIdentity, GpuReading

DCGM: Final = {
    metric.name: (metric.dcgm, metric.dcgm_per_unit)
    for metric in GPU_METRICS
    if metric.dcgm is not None and metric.of is None
}
VLLM: Final = {
    "running_requests": "vllm:num_requests_running",
    "waiting_requests": "vllm:num_requests_waiting",
    "kv_used_ratio": "vllm:kv_cache_usage_perc",
    "generated_tokens": "vllm:generation_tokens_total",
    "prompt_tokens": "vllm:prompt_tokens_total",
}


@dataclass(frozen=True)
class Recorded:
    """A GPU that says what it said before."""

    identity: GpuIdentity
    readings: dict[int, GpuReading | None]

    def read(self, ts_ms: int) -> GpuReading | None:
        return self.readings[ts_ms]


def scrape_gpu(
    server: Server,
    probe: GpuProbe | Recorded,
    instants: range,
    *,
    without: frozenset[str] = frozenset(),
    seen: Callable[[int], bool] = lambda _ts_ms: True,
    change: Callable[[str, int, float], float] = lambda _name, _ts_ms, value: value,
    **labels: str,
) -> None:
    """Every metric of a GPU at ``instants`` for which ``seen``; ``change`` may alter a raw figure."""
    known = probe.identity
    told = {
        "gpu": str(known.index),
        "UUID": known.gpu_uuid,
        "device": f"nvidia{known.index}",
        "modelName": known.model or "",
        "Hostname": known.host or "",
        "instance": f"{known.host}:9400",
        "job": "dcgm-exporter",
        **labels,
    }
    readings = [reading for ts_ms in instants if (reading := probe.read(ts_ms)) is not None]
    for name, (exposed, per_unit) in DCGM.items():
        points = [
            (one.ts_ms, change(name, one.ts_ms, one.values[name] / per_unit))
            for one in readings
            if name in one.values and seen(one.ts_ms)
        ]
        if points and name not in without:
            server.add(exposed, told, points)


def scrape_engine(server: Server, probe: EngineProbe, instants: range, **labels: str) -> None:
    """Every metric of an engine at ``instants``."""
    instance = probe.identity.engine.partition("/")[0]
    told = {
        "instance": instance,
        "job": "vllm",
        "model_name": probe.identity.model or "",
        "engine": "0",
        **labels,
    }
    readings = [reading for ts_ms in instants if (reading := probe.read(ts_ms)) is not None]
    for name, exposed in VLLM.items():
        points = [(one.ts_ms, one.values[name]) for one in readings if name in one.values]
        server.add(exposed, told, points)
