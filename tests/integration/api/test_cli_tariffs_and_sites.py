"""``gpuwise tariffs`` and ``gpuwise sites``: in a database and at a server, and what they refuse."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from server_for_tests import serving

from gpuwise.__main__ import main

CSV = (
    "name,time_zone,weekdays,from_hour,to_hour,usd_per_kwh,valid_from\n"
    "city,Europe/Berlin,all,6,22:00,0.30,2026-01-01\n"
    "city,Europe/Berlin,all,22,6,0.10,2026-01-01\n"
    "flat,,,,,0.2,\n"
)
NIGHT = ("--time-zone", "Europe/Berlin", "--period", "all 6-22 0.3", "--period", "all 22-6 0.1")


@pytest.fixture(autouse=True)
def settings_of_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The settings of the test's server, and nothing of this machine's own."""
    config = tmp_path / "gpuwise.toml"
    config.write_text(
        "tariff_usd_per_kwh = 0.10\npue = 1.25\nhost_share_ratio = 0.2\ncarbon_g_per_kwh = 400.0\n"
    )
    monkeypatch.setenv("GPUWISE_CONFIG", str(config))


@pytest.fixture
def database(sqlite_template: Path, tmp_path: Path) -> str:
    path = tmp_path / "cli.db"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite:///{path}"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code, out, err = run(capsys, *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def story(capsys: pytest.CaptureFixture[str], file: Path, where: tuple[str, str]) -> list[Any]:
    """Everything that can be done, and what each step answers."""
    return [
        rows(capsys, "tariffs", "add", "--name", "night", *NIGHT, "--from", "2026-01-01", *where),
        rows(capsys, "tariffs", "import", str(file), *where),
        rows(capsys, "tariffs", "end", "1", "--at", "2026-07-01", *where),
        rows(capsys, "sites", "add", "--name", "hall", "--tariff", "city", "--pue", "1.2", *where),
        rows(
            capsys,
            *("sites", "add", "--name", "rack", "--host", "n1", "--host-share-measured"),
            *("--host-rest-ratio", "0.05", "--pays-for-power", *where),
        ),
        rows(capsys, "sites", "end", "2", "--at", "2026-12-01", *where),
        rows(capsys, "sites", "terms", "--at", "2026-10-05T12:00:00Z", *where),
        rows(capsys, "tariffs", "remove", "1", *where),
        rows(capsys, "sites", "remove", "2", *where),
        rows(capsys, "tariffs", "list", *where),
        rows(capsys, "sites", "list", *where),
    ]


def test_a_server_does_what_a_database_does(
    capsys: pytest.CaptureFixture[str], database: str, tmp_path: Path
) -> None:
    file = tmp_path / "tariffs.csv"
    file.write_text(CSV)
    copy = f"{database}2"
    shutil.copyfile(database.removeprefix("sqlite:///"), copy.removeprefix("sqlite:///"))
    from_database = story(capsys, file, ("--database-url", database))
    with serving(copy) as server:
        assert story(capsys, file, ("--server", server)) == from_database
    assert [row["name"] for row in from_database[1]] == ["city", "flat", "night"]
    assert from_database[2][0]["valid_to"] == "2026-06-30T22:00:00.000Z"
    assert from_database[5][0]["host_rest_ratio"] == 0.05
    assert (from_database[6][0]["usd_per_kwh"], from_database[6][0]["site"]) == ("0.30", "hall")
    assert [row["name"] for row in from_database[-2]] == ["city", "flat"]
    assert [row["name"] for row in from_database[-1]] == ["hall"]


@pytest.mark.parametrize("form", ["csv", "toml"])
def test_an_export_is_imported_elsewhere(
    capsys: pytest.CaptureFixture[str], database: str, tmp_path: Path, form: str
) -> None:
    there = ("--database-url", database)
    file = tmp_path / "tariffs.csv"
    file.write_text(CSV)
    rows(capsys, "tariffs", "import", str(file), *there)
    out = tmp_path / f"again.{form}"
    assert run(capsys, "tariffs", "export", "--out", str(out), *there) == (0, "", f"2 tariffs are in {out}\n")
    before = rows(capsys, "tariffs", "list", *there)
    assert rows(capsys, "tariffs", "import", str(out), *there) == before  # it is all there already
    assert run(capsys, "tariffs", "export", "--format", form, *there)[1] == out.read_bytes().decode()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("tariffs", "add", "--name", "x", "--period", "all 0-24 0.1"), "time_zone is not given"),
        (("tariffs", "add", "--name", "x", "--period", "all day 0.1"), "--period is 'all day 0.1'"),
        (("tariffs", "add", "--name", "x", "--usd-per-kwh", "cheap"), "'cheap'"),
        (("tariffs", "add", "--name", "x"), "either usd_per_kwh"),
        (("tariffs", "end", "9", "--at", "2026-01-01"), "no tariff 9"),
        (("sites", "add", "--name", "x", "--host", "a", "--cluster", "b", "--pue", "1.2"), "two scopes"),
        (("sites", "add", "--name", "x", "--pue", "0.2"), "pue is 0.2"),
        (("sites", "add", "--name", "x", "--tariff", "none"), "tariff is 'none'"),
        (("sites", "terms", "nowhere"), "no host nowhere"),
        (("sites", "remove", "9"), "no site profile 9"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_applied_is_refused_in_a_sentence(
    capsys: pytest.CaptureFixture[str], database: str, words: tuple[str, ...], says: str
) -> None:
    code, out, err = run(capsys, *words, "--database-url", database)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err


def test_a_bad_row_is_named_and_nothing_is_kept(
    capsys: pytest.CaptureFixture[str], database: str, tmp_path: Path
) -> None:
    file = tmp_path / "tariffs.csv"
    file.write_text(CSV + "hole,Europe/Berlin,mon-fri,0,24,0.1,\n")
    code, out, err = run(capsys, "tariffs", "import", str(file), "--database-url", database)
    assert (code, out) == (2, "")
    assert "tariffs.csv, line 5: tariff 'hole': periods leave out sat 00:00–24:00" in err
    assert "nothing was kept" in err
    assert rows(capsys, "tariffs", "list", "--database-url", database) == []


def test_without_tariffs_and_profiles_the_tables_say_what_to_do(
    capsys: pytest.CaptureFixture[str], database: str
) -> None:
    there = ("--database-url", database)
    assert "gpuwise tariffs add" in run(capsys, "tariffs", "list", *there)[1]
    assert "gpuwise sites add" in run(capsys, "sites", "list", *there)[1]
    code, out, _ = run(capsys, "sites", "terms", *there)
    assert (code, "settings" in out, "own" in out) == (0, True, True)


def test_terms_fit_a_terminal_and_name_the_grid_once(
    capsys: pytest.CaptureFixture[str], database: str
) -> None:
    there = ("--database-url", database)
    grid = ("--grid-code", "DEU", "--tariff", "day")
    run(capsys, "tariffs", "add", "--name", "day", "--usd-per-kwh", "0.2", *there)
    run(capsys, "sites", "add", "--name", "hall", *grid, *there)
    code, out, _ = run(capsys, "sites", "terms", *there)
    assert (code, out.count("life-cycle factors of 2024.")) == (0, 1)
    assert "from profile" not in out
    assert max(map(len, out.splitlines())) <= 100
