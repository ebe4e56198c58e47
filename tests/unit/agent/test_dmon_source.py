"""dmon tables, on a terminal and as CSV, with and without times."""

from pathlib import Path

import pytest

from agent.sources.dmon import DmonLog
from agent.sources.report import FileReport
from core.readings import GpuIdentity, GpuReading

NINE = 1_784_019_600_000  # 2026-07-14 09:00:00 UTC
PLAIN = (
    "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk",
    "# Idx      W      C      C      %      %    MHz    MHz",
    "    0     36     40      -      7     10    405    300",
    "    1     98     45     50      8      3   7500   2055",
)


def read(tmp_path: Path, *lines: str, **options: object) -> tuple[list[GpuReading], FileReport]:
    path = tmp_path / "d.log"
    path.write_text("\n".join(lines) + "\n")
    report = FileReport(path)
    log = DmonLog(path, report, gpu_of={0: "GPU-a", 1: "GPU-b"}.get, **options)  # type: ignore[arg-type]
    things = list(log.read())
    report.finish()
    return [thing for thing in things if isinstance(thing, GpuReading)], report


def test_a_table_without_times_counts_rows_from_its_start(tmp_path: Path) -> None:
    readings, report = read(tmp_path, *PLAIN, *PLAIN, anchor_ms=NINE, interval_ms=5_000)
    assert [(r.gpu_uuid, r.ts_ms - NINE) for r in readings] == [
        ("GPU-a", 0),
        ("GPU-b", 0),
        ("GPU-a", 5_000),
        ("GPU-b", 5_000),
    ]
    assert readings[0].values == {
        "power_w": 36.0,
        "temperature_c": 40.0,
        "busy_ratio": pytest.approx(0.07),
        "memory_busy_ratio": pytest.approx(0.1),
        "memory_clock_hz": 405e6,
        "sm_clock_hz": 300e6,
    }
    assert (report.read, report.kept) == (4, 4)
    assert "mtemp - (2×)" in report.notes[0]


def test_a_table_without_times_and_without_start_says_what_to_give(tmp_path: Path) -> None:
    readings, report = read(tmp_path, *PLAIN)
    assert readings == []
    assert report.refused == 2
    assert "d.log:3: the log has no times: give its start with --start" in report.problems[0]


@pytest.mark.parametrize(
    "header",
    [
        ("#Date       Time        gpu    pwr", "#YYYYMMDD   HH:MM:SS    Idx      W"),
        ("# Date       Time        gpu    pwr", "# YYYYMMDD   HH:MM:SS    Idx      W"),
    ],
)
def test_dates_and_times_are_read(tmp_path: Path, header: tuple[str, str]) -> None:
    readings, _report = read(tmp_path, *header, " 20260714   09:00:05      0     97")
    assert [(r.ts_ms, r.values) for r in readings] == [(NINE + 5_000, {"power_w": 97.0})]


def test_times_of_day_belong_to_the_day_of_the_start_and_pass_midnight(tmp_path: Path) -> None:
    lines = ("#Time        gpu    pwr", "#HH:MM:SS    Idx      W", " 23:59:59    0   1", " 00:00:01    0   2")
    readings, _report = read(tmp_path, *lines, anchor_ms=NINE)
    assert [r.ts_ms for r in readings] == [NINE + 54_000_000 - 1_000, NINE + 54_000_000 + 1_000]
    _none, report = read(tmp_path, *lines)
    assert "--start" in report.problems[0]


def test_the_csv_form_with_relative_times_is_read(tmp_path: Path) -> None:
    lines = (
        "time,gpu,pwr,sm,rxpci,txpci,pviol",
        "s,Idx,W,%,MB/s,MB/s,%",
        "0.1380237089470029,0,113,76,29,10,0",
        "1.3844287521205842,0,-,80,30,0,0",
    )
    readings, _report = read(tmp_path, *lines, anchor_ms=NINE)
    assert [(r.ts_ms - NINE, r.values.get("power_w")) for r in readings] == [(138, 113.0), (1_384, None)]
    assert readings[0].values["pcie_rx_bytes_per_s"] == 29e6


def test_memory_in_mb_means_mib(tmp_path: Path) -> None:
    readings, _report = read(
        tmp_path, "# gpu   fb   bar1", "# Idx   MB   MB", "  0   10   1", anchor_ms=NINE, interval_ms=1_000
    )
    assert readings[0].values == {"memory_used_bytes": 10 * 1048576.0}


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("    0     98", "2 cells where the header has 8"),
        ("    7     98     45     50      8      3   7500   2055", "which GPU index 7 is"),
        ("Killed", "this is no row of dmon"),
    ],
)
def test_a_bad_row_is_refused_and_the_others_kept(tmp_path: Path, bad: str, sentence: str) -> None:
    readings, report = read(tmp_path, *PLAIN, bad, PLAIN[2], anchor_ms=NINE, interval_ms=1_000)
    assert len(readings) == 3
    assert (report.kept, report.refused) == (3, 1)
    assert "d.log:5:" in report.problems[0]
    assert sentence in report.problems[0]


def test_each_gpu_is_introduced_once(tmp_path: Path) -> None:
    path = tmp_path / "d.log"
    path.write_text("\n".join((*PLAIN, *PLAIN)))
    log = DmonLog(
        path, FileReport(path), gpu_of={0: "GPU-a", 1: "GPU-b"}.get, host="n", anchor_ms=0, interval_ms=1
    )
    identities = [thing for thing in log.read() if isinstance(thing, GpuIdentity)]
    assert identities == [GpuIdentity("GPU-a", host="n", index=0), GpuIdentity("GPU-b", host="n", index=1)]


@pytest.mark.parametrize("cell", ["9x", "-9", "9999999"])
def test_a_cell_that_cannot_be_right_is_unknown_and_its_row_kept(tmp_path: Path, cell: str) -> None:
    bad = f"    0     {cell}     45     50      8      3   7500   2055"
    readings, report = read(tmp_path, *PLAIN, bad, anchor_ms=NINE, interval_ms=1_000)
    assert "power_w" not in readings[-1].values
    assert "temperature_c" in readings[-1].values
    assert (report.refused, report.refused_values) == (0, 1)
    assert "d.log:5: pwr: " in report.problems[0]
