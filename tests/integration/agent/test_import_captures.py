"""Real captures through import: figures that the raw files give by themselves."""

import gzip
import re
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from list_sink import ListSink

from agent.importing import run_import
from core.activity import Activity
from core.samples import EnergyMethod

pytestmark = pytest.mark.shared_data

RUNS = [
    "llama-2-13b-max_num_seqs_1",
    "llama-2-13b-max_num_seqs_8",
    "llama-2-13b-max_num_seqs_64",
    "llama-2-13b-max_num_seqs_128",
    "llama-2-13b-max_num_seqs_512",
    "opt-1.3b-max_num_seqs_1",
    "opt-1.3b-max_num_seqs_64",
    "opt-1.3b-max_num_seqs_512",
]


def raw_series(path: Path) -> Mapping[str, list[tuple[float, float]]]:
    """Points by metric name, read without any code of ours."""
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with gzip.open(path, "rt") as lines:
        for line in lines:
            if not line.startswith("#"):
                name, value, second = re.fullmatch(r"([^{]+)\{.*\} (\S+) (\S+)\n", line).groups()  # type: ignore[union-attr]
                series[name].append((float(second), float(value)))
    return series


@pytest.mark.parametrize("run", RUNS)
def test_energy_and_token_rates_of_a_vllm_run_are_those_of_its_series(shared_data: Path, run: str) -> None:
    path = shared_data / "openmetrics" / f"{run}.prom.gz"
    sink = ListSink()
    report = run_import("openmetrics", [path], sink)
    raw = raw_series(path)

    power = raw["DCGM_FI_DEV_POWER_USAGE"]
    joules = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(power))
    assert sum(s.values.get("energy_j", 0.0) for s in sink.gpu_rows) == pytest.approx(joules, rel=0.005)
    assert {s.energy_method for s in sink.gpu_rows} <= {EnergyMethod.INTEGRATED, None}
    memory = raw["DCGM_FI_DEV_FB_USED"]  # one run has a last reading without power
    assert sum(s.covered_ms for s in sink.gpu_rows) == round((memory[-1][0] - memory[0][0]) * 1000)

    tokens = raw["vllm:generation_tokens_total"]
    running = [second for second, value in raw["vllm:num_requests_running"] if value > 0]
    within = [value for second, value in tokens if running[0] <= second <= running[-1]]
    expected = (within[-1] - within[0]) / (running[-1] - running[0])
    busy_s = sum(s.busy_ms for s in sink.engine_rows) / 1000
    made = sum(s.values["generated_tokens"] for s in sink.engine_rows)
    short = running[-1] - running[0] < 120
    assert made == pytest.approx(tokens[-1][1] - tokens[0][1])
    assert made / busy_s == pytest.approx(expected, rel=0.08 if short else 0.03)

    assert (report.refused, report.overlapping) == (0, 0)
    assert report.kept == sum(map(len, raw.values()))
    (gpu,) = sink.gpu_ids.values()
    assert (gpu.model, gpu.memory_total_bytes) == ("NVIDIA H100 64GB HBM2e", 65_245 << 20)
    (engine,) = sink.engine_ids.values()
    assert (engine.kind, engine.model, engine.host) == ("vllm", run.split("-max", maxsplit=1)[0], gpu.host)
    assert engine.settings["block_size"] == "16"


def test_the_two_logs_of_a_benchmark_run_join_into_samples_with_power_and_memory(shared_data: Path) -> None:
    folder = shared_data / "bsc_h100_vllm" / "background" / "llama-2-13b" / "_8_"
    dmon = folder / "metrics_gpu_device_nvidia_smi_dom_0_server_0.csv.gz"
    sink = ListSink()
    report = run_import("dmon", [dmon], sink, start_ms=1_739_898_000_000)
    with gzip.open(dmon, "rt") as lines:
        rows = [line.split(",") for line in lines][2:]
    points = [(float(row[0]), float(row[2])) for row in rows]
    joules = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))
    assert sink.energy_j("GPU-ecf1cb8c-19f2-38d3-919c-dddb9e17183d") == pytest.approx(joules, rel=0.001)
    assert all("memory_used_bytes" in sample.values for sample in sink.gpu_rows)
    assert (report.kept, report.refused) == (2 * len(rows), 0)


def test_all_benchmark_logs_are_read_without_a_refused_row(shared_data: Path) -> None:
    paths = sorted((shared_data / "bsc_h100_vllm").glob("*/*/*/metrics_gpu_device_*.csv.gz"))
    sink = ListSink()
    report = run_import("nvidia-smi", paths, sink)
    assert len(paths) == len(report.files) == 66
    assert report.refused == 0
    assert [file.problems for file in report.files if file.problems] == []
    assert all(file.read == file.kept > 80 for file in report.files)
    assert len({sample.gpu_uuid for sample in sink.gpu_rows}) == 32


def test_the_tables_inside_the_captures_are_read_and_mig_utilization_stays_unknown(shared_data: Path) -> None:
    for path in sorted((shared_data / "nvidia_smi_captures").glob("*.txt.gz")):
        sink = ListSink()
        report = run_import("nvidia-smi", [path], sink)
        assert report.refused == 0
        assert report.kept >= 4
        assert all(s.values["power_w"] > 20 for s in sink.gpu_rows)
        is_mig = "mig" in path.name
        assert all(("busy_ratio" in s.values) is not is_mig for s in sink.gpu_rows)
        assert all((s.activity is Activity.UNKNOWN) is is_mig for s in sink.gpu_rows)
        (identity,) = sink.gpu_ids.values()
        assert identity.gpu_uuid == "GPU-00000000-0000-0000-0000-000000000000"
        assert identity.driver_version == path.name.split("__")[2].removesuffix(".txt.gz")


def test_exporter_text_without_times_needs_one_and_then_is_read(shared_data: Path) -> None:
    path = shared_data / "nvidia_smi_captures" / "linux-x86_64__nvidia-h200__590.48.01__load.metrics.gz"
    refused = ListSink()
    assert "--at" in run_import("openmetrics", [path], refused).files[0].problems[0]
    assert refused.gpu_rows == []
    sink = ListSink()
    run_import("openmetrics", [path], sink, at_ms=1_784_019_600_000)
    (sample,) = sink.gpu_rows
    assert sample.values["busy_ratio"] == 1
    assert sample.values["power_w"] > 500
    assert sink.gpu_ids[sample.gpu_uuid].model == "NVIDIA H200"
    assert {row.workload.name for row in sink.process_rows} == {"memhog", "gpu_burn"}
