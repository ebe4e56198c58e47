"""Windows of a Prometheus give exactly the samples that the scrapes themselves fold to, however the history is cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_server import Refusal, Server

from agent.fold import GpuFold
from agent.sources.prometheus.api import NotUnderstoodError, Series
from agent.sources.prometheus.catalog import look, scraped_every_ms
from agent.sources.prometheus.window import SPANS_MS, Reader, longest_ms, span_ms_of
from core.evidence import Window
from core.readings import GpuReading
from core.samples import GpuSample
from core.units import HOUR_MS, SECOND_MS

T0 = 1_794_960_000_000
GPU = {"UUID": "GPU-a", "gpu": "0", "Hostname": "n1", "instance": "n1:9400", "job": "dcgm"}


@dataclass
class Asking:
    """The API without the wire."""

    server: Server
    url: str = "http://prometheus"

    def range(self, query: str, from_ms: int, to_ms: int, step_ms: int) -> list[Series]:
        told = {"query": [query], "start": [from_ms / 1000], "end": [to_ms / 1000], "step": [step_ms / 1000]}
        try:
            answer = self.server.data("/api/v1/query_range", told)  # type: ignore[arg-type]
        except Refusal as refusal:
            raise NotUnderstoodError(refusal.error) from refusal
        return [Series(one["metric"], one["values"]) for one in answer["result"]]

    def label_values(self, label: str, match: str, from_ms: int, to_ms: int) -> list[str]:
        told = {"match[]": [match], "start": [from_ms / 1000], "end": [to_ms / 1000]}
        return self.server.data(f"/api/v1/label/{label}/values", told)  # type: ignore[arg-type,no-any-return]


def read(
    server: Server, window: Window, cuts: Sequence[int] = (), step_ms: int | None = None
) -> tuple[Reader, list[GpuSample]]:
    api = Asking(server)
    found = look(api, [], window)  # type: ignore[arg-type]
    every = scraped_every_ms(api, found, window)  # type: ignore[arg-type]
    reader = Reader(api, found, step_ms or every or 60_000, window.to_ms + HOUR_MS)  # type: ignore[arg-type]
    borders = [window.from_ms, *cuts, window.to_ms]
    samples = [
        sample
        for first, last in pairwise(borders)
        for sample in reader.read(["gpu GPU-a"], Window(first, last)).delivery.gpu_samples
    ]
    return reader, samples


@given(
    every_s=st.sampled_from([10, 15, 30, 60]),
    offset_ms=st.integers(0, 59_999),
    jitter_ms=st.lists(st.integers(0, 900), min_size=7, max_size=7),
    watts=st.lists(st.integers(50, 700), min_size=5, max_size=5),
    gap=st.tuples(st.integers(0, 120), st.integers(0, 60)),
    cut=st.integers(1, 2),
)
def test_samples_are_those_that_the_scrapes_fold_to(
    *,
    every_s: int,
    offset_ms: int,
    jitter_ms: list[int],
    watts: list[int],
    gap: tuple[int, int],
    cut: int,
) -> None:
    window = Window(T0, T0 + 3 * HOUR_MS)
    gap_ms = range(T0 + gap[0] * 60_000, T0 + (gap[0] + gap[1]) * 60_000)
    scrapes = range(T0 - HOUR_MS + offset_ms, window.to_ms + HOUR_MS, every_s * SECOND_MS)
    times = [ts + jitter_ms[i % 7] for i, ts in enumerate(scrapes) if ts not in gap_ms]
    joules = 0
    counted, drawn = [], []
    for i, ts in enumerate(times):
        joules += watts[i // 9 % 5] * every_s
        counted.append((ts, float(joules * 1000)))
        drawn.append((ts, float(watts[i // 9 % 5])))
    server = Server()
    server.add("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", GPU, list(counted))
    server.add("DCGM_FI_DEV_POWER_USAGE", GPU, list(drawn))
    step_ms = every_s * SECOND_MS
    _reader, samples = read(server, window, [T0 + cut * HOUR_MS], step_ms)
    fold = GpuFold(span_ms=span_ms_of(step_ms))
    whole = []
    for (ts, mj), (_ts, w) in zip(counted, drawn, strict=True):
        whole += fold.add(GpuReading("GPU-a", ts, {"energy_j": mj * 1e-3, "power_w": w}))
    whole += fold.flush()
    # A scrape that jitter carries over the border of a step is passed over: its neighbours stand for it.
    by_ts = {one.ts_ms: one for one in samples}
    wanted = {one.ts_ms: one for one in whole if window.from_ms <= one.ts_ms < window.to_ms}
    total_ms = sum(one.covered_ms for one in wanted.values())
    assert sum(one.covered_ms for one in samples) == pytest.approx(total_ms, abs=4 * step_ms)
    same = [ts for ts in wanted if ts in by_ts and by_ts[ts].covered_ms == wanted[ts].covered_ms]
    for ts in same:
        ours, its = by_ts[ts].values, wanted[ts].values
        assert ours["energy_j"] == pytest.approx(its["energy_j"], rel=0.25, abs=700 * every_s)
    energy = sum(wanted[ts].values.get("energy_j", 0.0) for ts in wanted)
    assert sum(s.values.get("energy_j", 0.0) for s in samples) == pytest.approx(
        energy, rel=1e-3, abs=3 * 700 * every_s
    )


def test_without_jitter_they_are_the_same_to_the_last_bit() -> None:
    window = Window(T0, T0 + 2 * HOUR_MS)
    times = range(T0 - HOUR_MS + 7_123, window.to_ms + HOUR_MS, 15 * SECOND_MS)
    server = Server()
    server.add("DCGM_FI_DEV_POWER_USAGE", GPU, [(ts, float(ts // 15_000 * 37 % 500)) for ts in times])
    reader, samples = read(server, window)
    assert (reader.step_ms, reader.span_ms) == (15_000, 20_000)
    fold = GpuFold(span_ms=20_000)
    whole = [
        s
        for ts in times
        for s in fold.add(GpuReading("GPU-a", ts, {"power_w": float(ts // 15_000 * 37 % 500)}))
    ]
    assert samples == [one for one in whole if window.from_ms <= one.ts_ms < window.to_ms]


def test_a_staleness_marker_ends_a_series_at_once() -> None:
    window = Window(T0, T0 + HOUR_MS)
    times = range(T0, T0 + HOUR_MS // 2, 30_000)
    server = Server()
    server.add("DCGM_FI_DEV_POWER_USAGE", GPU, [*((ts, 100.0) for ts in times), (T0 + HOUR_MS // 2, None)])
    _reader, samples = read(server, window)
    assert max(s.ts_ms + s.covered_ms for s in samples) == T0 + HOUR_MS // 2 - 30_000


def test_a_card_of_another_pod_is_one_card_without_a_gap() -> None:
    window = Window(T0, T0 + HOUR_MS)
    times = range(T0 - 600_000, T0 + HOUR_MS + 600_000, 30_000)
    middle = T0 + HOUR_MS // 2
    server = Server()
    for name, value in (("DCGM_FI_DEV_FB_USED", 1000.0), ("DCGM_FI_DEV_POWER_USAGE", 100.0)):
        for pod, part in (
            ("a-1", [t for t in times if t < middle]),
            ("b-1", [t for t in times if t >= middle]),
        ):
            server.add(name, {**GPU, "pod": pod, "namespace": "ml"}, [(ts, value) for ts in part])
    reader, samples = read(server, window)
    assert sum(s.covered_ms for s in samples) == HOUR_MS
    told = reader.read(["gpu GPU-a"], window).delivery.process_samples
    assert {(s.workload.key, s.memory_used_bytes) for s in told} == {
        ("ml/a-1", 1000.0 * 2**20),
        ("ml/b-1", 1000.0 * 2**20),
    }
    assert all((s.workload.name == "a-1") == (s.ts_ms < middle) for s in told)


def test_slices_have_memory_of_their_own_and_the_card_its_power() -> None:
    window = Window(T0, T0 + HOUR_MS)
    times = range(T0 - 600_000, T0 + HOUR_MS + 600_000, 60_000)
    server = Server()
    for part, pod in (("1", "x"), ("2", "y")):
        labels = {**GPU, "GPU_I_ID": part, "GPU_I_PROFILE": "1g.10gb", "pod": pod, "modelName": "NVIDIA H100"}
        server.add("DCGM_FI_DEV_FB_USED", labels, [(ts, 100.0 * int(part)) for ts in times])
        server.add("DCGM_FI_DEV_POWER_USAGE", labels, [(ts, 300.0) for ts in times])
    reader, _samples = read(server, window)
    told = Reader(reader.api, reader.found, 60_000, window.to_ms).read(["gpu GPU-a"], window).delivery
    uuids = {s.gpu_uuid for s in told.gpu_samples}
    assert uuids == {"GPU-a", "MIG-GPU-a/1/0", "MIG-GPU-a/2/0"}
    assert {one.gpu_uuid: one.model for one in told.gpus}["MIG-GPU-a/2/0"] == "NVIDIA H100 MIG 1g.10gb"
    assert {(s.gpu_uuid, s.workload.name) for s in told.process_samples} == {
        ("MIG-GPU-a/1/0", "x"),
        ("MIG-GPU-a/2/0", "y"),
    }


def test_values_that_are_none_or_cannot_be_true_are_left_out_and_counted() -> None:
    window = Window(T0, T0 + HOUR_MS)
    times = range(T0 - 600_000, T0 + HOUR_MS + 600_000, 60_000)
    server = Server()
    server.add("DCGM_FI_DEV_FB_USED", GPU, [(ts, 100.0) for ts in times])
    blank = {2: float("nan"), 3: 2147483632.0, 4: 9e9}
    server.add("DCGM_FI_DEV_POWER_USAGE", GPU, [(ts, blank.get(i % 7, 200.0)) for i, ts in enumerate(times)])
    reader, samples = read(server, window)
    assert {s.values["power_w"] for s in samples if "power_w" in s.values} == {200.0}
    assert reader.tally.unknown > 0
    assert reader.tally.refused > 0
    assert any("DCGM_FI_DEV_POWER_USAGE" in sentence for sentence in reader.tally.problems)


def test_samples_are_no_shorter_than_the_step_and_never_live_ones() -> None:
    for step_s in range(10, 241):
        span = span_ms_of(step_s * SECOND_MS)
        assert span >= step_s * SECOND_MS
        assert HOUR_MS % span == 0
        assert longest_ms(step_s * SECOND_MS) >= HOUR_MS
    assert 10_000 not in SPANS_MS


def test_engines_of_every_kind_are_timed_by_a_metric_of_their_own() -> None:
    window = Window(T0, T0 + HOUR_MS)
    times = range(T0 - 600_000, T0 + HOUR_MS + 600_000, 60_000)
    server = Server()
    names = {
        "a:1": [
            "sglang:num_running_reqs",
            *(f"sglang:{n}" for n in ("token_usage", "num_queue_reqs", "gen_throughput")),
        ],
        "b:1": ["tgi_batch_current_size", "tgi_queue_size"],
        "c:1": ["vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:cache_config_info"],
        "d:1": ["llamacpp:requests_processing", "llamacpp:requests_deferred"],
    }
    for instance, of_kind in names.items():
        for name in of_kind:
            server.add(name, {"instance": instance, "job": "llm"}, [(ts, 1.0) for ts in times])
    api = Asking(server)
    found = look(api, [], window)  # type: ignore[arg-type]
    reader = Reader(api, found, 60_000, window.to_ms + HOUR_MS)  # type: ignore[arg-type]
    told = reader.read([f"engine {instance}" for instance in names], window)
    assert told.owners == {f"engine {instance}" for instance in names}
    assert {one.engine for one in told.delivery.engine_samples} == {f"{instance}/0" for instance in names}
    assert all(one.busy_ms == one.covered_ms == 60_000 for one in told.delivery.engine_samples)
