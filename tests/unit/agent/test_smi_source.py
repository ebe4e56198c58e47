"""nvidia-smi CSV in all its variants; unknown cells stay unknown."""

from pathlib import Path

import pytest

from agent.sources.report import FileReport
from agent.sources.series import Thing
from agent.sources.smi import SmiLog, header_of
from core.readings import GpuIdentity, GpuReading, ProcessReading

NINE = 1_784_019_600_000  # 2026-07-14 09:00:00 UTC
HEADER = (
    "timestamp, uuid, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], temperature.gpu"
)


def row(
    second: float, uuid: str = "GPU-a", busy: str = "50 %", memory: str = "1024 MiB", power: str = "70.50 W"
) -> str:
    return f"2026/07/14 09:00:{second:06.3f}, {uuid}, 0, NVIDIA H200, {busy}, {memory}, {power}, 41"


def read(tmp_path: Path, *lines: str, **options: object) -> tuple[list[Thing], FileReport]:
    path = tmp_path / "q.csv"
    path.write_text("\n".join(lines) + "\n")
    report = FileReport(path)
    things = list(SmiLog(path, report, **options).read())  # type: ignore[arg-type]
    report.finish()
    return things, report


def readings(things: list[Thing]) -> list[GpuReading]:
    return [thing for thing in things if isinstance(thing, GpuReading)]


def test_units_of_cells_become_base_units(tmp_path: Path) -> None:
    things, report = read(tmp_path, HEADER, row(27.792))
    assert readings(things) == [
        GpuReading(
            "GPU-a",
            NINE + 27_792,
            {
                "busy_ratio": 0.5,
                "memory_used_bytes": 1024 * 1048576.0,
                "power_w": 70.5,
                "temperature_c": 41.0,
            },
        )
    ]
    assert things[0] == GpuIdentity("GPU-a", index=0, model="NVIDIA H200")
    assert (report.read, report.kept, report.refused) == (1, 1, 0)


@pytest.mark.parametrize(
    "header", [HEADER, HEADER.replace(" [%]", "").replace(" [MiB]", "").replace(" [W]", "")]
)
def test_cells_without_units_take_them_from_the_header_or_from_what_nvidia_smi_prints(
    tmp_path: Path, header: str
) -> None:
    with_units, _report = read(tmp_path, HEADER, row(1))
    without, _report = read(tmp_path, header, row(1, busy="50", memory="1024", power="70.50"))
    assert readings(without) == readings(with_units)


@pytest.mark.parametrize(
    "cell",
    ["[N/A]", "N/A", "[Unknown Error]", "[Not Supported]", "[GPU requires reset]", "", "NaN", "nan", "-"],
)
def test_an_unknown_cell_is_absent_and_never_zero(tmp_path: Path, cell: str) -> None:
    things, report = read(tmp_path, HEADER, row(1, power=cell))
    assert "power_w" not in readings(things)[0].values
    assert readings(things)[0].values["busy_ratio"] == 0.5
    assert report.refused == 0
    assert (
        f"q.csv:2: unknown cells are stored as unknown, from this line on: power.draw {cell or 'empty'}"
        in report.notes[0]
    )


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (row(2).replace("2026/07/14", "14.7.2026"), "cannot be read"),
        (row(2).replace("2026/07/14", "2026/13/14"), "cannot be read"),
        (row(2) + ", 1, 2", "10 cells where the header has 8"),
        ("Unable to determine the device handle for GPU0: GPU is lost", "1 cells where the header has 8"),
        (row(2, uuid="[N/A]"), "uuid is [N/A]"),
        (row(1), "repeats the time of GPU-a"),
        (row(0.5), "time goes back of GPU-a: 2026-07-14T09:00:00.500Z after 2026-07-14T09:00:01.000Z"),
    ],
)
def test_a_bad_row_is_refused_with_its_line_and_the_others_are_kept(
    tmp_path: Path, bad: str, sentence: str
) -> None:
    things, report = read(tmp_path, HEADER, row(1), bad, row(3))
    assert [r.ts_ms for r in readings(things)] == [NINE + 1_000, NINE + 3_000]
    assert (report.read, report.kept, report.refused) == (3, 2, 1)
    assert sentence in report.problems[0]
    assert "q.csv:3:" in report.problems[0]


def test_interleaved_gpus_keep_their_own_clocks(tmp_path: Path) -> None:
    lines = [row(s, uuid=f"GPU-{name}") for s in (1, 2) for name in "ab"]
    things, report = read(tmp_path, HEADER, *lines)
    assert report.kept == 4
    assert [(r.gpu_uuid, r.ts_ms - NINE) for r in readings(things)] == [
        ("GPU-a", 1_000),
        ("GPU-b", 1_000),
        ("GPU-a", 2_000),
        ("GPU-b", 2_000),
    ]


def test_relative_times_count_from_the_anchor(tmp_path: Path) -> None:
    lines = ("time [s],uuid, utilization.gpu [%]", "0.1380237089470029,GPU-a, 7 %", "1.3844287,GPU-a, 8 %")
    things, _report = read(tmp_path, *lines, anchor_ms=NINE)
    assert [(r.ts_ms - NINE, r.values["busy_ratio"]) for r in readings(things)] == [
        (138, pytest.approx(0.07)),
        (1_384, pytest.approx(0.08)),
    ]
    _things, report = read(tmp_path, *lines)
    assert "--start" in report.problems[0]


def test_local_times_are_shifted_by_the_offset(tmp_path: Path) -> None:
    things, _report = read(tmp_path, HEADER, row(1), utc_offset_ms=2 * 3_600_000)
    assert readings(things)[0].ts_ms == NINE + 1_000 - 7_200_000


def test_reason_columns_become_the_mask_unless_the_mask_is_there(tmp_path: Path) -> None:
    header = "timestamp,uuid,clocks_event_reasons.hw_slowdown,clocks_throttle_reasons.sw_thermal_slowdown"
    rows = [
        f"2026/07/14 09:00:0{i}.000,GPU-a,{cells}"
        for i, cells in enumerate(("Active,Not Active", "[N/A],Active", "[N/A],[N/A]"))
    ]
    things, _report = read(tmp_path, header, *rows)
    assert [r.values.get("event_reasons_flags") for r in readings(things)] == [0x8, 0x20, None]
    masked, _report = read(tmp_path, f"{header},clocks_event_reasons.active", f"{rows[0]},0x0000000000000004")
    assert readings(masked)[0].values == {"event_reasons_flags": 4.0}


def test_the_first_field_that_knows_a_value_gives_it(tmp_path: Path) -> None:
    header = "timestamp,uuid,power.draw.instant [W],power.draw [W]"
    things, report = read(
        tmp_path, header, "2026/07/14 09:00:01,GPU-a,90 W,80 W", "2026/07/14 09:00:02,GPU-a,90 W,[N/A]"
    )
    assert [r.values["power_w"] for r in readings(things)] == [80, 90]
    assert report.notes == []


def test_a_log_without_uuid_needs_a_name(tmp_path: Path) -> None:
    lines = ("timestamp,utilization.gpu [%],memory.used [MiB]", "2026/07/14 09:00:01,5 %,7 MiB")
    things, _report = read(tmp_path, *lines, gpu_uuid="GPU-x")
    assert readings(things)[0].gpu_uuid == "GPU-x"
    header = header_of(lines[0])
    assert header is not None
    assert header.kind == "gpu"


def test_a_log_that_was_appended_to_repeats_its_header(tmp_path: Path) -> None:
    things, report = read(tmp_path, HEADER, row(1), "", HEADER, row(2), "", row(3))
    assert len(readings(things)) == 3
    assert report.refused == 0


def test_tables_are_found_inside_a_saved_session(tmp_path: Path) -> None:
    rule = "#" * 80
    things, report = read(
        tmp_path,
        "collected_at:   2026-07-14T09:00:26Z",
        "some, other, text",
        "# idle :: query-gpu (csv)",
        "# $ nvidia-smi --query-gpu=timestamp,uuid,index --format=csv",
        rule,
        HEADER,
        row(1),
        "",
        rule,
        "timestamp, gpu_name, gpu_bus_id, gpu_serial, gpu_uuid, pid, process_name, used_gpu_memory [MiB]",
        "2026/07/14 09:00:01.500, NVIDIA H200, 0:1, [N/A], GPU-a, 21180, /root/tools/mem,hog, 2566 MiB",
        "2026/07/14 09:00:01.500, NVIDIA H200, 0:1, [N/A], GPU-a, 21181, C:\\Windows\\dwm.exe, [N/A]",
        "2026/07/14 09:00:01.500, NVIDIA H200, 0:1, [N/A], GPU-a, x, y, 1 MiB",
        "",
        rule,
        "timestamp, gpu_name, gpu_uuid, retired_pages.address, retired_pages.cause",
        "2026/07/14 09:00:01.600, NVIDIA H200, GPU-a, [N/A], Single Bit ECC",
        "",
        "|   0  NVIDIA H200, and so on |",
    )
    assert len(readings(things)) == 1
    processes = [thing for thing in things if isinstance(thing, ProcessReading)]
    assert [(p.pid, p.workload.name, p.memory_used_bytes) for p in processes] == [
        (21180, "mem,hog", 2566 * 1048576.0),
        (21181, "dwm.exe", None),
    ]
    assert (report.read, report.kept, report.refused, report.ignored) == (5, 3, 1, 1)


def test_command_lines_and_paths_of_processes_are_not_kept(tmp_path: Path) -> None:
    things, _report = read(
        tmp_path,
        "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]",
        "2026/07/14 09:00:01.500, GPU-a, 5, /home/alice/secret-project/bin/train, 1 MiB",
    )
    assert "alice" not in repr(things)
    assert "train" in repr(things)


@pytest.mark.parametrize(
    ("cells", "name", "sentence"),
    [
        (
            {"power": "4294967.29 W"},
            "power_w",
            "4294967.29 W cannot be true: a board draws between 0 and 5,000 W",
        ),
        ({"power": "-50 W"}, "power_w", "-50 W cannot be true"),
        ({"memory": "-3 MiB"}, "memory_used_bytes", "-3 MiB cannot be true"),
        ({"busy": "150 %"}, "busy_ratio", "150 % cannot be true"),
        ({"power": "lots W"}, "power_w", "power.draw: 'lots W' is not a figure"),
        ({"power": "5 horses"}, "power_w", "power.draw: unit 'horses' is not known"),
    ],
)
def test_a_cell_that_cannot_be_right_is_unknown_and_the_rest_of_its_row_is_kept(
    tmp_path: Path, cells: dict[str, str], name: str, sentence: str
) -> None:
    things, report = read(tmp_path, HEADER, row(1), row(2, **cells), row(3))
    assert [len(r.values) for r in readings(things)] == [4, 3, 4]
    assert name not in readings(things)[1].values
    assert (report.kept, report.refused, report.refused_values) == (3, 0, 1)
    assert sentence in report.problems[0]
    assert "q.csv:3:" in report.problems[0]


def test_a_share_that_was_rounded_up_is_the_whole(tmp_path: Path) -> None:
    things, report = read(tmp_path, HEADER, row(1, busy="100.4 %"))
    assert readings(things)[0].values["busy_ratio"] == 1.0
    assert report.problems == []


def test_a_fault_that_repeats_is_told_once_with_its_count(tmp_path: Path) -> None:
    _things, report = read(tmp_path, HEADER, *(row(i / 10, power="-1 W") for i in range(200)))
    assert len(report.problems) == 2
    assert report.problems[1].endswith("power.draw: … and 199 more like it")
    assert report.refused_values == 200


def test_kilowatts_are_read(tmp_path: Path) -> None:
    things, _report = read(tmp_path, HEADER, row(1, power="0.4 kW"))
    assert readings(things)[0].values["power_w"] == pytest.approx(400)


def test_a_column_in_an_unknown_unit_is_unknown_and_the_others_are_kept(tmp_path: Path) -> None:
    header = HEADER.replace("[W]", "[horses]")
    things, report = read(tmp_path, header, row(1, power="5"), row(2, power="6"), row(3, power="70 W"))
    assert [r.values.get("power_w") for r in readings(things)] == [None, None, 70.0]
    assert "q.csv:2: power.draw: unit 'horses' is not known" in report.problems[0]
    assert "… and 1 more like it" in report.problems[1]
