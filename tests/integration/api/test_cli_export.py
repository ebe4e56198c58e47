"""``gpuwise export``: files that appear whole or not at all, what is said of them, and the check of a file."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from server_for_tests import serving

from gpuwise.__main__ import main

OCTOBER = ("--from", "2026-10", "--to", "2026-11")


@pytest.fixture(scope="module")
def server(filled_sqlite: str) -> Iterator[str]:
    """Address of gpuwise over the small fleet."""
    with serving(filled_sqlite) as address:
        yield address


@pytest.fixture(autouse=True)
def settings_of_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The small fleet's site, and nothing of this machine's own settings."""
    config = tmp_path / "gpuwise.toml"
    config.write_text(
        "tariff_usd_per_kwh = 0.10\npue = 1.25\nhost_share_ratio = 0.2\ncarbon_g_per_kwh = 400.0\n"
    )
    monkeypatch.setenv("GPUWISE_CONFIG", str(config))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["export", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_file_is_written_whole_and_keeps_to_the_specification(
    capsys: pytest.CaptureFixture[str], filled_sqlite: str, tmp_path: Path
) -> None:
    file = tmp_path / "out" / "october.csv"
    file.parent.mkdir()
    code, out, err = run(capsys, "focus", *OCTOBER, "--out", str(file), "--database-url", filled_sqlite)
    assert (code, out) == (0, "")
    rows = list(csv.DictReader(file.open(newline="")))
    assert f"{len(rows)} rows in {file}: 8.00 USD billed" in err
    assert "1.0 GPU-hours of 1 GPUs have no price and no row" in err
    assert [one.name for one in file.parent.iterdir()] == ["october.csv"]
    other = tmp_path / "other"
    other.touch()
    assert file.stat().st_mode == other.stat().st_mode
    code, out, err = run(capsys, "focus", "--check", str(file))
    assert (code, out, err) == (0, "", f"{file} keeps to FOCUS 1.2\n")


def test_standard_output_is_the_same_file_from_database_and_server(
    capsys: pytest.CaptureFixture[str], filled_sqlite: str, server: str
) -> None:
    for words in (("focus", "--account", "site 1"), ("csv",), ("csv", "--by", "host,day")):
        found = [
            run(capsys, *words, *OCTOBER, *place)
            for place in (("--database-url", filled_sqlite), ("--server", server))
        ]
        assert found[0][:2] == found[1][:2]
        assert found[0][0] == 0
        assert found[0][1].count("\r\n") > 2
        assert "Note:" not in found[0][1]


def test_what_there_is_to_know_is_json_beside_a_file(
    capsys: pytest.CaptureFixture[str], filled_sqlite: str, tmp_path: Path
) -> None:
    words = (*OCTOBER, "--json", "--database-url", filled_sqlite)
    code, out, err = run(capsys, "focus", *words, "--out", str(tmp_path / "o.csv"))
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert (said["billed_usd"], said["unpriced_gpu_h"], said["from_at"]) == (
        "8.00",
        1.0,
        "2026-10-01T00:00:00.000Z",
    )
    code, _, err = run(capsys, "focus", *words)
    assert (code, "give --out FILE" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "2026-10"), "--to is not given"),
        (("--to", "2026-10"), "--from is not given"),
        (("--from", "2026-11", "--to", "2026-10"), "is not before"),
        (("--from", "2026-01", "--to", "2026-02"), "no samples from 2026-01 to 2026-02"),
        ((*OCTOBER, "--out", "/nowhere/o.csv"), "folder /nowhere does not exist"),
    ],
)
@pytest.mark.parametrize("kind", ["focus", "csv"])
def test_what_cannot_be_written_is_a_sentence(
    capsys: pytest.CaptureFixture[str],
    filled_sqlite: str,
    kind: str,
    words: tuple[str, ...],
    said: str,
) -> None:
    code, out, err = run(capsys, kind, *words, "--database-url", filled_sqlite)
    assert (code, out) == (2, "")
    assert said in err


def test_a_file_that_could_not_be_finished_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str],
    filled_sqlite: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    file = folder / "o.csv"
    file.write_text("before")

    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    code, _, err = run(capsys, "focus", *OCTOBER, "--out", str(file), "--database-url", filled_sqlite)
    assert (code, "cannot be written (No space left on device)" in err) == (1, True)
    assert [(one.name, one.read_text()) for one in folder.iterdir()] == [("o.csv", "before")]


def test_departures_of_a_file_are_listed_and_counted(
    capsys: pytest.CaptureFixture[str], filled_sqlite: str, tmp_path: Path
) -> None:
    file = tmp_path / "o.csv"
    run(capsys, "focus", *OCTOBER, "--out", str(file), "--database-url", filled_sqlite)
    file.write_text(file.read_text().replace(",USD,", ",usd,"))
    code, out, err = run(capsys, "focus", "--check", str(file))
    assert code == 1
    assert "line 2, BillingCurrency: is 'usd': write a code of ISO 4217" in out
    assert "departs from FOCUS 1.2 in" in err
    file.write_bytes(b"\xff\xfe\x00")
    assert run(capsys, "focus", "--check", str(file))[0] == 2
