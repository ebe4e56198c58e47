"""The fleet's newest samples and gpuwise's own health as Prometheus text.

A sample's energy is that of its interval, not a counter's total, and is left out: rate ``power`` instead, or scrape
the agent. A GPU whose newest sample is older than two minutes has no series: an old value is not a current one.
"""

from collections.abc import Iterator
from typing import Final

from api.resources.health import Health
from core.exposition import GPU_PREFIX as PREFIX
from core.exposition import exported_name, family, gpu_labels
from core.metrics import GPU_METRICS, Fold
from core.samples import GpuSample
from core.units import MINUTE_MS
from store.queries.fleet import FleetGpu

CURRENT_MS: Final = 2 * MINUTE_MS


def text(gpus: list[FleetGpu], health: Health, now_ms: int) -> str:
    """The whole page."""
    lines = [*_gpu_lines(gpus, now_ms), *_own_lines(health)]
    return "\n".join(lines) + "\n"


def _gpu_lines(gpus: list[FleetGpu], now_ms: int) -> Iterator[str]:
    current = [
        (gpu_labels(gpu.identity), gpu.latest)
        for gpu in gpus
        if gpu.latest is not None and now_ms - (gpu.latest.ts_ms + gpu.latest.span_ms) <= CURRENT_MS
    ]
    for metric in GPU_METRICS:
        if metric.fold is Fold.DELTA:
            continue
        series = [
            (labels, sample.values[metric.name]) for labels, sample in current if metric.name in sample.values
        ]
        yield from family(exported_name(metric, PREFIX), "gauge", metric.help, series)
    yield from family(
        f"{PREFIX}_activity",
        "gauge",
        "What the GPU was doing in its newest sample: 1 for the activity in the label.",
        [({**labels, "activity": sample.activity.value}, 1.0) for labels, sample in current],
    )
    yield from family(
        f"{PREFIX}_coverage_ratio",
        "gauge",
        "Share of the newest sample's interval that readings vouch for.",
        [(labels, _coverage(sample)) for labels, sample in current],
    )
    yield from family(
        f"{PREFIX}_last_sample_timestamp_seconds",
        "gauge",
        "End of the newest sample, of every GPU ever seen.",
        [(gpu_labels(gpu.identity), gpu.last_seen_ms / 1000) for gpu in gpus if gpu.last_seen_ms is not None],
    )


def _coverage(sample: GpuSample) -> float:
    return sample.covered_ms / sample.span_ms


def _own_lines(health: Health) -> Iterator[str]:
    yield from family(
        "gpuwise_build_info",
        "gauge",
        "1; the version and whether the fleet is simulated are in the labels.",
        [({"version": health.version, "simulated": str(health.simulated).lower()}, 1.0)],
    )
    if health.freshness_s is not None:
        yield from family(
            "gpuwise_freshness_seconds",
            "gauge",
            "Age of the newest sample of the fleet.",
            [({}, health.freshness_s)],
        )
    yield from family(
        "gpuwise_rollup_pending_hours",
        "gauge",
        "Hours that samples touched and the roll-up has not folded yet.",
        [({}, float(health.rollup_pending))],
    )
    yield from family(
        "gpuwise_job_last_success",
        "gauge",
        "1 when the job's last run succeeded, 0 when it failed.",
        [({"job": job.name}, float(job.ok)) for job in health.jobs if job.ok is not None],
    )
    yield from family(
        "gpuwise_job_last_run_timestamp_seconds",
        "gauge",
        "When the job last started.",
        [({"job": job.name}, job.started_at.timestamp()) for job in health.jobs],
    )
