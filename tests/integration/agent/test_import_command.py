"""``gpuwise import`` on both databases: exit codes, report, and twice is once."""

import json
from pathlib import Path

import pytest

from gpuwise.__main__ import main
from store.dbapi import open_connection

QUERY = (
    "timestamp, uuid, index, name, memory.total [MiB], memory.used [MiB], utilization.gpu [%], power.draw [W]"
)


def query_log(path: Path, *, rows: int = 60, minute: int = 0) -> Path:
    lines = [
        f"2026/07/14 09:{minute:02}:{i:02}, GPU-a, 0, NVIDIA H200, 143771 MiB, 60000 MiB, 90 %, 400.00 W"
        for i in range(rows)
    ]
    path.write_text("\n".join([QUERY, *lines, ""]))
    return path


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["import", *words])
    out, err = capsys.readouterr()
    return code, out, err


def stored(url: str, sql: str) -> list[tuple[object, ...]]:
    with open_connection(url) as connection:
        return connection.fetch(sql)


def test_importing_twice_changes_nothing(
    ready_database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = query_log(tmp_path / "q.csv")
    words = ("nvidia-smi", str(log), "--database-url", ready_database, "--json")
    look = "SELECT ts_ms, covered_ms, energy_j, activity FROM gpu_sample ORDER BY ts_ms"
    code, out, _err = command(capsys, *words)
    report = json.loads(out)
    first = stored(ready_database, look)
    hours = stored(ready_database, "SELECT energy_j FROM gpu_hour")
    assert code == 0
    assert (report["kept"], report["gpu_samples"], report["new_rows"]) == (60, 6, 6)
    assert report["files"][0]["path"] == str(log)
    assert hours == [(pytest.approx(400.0 * 59),)]
    code, out, _err = command(capsys, *words)
    assert code == 0
    assert json.loads(out)["new_rows"] == 0
    assert stored(ready_database, look) == first
    assert stored(ready_database, "SELECT energy_j FROM gpu_hour") == hours


def test_a_log_that_grew_completes_its_last_interval(
    ready_database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rows in (35, 60):
        log = query_log(tmp_path / "q.csv", rows=rows)
        assert command(capsys, "nvidia-smi", str(log), "--database-url", ready_database)[0] == 0
    covered = stored(ready_database, "SELECT covered_ms FROM gpu_sample ORDER BY ts_ms")
    assert covered == [(10_000,)] * 5 + [(9_000,)]


def test_what_was_refused_is_on_stderr_and_what_was_good_is_kept(
    ready_database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = query_log(tmp_path / "q.csv")
    log.write_text(log.read_text() + "GPU is lost\n")
    code, out, err = command(capsys, "nvidia-smi", str(log), "--database-url", ready_database)
    assert code == 0
    assert "61 rows read, 60 kept, 1 refused" in out
    assert "q.csv:62: 1 cells where the header has 8" in err
    assert "6 new, 0 were there already" in out


def test_nothing_kept_is_a_failure_and_a_missing_file_a_usage_error(
    ready_database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prose = tmp_path / "prose.txt"
    prose.write_text("nothing of the kind\n")
    code, out, err = command(capsys, "nvidia-smi", str(prose), "--database-url", ready_database)
    assert code == 1
    assert "Nothing was imported." in out
    assert "no line of column names" in err
    for words in (("dmon", str(tmp_path / "nope")), ("dmon",), ("openmetrics", "--at", "noon", str(prose))):
        assert command(capsys, *words, "--database-url", ready_database)[0] == 2


def test_a_database_is_made_on_first_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'new' / 'gpuwise.db'}"
    log = query_log(tmp_path / "q.csv")
    assert command(capsys, "nvidia-smi", str(log), "--database-url", url, "--utc-offset", "+02:00")[0] == 0
    assert stored(url, "SELECT min(ts_ms) FROM gpu_sample") == [(1_784_019_600_000 - 7_200_000,)]


def test_a_gpu_that_is_no_uuid_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = query_log(tmp_path / "q.csv")
    url = f"sqlite:///{tmp_path / 'gpuwise.db'}"
    code, _out, err = command(capsys, "nvidia-smi", str(log), "--database-url", url, "--gpu", "nonsense")
    assert code == 2
    assert "'nonsense' is no UUID such as GPU-" in err
    uuid = "GPU-ecf1cb8c-19f2-38d3-919c-dddb9e17183d"
    assert command(capsys, "nvidia-smi", str(log), "--database-url", url, "--gpu", uuid)[0] == 0


def test_one_of_a_thing_is_not_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = query_log(tmp_path / "q.csv", rows=1)
    _code, out, _err = command(
        capsys, "nvidia-smi", str(log), "--database-url", f"sqlite:///{tmp_path / 'gpuwise.db'}"
    )
    assert "1 row read, 1 kept" in out
    assert "1 sample of 1 GPU, " in out
