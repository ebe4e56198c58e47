"""Megabytes of OpenMetrics text per second into a store, against only reading and unpacking the file."""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from agent.importing import run_import
from agent.sinks.database import DatabaseSink
from agent.sources.simulator.fleet import EngineProbe, Fleet, GpuProbe, fleet
from bench.databases import sqlite
from bench.measure import Figure, medians, seconds
from core.metrics import GPU_METRICS, Kind
from core.units import HOUR_MS, MINUTE_MS, SECOND_MS

START_MS: Final = 1_794_960_000_000
MINUTES: Final = 30
GPUS: Final = 4
ENGINE_NAMES: Final = {
    "running_requests": "vllm:num_requests_running",
    "waiting_requests": "vllm:num_requests_waiting",
    "kv_used_ratio": "vllm:kv_cache_usage_perc",
    "generated_tokens": "vllm:generation_tokens_total",
    "prompt_tokens": "vllm:prompt_tokens_total",
}
MEGA: Final = 1e6


def write_text(path: Path, of: Fleet) -> int:
    """Write half an hour of four GPUs and an engine at 1 Hz, as ``promtool`` would dump it; bytes of text."""
    instants = range(START_MS, START_MS + MINUTES * MINUTE_MS, SECOND_MS)
    written = 0
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=6) as file:
        for line in (
            *_gpu_lines(of.gpus[:GPUS], instants),
            *_engine_lines(of.engines[0], instants),
            "# EOF\n",
        ):
            written += file.write(line)
    return written


def _gpu_lines(probes: Sequence[GpuProbe], instants: range) -> Iterator[str]:
    for probe in probes:
        found = [reading for ts_ms in instants if (reading := probe.read(ts_ms)) is not None]
        identity = probe.identity
        labels = (
            f'gpu="{identity.index}",UUID="{identity.gpu_uuid}",device="nvidia{identity.index}",'
            f'modelName="{identity.model}",Hostname="{identity.host}"'
        )
        for metric in GPU_METRICS:
            if metric.dcgm is None or metric.of is not None or metric.name not in found[0].values:
                continue
            yield f"# TYPE {metric.dcgm} {'counter' if metric.kind is Kind.COUNTER else 'gauge'}\n"
            for reading in found:
                raw = reading.values[metric.name] / metric.dcgm_per_unit
                yield f"{metric.dcgm}{{{labels}}} {raw:.10g} {reading.ts_ms / 1000:.3f}\n"


def _engine_lines(probe: EngineProbe, instants: range) -> Iterator[str]:
    found = [reading for ts_ms in instants if (reading := probe.read(ts_ms)) is not None]
    instance = probe.identity.engine.partition("/")[0]
    labels = f'instance="{instance}",model_name="{probe.identity.model}",engine="0"'
    for name, exposed in ENGINE_NAMES.items():
        for reading in found:
            yield f"{exposed}{{{labels}}} {reading.values[name]:.10g} {reading.ts_ms / 1000:.3f}\n"


def run(runs: int) -> Iterator[Figure]:
    """Import into SQLite, and only read."""
    with TemporaryDirectory(prefix="gpuwise-bench-") as folder:
        path = Path(folder) / "fleet.prom.gz"
        size = write_text(path, fleet(START_MS + HOUR_MS))

        def read() -> float:
            def all_lines() -> None:
                with gzip.open(path, "rt", encoding="utf-8") as file:
                    for _line in file:
                        pass

            return seconds(all_lines)

        bare, ours = medians(runs, read, lambda: _import(path))
    yield Figure(
        "import", f"only read {size / MEGA:.0f} MB of gzipped text", size / MEGA / bare, "MB/s", runs
    )
    yield Figure(
        "import", "openmetrics → SQLite", size / MEGA / ours, "MB/s", runs, bare / ours, "read and gunzip"
    )


def _import(path: Path) -> float:
    with sqlite() as url:
        sink = DatabaseSink(url)
        try:
            took_s = seconds(lambda: _checked(path, sink))
        finally:
            sink.close()
        return took_s


def _checked(path: Path, sink: DatabaseSink) -> None:
    report = run_import("openmetrics", [path], sink)
    if report.refused or not report.kept:
        raise RuntimeError(f"the import kept {report.kept} and refused {report.refused} rows of its own text")
