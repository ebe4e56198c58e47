"""Files to samples: joins, assumed times, and a report that accounts for every row."""

import gzip
import os
from pathlib import Path

import pytest
from list_sink import ListSink

from agent.importing import ImportReport, run_import
from core.errors import UsageError

NINE = 1_784_019_600_000
QUERY = "time [s],uuid, memory.total [MiB], memory.used [MiB], utilization.gpu [%]"


def query_log(path: Path, uuid: str = "GPU-a", rows: int = 31, shift: float = 0.1234567890123) -> Path:
    lines = [f"{i + shift},{uuid}, 65247 MiB, {100 + i} MiB, 50 %" for i in range(rows)]
    path.write_text("\n".join([QUERY, *lines, ""]))
    return path


def dmon_log(path: Path, rows: int = 31, shift: float = 0.1234567890123) -> Path:
    lines = [f"{i + shift},0,{200 + i},50" for i in range(rows)]
    path.write_text("\n".join(["time,gpu,pwr,sm", "s,Idx,W,%", *lines, ""]))
    return path


def imported(kind: str, paths: list[Path], **options: object) -> tuple[ListSink, ImportReport]:
    sink = ListSink()
    return sink, run_import(kind, paths, sink, **options)  # type: ignore[arg-type]


def test_a_dmon_log_is_named_and_joined_by_the_query_log_beside_it(tmp_path: Path) -> None:
    query_log(tmp_path / "q.csv")
    sink, report = imported("dmon", [dmon_log(tmp_path / "d.csv")], start_ms=NINE)
    sample = sink.gpu_rows[1]
    assert sample.gpu_uuid == "GPU-a"
    assert sample.values["power_w"] == pytest.approx(200 + 14.5 + 0.5 - 0.1234567890123, abs=2e-3)
    assert sample.values["memory_used_bytes"] > 0
    assert [file.path.name for file in report.files] == ["d.csv", "q.csv"]
    assert "read as well" in report.files[1].notes[0]
    assert sink.gpu_ids["GPU-a"].memory_total_bytes == 65_247 << 20


def test_whichever_log_of_a_run_is_asked_for_the_samples_are_the_same(tmp_path: Path) -> None:
    query, dmon = query_log(tmp_path / "q.csv"), dmon_log(tmp_path / "d.csv")
    expected, _report = imported("nvidia-smi", [query, dmon])
    for kind, paths in (
        ("nvidia-smi", [query]),
        ("dmon", [dmon]),
        ("dmon", [dmon, query]),
        ("nvidia-smi", [dmon]),
    ):
        sink, _report = imported(kind, paths)
        assert sink.gpu_rows == expected.gpu_rows


def test_relative_times_end_when_the_file_was_written_and_importing_again_repeats_them(
    tmp_path: Path,
) -> None:
    query = query_log(tmp_path / "q.csv")
    os.utime(query, ns=(0, (NINE + 60_000) * 1_000_000))
    sink, report = imported("nvidia-smi", [query])
    assert sink.gpu_rows[-1].ts_ms == NINE + 60_000
    assert "taken to be as old as the file" in report.files[0].notes[0]
    again, _report = imported("nvidia-smi", [query])
    assert again.gpu_rows == sink.gpu_rows


def test_a_dmon_log_that_nothing_names_is_refused_with_what_to_do(tmp_path: Path) -> None:
    sink, report = imported("dmon", [dmon_log(tmp_path / "d.csv")])
    assert sink.gpu_rows == []
    assert "--gpu GPU-…" in report.files[0].problems[0]
    named, _report = imported("dmon", [tmp_path / "d.csv"], gpu_uuid="GPU-z")
    assert {sample.gpu_uuid for sample in named.gpu_rows} == {"GPU-z"}


def test_a_gpu_named_by_the_user_is_not_joined_with_the_log_of_another(tmp_path: Path) -> None:
    query_log(tmp_path / "q.csv", "GPU-a")
    sink, report = imported("dmon", [dmon_log(tmp_path / "d.csv")], gpu_uuid="GPU-z")
    assert {sample.gpu_uuid for sample in sink.gpu_rows} == {"GPU-z"}
    assert len(report.files) == 1
    same, _report = imported("dmon", [tmp_path / "d.csv"], gpu_uuid="GPU-a")
    assert "memory_used_bytes" in same.gpu_rows[0].values


def test_two_query_logs_that_name_different_gpus_name_none(tmp_path: Path) -> None:
    query_log(tmp_path / "q1.csv", "GPU-a", shift=0.5)
    query_log(tmp_path / "q2.csv", "GPU-b", shift=0.6)
    sink, report = imported("dmon", [dmon_log(tmp_path / "d.csv")])
    assert sink.gpu_rows == []
    assert "by index only" in report.files[0].problems[0]


def test_logs_with_dates_join_by_index_and_alternate_in_time(tmp_path: Path) -> None:
    query = tmp_path / "q.csv"
    rows = [
        f"2026/07/14 09:00:{i:02}.400, GPU-{name}, {n}, {i} MiB"
        for i in range(40)
        for n, name in enumerate("ab")
    ]
    query.write_text("\n".join(["timestamp, uuid, index, memory.used [MiB]", *rows]))
    dmon = tmp_path / "d.log"
    rows = [f" 20260714   09:00:{i:02}   {n}   {100 * (n + 1)}" for i in range(40) for n in range(2)]
    dmon.write_text(
        "\n".join(["#Date       Time        gpu    pwr", "#YYYYMMDD   HH:MM:SS    Idx      W", *rows])
    )
    sink, report = imported("dmon", [dmon])
    assert report.refused == report.overlapping == 0
    assert sink.energy_j("GPU-a") == pytest.approx(3_900)
    assert sink.energy_j("GPU-b") == pytest.approx(7_800)
    assert sink.gpu_rows[0].values["memory_used_bytes"] > 0


def test_logs_of_one_gpu_continue_each_other_in_any_order(tmp_path: Path) -> None:
    paths = []
    for part in range(3):
        path = tmp_path / f"{2 - part}.csv"
        rows = [f"2026/07/14 09:{part:02}:{i:02}, GPU-a, 100 W" for i in range(60)]
        path.write_text("\n".join(["timestamp, uuid, power.draw [W]", *rows]))
        paths.append(path)
    sink, report = imported("nvidia-smi", paths[::-1])
    assert report.overlapping == 0
    assert sink.energy_j("GPU-a") == pytest.approx(17_900)
    assert len(sink.gpu_rows) == 18


def test_bad_files_say_so_and_good_ones_are_imported(tmp_path: Path) -> None:
    good = query_log(tmp_path / "q.csv")
    for name, data in (
        ("prose.txt", b"nothing of the kind\n"),
        ("empty.csv", b""),
        ("data.bin", b"\0\1\2"),
        ("scrape.prom", b"# TYPE up gauge\nup 1 1791187200\n"),
    ):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(good.read_bytes())[:-60])
    sink, report = imported("nvidia-smi", sorted(tmp_path.iterdir()), start_ms=NINE)
    said = {file.path.name: " ".join(file.problems) for file in report.files}
    assert "no line of column names" in said["prose.txt"]
    assert "no line of column names" in said["empty.csv"]
    assert "binary" in said["data.bin"]
    assert "gpuwise import openmetrics" in said["scrape.prom"]
    assert "cut off" in said["cut.csv.gz"]
    assert said["q.csv"] == ""
    assert report.kept >= 31
    assert sink.gpu_rows


def test_a_log_given_to_the_wrong_command_names_the_right_one(tmp_path: Path) -> None:
    _sink, report = imported("openmetrics", [query_log(tmp_path / "q.csv")])
    assert "gpuwise import nvidia-smi" in report.files[0].problems[0]


def test_a_path_that_is_no_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        imported("dmon", [tmp_path / "nope"])
    with pytest.raises(UsageError, match="is a folder"):
        imported("dmon", [tmp_path])


def test_the_same_file_given_twice_counts_once(tmp_path: Path) -> None:
    query = query_log(tmp_path / "q.csv")
    once, _report = imported("nvidia-smi", [query])
    twice, report = imported("nvidia-smi", [query, query])
    assert once.gpu_rows == twice.gpu_rows
    assert len(report.files) == 1


def test_two_scrapes_of_the_same_instant_are_counted_as_overlapping(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.prom").write_text('DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a"} 5\n')
    sink, report = imported("openmetrics", sorted(tmp_path.iterdir()), at_ms=NINE)
    assert report.overlapping == 1
    assert len(sink.gpu_rows) == 1


def test_progress_reaches_the_size_of_all_files(tmp_path: Path) -> None:
    paths = [query_log(tmp_path / "q.csv"), dmon_log(tmp_path / "d.csv")]
    seen: list[tuple[int, int]] = []
    imported("nvidia-smi", paths, progress=lambda done, total: seen.append((done, total)))
    total = sum(path.stat().st_size for path in paths)
    assert seen[-1] == (total, total)
    assert [done for done, _total in seen] == sorted(done for done, _total in seen)


def test_samples_are_committed_in_batches(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    rows = [f"{i * 60.0},GPU-a, 100 W" for i in range(2_000)]
    path.write_text("\n".join(["time [s],uuid,power.draw [W]", *rows]))
    sink, report = imported("nvidia-smi", [path], start_ms=NINE)
    assert report.stored.gpu_samples == len(sink.gpu_rows) == 6 * 1_999 + 1
    assert sink.deliveries >= 3


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("nvidia-smi", "timestamp, uuid, power.draw [W]\n2026/07/14 {time}, GPU-a, 1 W\n"),
        ("dmon", "#Date Time gpu pwr\n#YYYYMMDD HH:MM:SS Idx W\n 20260714 {time} 0 1\n"),
        ("openmetrics", 'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-a"}} 5 {seconds}\n'),
    ],
)
def test_a_row_from_the_future_is_refused_with_its_line(tmp_path: Path, kind: str, text: str) -> None:
    path = tmp_path / "log"
    path.write_text(text.format(time="09:00:00", seconds=NINE // 1000))
    named = {"gpu_uuid": "GPU-a"} if kind == "dmon" else {}
    day_ms = 86_400_000
    sink, report = imported(kind, [path], now_ms=NINE - day_ms, **named)
    assert report.refused == 0
    assert len(sink.gpu_rows) == 1
    sink, report = imported(kind, [path], now_ms=NINE - day_ms - 1, **named)
    assert sink.gpu_rows == []
    assert report.refused == 1
    assert "is in the future: check the clock or the time zone" in report.files[0].problems[0]
    assert f"log:{text.count(chr(10))}: 2026-07-14T09:00:00" in report.files[0].problems[0]


MASKED = "GPU-00000000-0000-0000-0000-000000000000"


def masked_log(path: Path, model: str) -> Path:
    rows = [f"2026/07/14 09:00:{i:02}, {MASKED}, {model}, 100 W" for i in range(5)]
    path.write_text("\n".join(["timestamp, uuid, name, power.draw [W]", *rows]))
    return path


def test_a_masked_uuid_is_noted_and_a_second_model_under_it_a_problem(tmp_path: Path) -> None:
    paths = [masked_log(tmp_path / "a.csv", "NVIDIA H200"), masked_log(tmp_path / "b.csv", "NVIDIA L4")]
    _sink, report = imported("nvidia-smi", paths)
    for file in report.files:
        assert any("UUID is masked" in note and "--gpu names it" in note for note in file.notes)
    (problem,) = [problem for file in report.files for problem in file.problems]
    assert "NVIDIA L4" in problem
    assert "NVIDIA H200" in problem


def test_a_name_given_by_the_user_replaces_a_masked_uuid_only(tmp_path: Path) -> None:
    masked = masked_log(tmp_path / "a.csv", "NVIDIA H200")
    sink, report = imported("nvidia-smi", [masked], gpu_uuid="GPU-x")
    assert {sample.gpu_uuid for sample in sink.gpu_rows} == {"GPU-x"}
    assert not any("masked" in note for note in report.files[0].notes)
    own = query_log(tmp_path / "q.csv", "GPU-a")
    sink, report = imported("nvidia-smi", [own], gpu_uuid="GPU-x", start_ms=NINE)
    assert {sample.gpu_uuid for sample in sink.gpu_rows} == {"GPU-a"}
    assert any("--gpu was not used" in note for note in report.files[0].notes)


def test_what_all_files_assume_is_said_once(tmp_path: Path) -> None:
    for i, name in enumerate("abc"):
        (tmp_path / f"{name}.prom").write_text(f'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-a"}} 5 {NINE // 1000 + i}\n')
    _sink, report = imported("openmetrics", sorted(tmp_path.iterdir()))
    (note,) = [note for file in report.files for note in file.notes]
    assert note.endswith("a.prom and 2 more: time stamps were read as seconds")
