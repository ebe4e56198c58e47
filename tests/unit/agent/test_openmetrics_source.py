"""Exposition text in any order becomes readings, and what is wrong in it has a sentence."""

import tracemalloc
from pathlib import Path

import pytest

from agent.sources.openmetrics import OpenMetrics
from agent.sources.report import FileReport, FormatError
from agent.sources.series import Thing
from core.readings import EngineIdentity, EngineReading, GpuIdentity, GpuReading, ProcessReading

GPU = '{gpu="0",UUID="GPU-a",modelName="NVIDIA H100 64GB HBM2e",Hostname="node-1"}'
ENGINE = '{instance="node-1:8000",model_name="llama-2-13b",engine="0"}'
T0 = 1_791_187_200


def read(tmp_path: Path, text: str, **options: object) -> tuple[list[Thing], FileReport]:
    path = tmp_path / "scrape.prom"
    path.write_text(text)
    return read_all([path], **options)


def read_all(paths: list[Path], **options: object) -> tuple[list[Thing], FileReport]:
    source, report = OpenMetrics(**options), FileReport(paths[0])  # type: ignore[arg-type]
    things = [thing for path in paths for thing in source.read(path, report)]
    things += source.rest()
    report.finish()
    return things, report


def of(things: list[Thing], kind: type) -> list[object]:
    return [thing for thing in things if isinstance(thing, kind)]


def by_metric(count: int = 4) -> str:
    lines = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
    lines += [f"DCGM_FI_DEV_GPU_UTIL{GPU} {10 * i} {T0 + i}.5" for i in range(count)]
    lines += [f"DCGM_FI_DEV_POWER_USAGE{GPU} {100 + i} {T0 + i}.5" for i in range(count)]
    lines += [f"vllm:num_requests_running{ENGINE} {i} {T0 + i}.5" for i in range(count)]
    lines += [f"vllm:generation_tokens_total{ENGINE} {50 * i} {T0 + i}.5" for i in range(count)]
    return "\n".join([*lines, "# EOF", ""])


def by_time(count: int = 4) -> str:
    lines = []
    for i in range(count):
        lines += [
            f"DCGM_FI_DEV_GPU_UTIL{GPU} {10 * i} {T0 + i}500",
            f"DCGM_FI_DEV_POWER_USAGE{GPU} {100 + i} {T0 + i}500",
            f"vllm:num_requests_running{ENGINE} {i} {T0 + i}500",
            f"vllm:generation_tokens_total{ENGINE} {50 * i} {T0 + i}500",
        ]
    return "\n".join([*lines, ""])


def test_text_by_metric_and_text_by_time_give_the_same_readings(tmp_path: Path) -> None:
    grouped, first = read(tmp_path, by_metric())
    streamed, second = read(tmp_path, by_time())
    assert sorted(map(repr, grouped)) == sorted(map(repr, streamed))
    assert first.kept == second.kept == 16
    assert "seconds" in first.notes[0]
    assert "milliseconds" in second.notes[0]


def test_values_are_in_base_units_under_our_names(tmp_path: Path) -> None:
    things, _report = read(tmp_path, by_metric())
    assert of(things, GpuReading)[2] == GpuReading(
        "GPU-a", T0 * 1000 + 2_500, {"busy_ratio": 0.2, "power_w": 102.0}
    )
    assert of(things, EngineReading)[2] == EngineReading(
        "node-1:8000/0", T0 * 1000 + 2_500, {"running_requests": 2.0, "generated_tokens": 100.0}
    )
    (gpu,) = of(things, GpuIdentity)
    assert gpu == GpuIdentity("GPU-a", host="node-1", index=0, model="NVIDIA H100 64GB HBM2e")
    (engine,) = of(things, EngineIdentity)
    assert engine == EngineIdentity("node-1:8000/0", "node-1", "vllm", "llama-2-13b")


def test_readings_come_in_the_order_of_time(tmp_path: Path) -> None:
    things, _report = read(tmp_path, by_metric(50))
    instants = [thing.ts_ms for thing in things if isinstance(thing, GpuReading | EngineReading)]
    assert instants == sorted(instants)


def test_files_of_one_gpu_join_even_when_each_holds_other_metrics(tmp_path: Path) -> None:
    lines = by_metric().splitlines()
    first, second = tmp_path / "a.prom", tmp_path / "b.prom"
    first.write_text("\n".join(line for line in lines if "UTIL" in line))
    second.write_text("\n".join(line for line in lines if "POWER" in line))
    things, _report = read_all([first, second])
    assert {frozenset(reading.values) for reading in of(things, GpuReading)} == {  # type: ignore[attr-defined]
        frozenset({"busy_ratio", "power_w"})
    }


def test_total_memory_is_the_sum_of_its_parts_where_no_total_is_given(tmp_path: Path) -> None:
    text = "".join(
        f"DCGM_FI_DEV_FB_{name}{GPU} {mib} {T0 + i}\n"
        for name, mib in (("USED", 59_352), ("FREE", 5_599), ("RESERVED", 294))
        for i in range(2)
    )
    things, _report = read(tmp_path, text)
    (identity,) = of(things, GpuIdentity)
    assert identity.memory_total_bytes == 65_245 << 20  # type: ignore[attr-defined]
    assert of(things, GpuReading)[0].values == {  # type: ignore[attr-defined]
        "memory_used_bytes": 59_352 * 1048576.0,
        "memory_reserved_bytes": 294 * 1048576.0,
    }


def test_time_going_back_and_repeated_times_are_refused_with_their_line(tmp_path: Path) -> None:
    lines = by_time().splitlines()
    things, report = read(tmp_path, "\n".join([*lines, lines[0], lines[-4]]))
    assert (report.kept, report.refused) == (16, 2)
    assert len(of(things, GpuReading)) == 4
    assert (
        "scrape.prom:17: DCGM_FI_DEV_GPU_UTIL goes back in time: 2026-10-05T08:00:00.500Z"
        in report.problems[0]
    )
    assert "scrape.prom:18: DCGM_FI_DEV_GPU_UTIL repeats its time" in report.problems[1]


@pytest.mark.parametrize("word", ["NaN", "+Inf", "-Inf", "140737488355328", "9223372036854775794"])
def test_no_value_is_unknown_and_not_zero(tmp_path: Path, word: str) -> None:
    text = by_time().replace(f"POWER_USAGE{GPU} 102", f"POWER_USAGE{GPU} {word}")
    things, report = read(tmp_path, text)
    assert [("power_w" in reading.values) for reading in of(things, GpuReading)] == [True, True, False, True]  # type: ignore[attr-defined]
    assert (report.kept, report.refused) == (16, 0)
    assert any("scrape.prom:10: unknown cells" in note for note in report.notes)


def test_a_counter_that_falls_is_reported_as_a_reset(tmp_path: Path) -> None:
    text = by_time().replace(f"tokens_total{ENGINE} 150", f"tokens_total{ENGINE} 3")
    _things, report = read(tmp_path, text)
    assert any(
        "scrape.prom:16: vllm:generation_tokens_total fell from 100 to 3" in note for note in report.notes
    )


def test_bad_lines_are_refused_and_their_neighbours_kept(tmp_path: Path) -> None:
    text = (
        by_time()
        + f'DCGM_FI_DEV_GPU_UTIL{GPU} high {T0 + 9}000\nDCGM_FI_DEV_GPU_UTIL{{gpu="0"}} 1 {T0}\n?!\n'
    )
    _things, report = read(tmp_path, text)
    assert (report.read, report.kept, report.refused, report.ignored) == (19, 16, 3, 0)
    assert "scrape.prom:17: value 'high' is not a number" in report.problems[0]
    assert "no UUID label" in report.problems[1]


def test_series_of_no_use_are_counted_as_ignored(tmp_path: Path) -> None:
    _things, report = read(tmp_path, by_time() + f"node_load1 3 {T0}\nDCGM_FI_DEV_FAN_SPEED{GPU} 3 {T0}\n")
    assert (report.read, report.kept, report.ignored) == (18, 16, 2)


def test_samples_without_time_need_the_time_of_the_scrape(tmp_path: Path) -> None:
    text = f"# HELP x y\nDCGM_FI_DEV_GPU_UTIL{GPU} 5\nDCGM_FI_DEV_POWER_USAGE{GPU} 70\n"
    with pytest.raises(FormatError, match=r"scrape.prom:2: .*--at"):
        read(tmp_path, text)
    things, _report = read(tmp_path, text, at_ms=T0 * 1000)
    assert of(things, GpuReading) == [GpuReading("GPU-a", T0 * 1000, {"busy_ratio": 0.05, "power_w": 70.0})]


def test_other_text_is_refused_as_a_whole(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not Prometheus or OpenMetrics text"):
        read(tmp_path, "To be, or not to be: that is the question\n" * 80)


def test_a_table_with_a_header_is_not_taken_for_exposition_text(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not Prometheus or OpenMetrics text"):
        read(tmp_path, "time [s],running,waiting\n" + "0.138,0.0,0.0\n" * 80)


def test_settings_and_limits_become_the_engines_own(tmp_path: Path) -> None:
    text = (
        f'vllm:cache_config_info{{instance="n:1",block_size="16",num_gpu_blocks="2657",sliding_window="None"}} 1 {T0}\n'
        f'trtllm_max_batch_size_runtime{{instance="m:1"}} 64 {T0}\n'
    )
    things, _report = read(tmp_path, text)
    settings = {identity.engine: dict(identity.settings) for identity in of(things, EngineIdentity)}  # type: ignore[attr-defined]
    assert settings == {
        "n:1/0": {"block_size": "16", "num_gpu_blocks": "2657"},
        "m:1/0": {"max_num_seqs": "64"},
    }


def test_an_engine_without_labels_is_named_by_host_or_file(tmp_path: Path) -> None:
    text = "".join(
        f"llamacpp:requests_processing {i} {T0 + i}\nllamacpp:tokens_predicted_total {9 * i} {T0 + i}\n"
        for i in range(3)
    )
    things, report = read(tmp_path, text)
    assert report.refused == 0
    assert of(things, EngineIdentity) == [EngineIdentity("scrape/0", None, "llamacpp")]
    assert of(things, EngineReading)[2] == EngineReading(
        "scrape/0", (T0 + 2) * 1000, {"running_requests": 2.0, "generated_tokens": 18.0}
    )
    named, _report = read(tmp_path, text, host="box")
    assert of(named, EngineIdentity) == [EngineIdentity("box/0", "box", "llamacpp")]


def test_cores_of_one_server_are_never_summed_but_finish_reasons_are(tmp_path: Path) -> None:
    lines = []
    for i in range(2):
        for core in "01":
            for reason in ("stop", "length"):
                labels = f'{{instance="n:1",engine="{core}",finished_reason="{reason}"}}'
                lines.append(f"vllm:request_success_total{labels} {10 * i + int(core)} {T0 + i}")
    things, _report = read(tmp_path, "\n".join(lines))
    finished = {(r.engine, r.ts_ms): r.values["finished_requests"] for r in of(things, EngineReading)}  # type: ignore[attr-defined]
    assert finished == {
        ("n:1/0", T0 * 1000): 0,
        ("n:1/1", T0 * 1000): 2,
        ("n:1/0", (T0 + 1) * 1000): 20,
        ("n:1/1", (T0 + 1) * 1000): 22,
    }


def test_the_newer_of_two_names_wins_whichever_comes_first(tmp_path: Path) -> None:
    pair = [f"vllm:gpu_cache_usage_perc{ENGINE} 0.1 {T0}", f"vllm:kv_cache_usage_perc{ENGINE} 0.2 {T0}"]
    for lines in (pair, pair[::-1]):
        things, _report = read(tmp_path, "\n".join(lines))
        assert of(things, EngineReading)[0].values == {"kv_used_ratio": 0.2}  # type: ignore[attr-defined]


def test_a_histogram_first_does_not_make_text_by_metric_look_like_text_by_time(tmp_path: Path) -> None:
    lines = []
    for i in range(3):
        lines += [
            f"vllm:time_to_first_token_seconds_{part}{ENGINE} {i} {T0 + i}" for part in ("sum", "count")
        ]
    lines += [f"vllm:num_requests_running{ENGINE} {i} {T0 + i}" for i in range(3)]
    things, report = read(tmp_path, "\n".join(lines))
    assert report.refused == 0
    assert all(len(reading.values) == 3 for reading in of(things, EngineReading))  # type: ignore[attr-defined]


def test_mig_instances_have_their_memory_and_the_card_keeps_its_power(tmp_path: Path) -> None:
    mig = GPU[:-1] + ',GPU_I_ID="2",GPU_I_PROFILE="1g.10gb"}'
    text = f"DCGM_FI_DEV_FB_USED{mig} 100 {T0}\nDCGM_FI_DEV_POWER_USAGE{mig} 300 {T0}\n"
    things, _report = read(tmp_path, text)
    values = {reading.gpu_uuid: reading.values for reading in of(things, GpuReading)}  # type: ignore[attr-defined]
    assert values == {"MIG-GPU-a/2/0": {"memory_used_bytes": 104_857_600.0}, "GPU-a": {"power_w": 300.0}}
    models = {identity.gpu_uuid: identity.model for identity in of(things, GpuIdentity)}  # type: ignore[attr-defined]
    assert models["MIG-GPU-a/2/0"] == "NVIDIA H100 64GB HBM2e MIG 1g.10gb"


def test_nvidia_gpu_exporter_gives_readings_identity_and_processes(tmp_path: Path) -> None:
    text = (
        'nvidia_smi_gpu_info{uuid="a-b",name="NVIDIA H200",driver_version="590.48",index="3",pci_bus_id="00:09.0"} 1\n'
        'nvidia_smi_utilization_gpu_ratio{uuid="a-b"} 0.5\n'
        'nvidia_smi_memory_total_bytes{uuid="a-b"} 1.5e+11\n'
        'nvidia_smi_compute_app_used_memory_bytes{pid="77",process_name="C:\\\\x\\\\ffmpeg.exe",uuid="a-b"} 2e+08\n'
    )
    things, _report = read(tmp_path, text, at_ms=T0 * 1000, host="box")
    (identity,) = of(things, GpuIdentity)
    assert identity == GpuIdentity(
        "GPU-a-b",
        host="box",
        index=3,
        model="NVIDIA H200",
        memory_total_bytes=150_000_000_000,
        pci_bus_id="00:09.0",
        driver_version="590.48",
    )
    assert of(things, GpuReading)[0].values == {"busy_ratio": 0.5}  # type: ignore[attr-defined]
    (process,) = of(things, ProcessReading)
    assert (process.pid, process.workload.name, process.memory_used_bytes) == (77, "ffmpeg.exe", 2e8)  # type: ignore[attr-defined]


def test_a_large_file_by_metric_takes_constant_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.prom"
    with path.open("w") as out:
        for name in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP"):
            out.writelines(f"{name}{GPU} {i % 100} {T0 + i}\n" for i in range(30_000))
    source, report = OpenMetrics(), FileReport(path)
    tracemalloc.start()
    count = sum(1 for _thing in source.read(path, report))
    count += sum(1 for _thing in source.rest())
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 30_001
    assert peak < 16e6 < 3 * path.stat().st_size


@pytest.mark.parametrize(
    ("series", "word"),
    [
        (f"DCGM_FI_DEV_GPU_UTIL{GPU}", "-1"),
        (f"DCGM_FI_PROF_SM_ACTIVE{GPU}", "1.7"),
        (f"DCGM_FI_DEV_POWER_USAGE{GPU}", "4294967"),
        (f"vllm:num_requests_running{ENGINE}", "-4"),
        (f"vllm:kv_cache_usage_perc{ENGINE}", "3.5"),
        (f"vllm:generation_tokens_total{ENGINE}", "-1"),
    ],
)
@pytest.mark.parametrize("place", [0, 2])
def test_a_value_that_cannot_be_true_is_unknown_with_its_line(
    tmp_path: Path, series: str, word: str, place: int
) -> None:
    words = ["0"] * 4
    words[place] = word
    text = "".join(f"{series} {figure} {T0 + i}\n" for i, figure in enumerate(words))
    things, report = read(tmp_path, text)
    found = [reading for reading in things if isinstance(reading, GpuReading | EngineReading)]
    assert [set(reading.values.values()) for reading in found] == [{0.0}] * 3
    assert (report.kept, report.refused, report.refused_values) == (4, 0, 1)
    assert f"scrape.prom:{place + 1}: {series.partition('{')[0]}: {word} cannot be true" in report.problems[0]


@pytest.mark.parametrize("word", ["2147483632", "2147483633", "2147483635"])
def test_a_blank_of_dcgm_is_unknown_and_no_problem(tmp_path: Path, word: str) -> None:
    for name in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_PROF_PCIE_RX_BYTES"):
        text = f"{name}{GPU} 1 {T0}\n{name}{GPU} {word} {T0 + 1}\n"
        things, report = read(tmp_path, text)
        assert len(of(things, GpuReading)) == 1
        assert (report.problems, report.refused_values) == ([], 0)
        assert word in report.notes[-1]


def test_an_energy_counter_may_stand_where_gauges_are_blank(tmp_path: Path) -> None:
    name = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
    things, _report = read(tmp_path, f"{name}{GPU} 1 {T0}\n{name}{GPU} 2147483632 {T0 + 1}\n")
    assert of(things, GpuReading)[1].values == {"energy_j": pytest.approx(2147483.632)}  # type: ignore[attr-defined]
