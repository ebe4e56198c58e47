"""The table commands: from a database and from a server, as JSON and as text, and their exit codes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleet_for_tests import ENGINE, A, B, C
from server_for_tests import serving

from gpuwise.__main__ import main

TABLES = [
    ["gpus"],
    ["hosts"],
    ["engines"],
    *(["usage", "--by", by] for by in ("gpu", "workload", "activity", "day")),
    *(["costs", "--by", by] for by in ("gpu", "owner", "engine", "month")),
    *(["energy", "--by", by] for by in ("host", "owner", "hour")),
]


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
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code, out, err = run(capsys, *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.mark.parametrize("words", TABLES, ids=" ".join)
def test_a_server_gives_the_same_rows_as_its_database(
    capsys: pytest.CaptureFixture[str], filled_sqlite: str, server: str, words: list[str]
) -> None:
    from_database = rows(capsys, *words, "--database-url", filled_sqlite)
    assert from_database
    assert rows(capsys, *words, "--server", server) == from_database


def test_figures_are_those_of_the_tables(capsys: pytest.CaptureFixture[str], filled_sqlite: str) -> None:
    costs = {row["key"]: row for row in rows(capsys, "costs", "--database-url", filled_sqlite)}
    assert (costs[A]["cost_usd"], costs[A]["energy_cost_usd"], costs[C]["cost_usd"]) == (
        "4.00",
        "0.052",
        None,
    )
    energy = {row["key"]: row for row in rows(capsys, "energy", "--database-url", filled_sqlite)}
    assert (energy[B]["energy_j"], energy[B]["method"]) == (1_440_000.0, "integrated")
    (engine,) = rows(capsys, "engines", "--database-url", filled_sqlite)
    assert (engine["engine"], engine["tokens_per_s"]) == (ENGINE, 30.0)


def test_a_pipe_gets_aligned_plain_text(capsys: pytest.CaptureFixture[str], filled_sqlite: str) -> None:
    code, out, _ = run(capsys, "costs", "--database-url", filled_sqlite)
    header, *lines, price = out.splitlines()
    assert code == 0
    assert " ".join(header.split()) == "GROUP COST IDLE UNSEEN ENERGY KG CO2E PRICED SEEN KEY"
    assert [line.split()[-1] for line in lines] == [A, C, B]
    assert "–" in lines[1], "an unpriced GPU shows no cost"
    assert price == "Price: your price for NVIDIA H100 80GB HBM3"
    assert "\x1b" not in out
    assert "\u00a0" not in out


def test_since_and_until_choose_the_window(capsys: pytest.CaptureFixture[str], filled_sqlite: str) -> None:
    words = ("usage", "--database-url", filled_sqlite)
    assert {row["key"] for row in rows(capsys, *words, "--since", "1h")} == {A, B}
    until = ("--since", "2026-10-05", "--until", "2026-10-05T01:00:00Z")
    assert sum(row["total_gpu_h"] for row in rows(capsys, *words, *until)) == 3.0


def test_a_new_database_is_made_and_says_that_it_is_empty(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'deep' / 'new.db'}"
    code, out, err = run(capsys, "gpus", "--database-url", url)
    assert code == 0
    assert err.splitlines()[0] == f"created a new, empty database at {tmp_path / 'deep' / 'new.db'}"
    assert out.startswith("No data in this window: run gpuwise up")
    assert rows(capsys, "gpus", "--database-url", url) == []


def test_a_table_names_its_window_and_that_it_is_wider_than_asked(
    capsys: pytest.CaptureFixture[str], filled_sqlite: str, server: str
) -> None:
    asked = ("--since", "2026-10-05T00:10:00Z", "--until", "2026-10-05T00:20:00Z")
    words = ("energy", "--database-url", filled_sqlite)
    _, out, err = run(capsys, *words, *asked)
    assert err == (
        "Window: 2026-10-05 00:00 to 01:00 UTC "
        "(widened from 2026-10-05 00:10 to 00:20: figures are per clock hour)\n"
    )
    assert "Window" not in out
    whole = "Window: 2026-10-05 00:00 to 02:00 UTC (figures are per clock hour)\n"
    assert run(capsys, *words)[2] == whole
    assert run(capsys, "energy", "--server", server)[2] == whole
    assert isinstance(rows(capsys, *words, *asked), list)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["usage", "--by", "colour"], 2, "colour"),
        (["usage", "--since", "yesterday"], 2, "since is 'yesterday'"),
        (["usage", "--since", "2026-10-06", "--until", "2026-10-05"], 2, "not before"),
        (["usage", "--server", "http://127.0.0.1:9", "--database-url", "sqlite:///x.db"], 2, "two places"),
        (["usage", "--server", "ftp://host"], 2, "http://gpuwise.example:8787"),
        (["usage", "--server", "http://127.0.0.1:9"], 1, "cannot be reached"),
        (["usage", "--database-url", "mysql://x"], 2, "database_url"),
        (["gpus", "--colour"], 2, "--colour"),
        (["advise", "--server", "http://127.0.0.1:9", "--since", "7d"], 2, "last run"),
    ],
)
def test_mistakes_are_one_sentence_on_stderr_with_their_exit_code(
    capsys: pytest.CaptureFixture[str], filled_sqlite: str, words: list[str], code: int, says: str
) -> None:
    place = [] if {"--server", "--database-url"} & set(words) else ["--database-url", filled_sqlite]
    found, out, err = run(capsys, *words, *place)
    assert (found, out) == (code, "")
    assert says in err
    assert "Traceback" not in err


def test_what_a_server_refuses_is_said_in_its_words(capsys: pytest.CaptureFixture[str], server: str) -> None:
    code, _, err = run(capsys, "usage", "--since", "yesterday", "--server", server)
    assert code == 1
    assert "since is 'yesterday'" in err


def test_advise_runs_records_and_prints(capsys: pytest.CaptureFixture[str], filled_database: str) -> None:
    words = ("advise", "--database-url", filled_database)
    dry = rows(capsys, *words, "--dry-run")
    assert dry["recommendations"]
    assert {row["id"] for row in dry["recommendations"]} == {None}
    recorded = rows(capsys, *words)
    assert all(row["id"] is not None and row["status"] == "open" for row in recorded["recommendations"])
    assert recorded["not_evaluated"] == dry["not_evaluated"]
    assert recorded["totals"]["spend_usd_month"] == "2920.00"
    again = rows(capsys, *words)
    assert [row["id"] for row in again["recommendations"]] == [
        row["id"] for row in recorded["recommendations"]
    ]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert recorded["recommendations"][0]["title"] in out
    assert "not evaluated: " in out
    assert out.rstrip().endswith(
        "of $2,920 a month at the pace of this window (2.0 h of data, little to go by)."
    )


def test_advise_of_a_server_is_its_last_run(
    capsys: pytest.CaptureFixture[str], server: str, filled_sqlite: str
) -> None:
    before = rows(capsys, "advise", "--server", server)
    assert (before["recommendations"], before["totals"]) == ([], None)
    ours = rows(capsys, "advise", "--database-url", filled_sqlite)
    theirs = rows(capsys, "advise", "--server", server)
    assert theirs["not_evaluated"] == ours["not_evaluated"]
    assert theirs["totals"] == ours["totals"]
    assert theirs["recommendations"] == ours["recommendations"]
