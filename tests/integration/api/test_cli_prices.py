"""``gpuwise prices`` and ``gpuwise rates``: on a database and on a server, with the same words and answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleet_for_tests import H100, A, fill
from server_for_tests import serving

from gpuwise.__main__ import main


@pytest.fixture(autouse=True)
def settings_of_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's own settings."""
    config = tmp_path / "gpuwise.toml"
    config.write_text("")
    monkeypatch.setenv("GPUWISE_CONFIG", str(config))


@pytest.fixture(params=["database", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path) -> Iterator[tuple[str, str]]:
    """Flags that say where: the small fleet without a price in a database, and behind a server."""
    path = tmp_path / "gpuwise.db"
    path.write_bytes(sqlite_template.read_bytes())
    url = f"sqlite:///{path}"
    fill(url, price_usd=None)
    if request.param == "database":
        yield "--database-url", url
        return
    with serving(url) as address:
        yield "--server", address


class Say:
    """Runs commands at one place."""

    def __init__(self, capsys: pytest.CaptureFixture[str], place: tuple[str, str]) -> None:
        self.capsys = capsys
        self.place = place

    def text(self, line: str, *more: str, code: int = 0) -> str:
        assert main([*line.split(), *more, *self.place]) == code
        out, err = self.capsys.readouterr()
        return err if code else out

    def json(self, line: str, *more: str) -> Any:
        return json.loads(self.text(line, *more, "--json"))


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], place: tuple[str, str]) -> Say:
    return Say(capsys, place)


def test_prices_are_added_listed_ended_and_removed(say: Say) -> None:
    assert "No prices of yours" in say.text("prices")
    made = say.json("prices add --usd-per-gpu-hour 2.5 --from 2026-10-01 --model", H100)
    assert (made["id"], made["usd_per_gpu_hour"], made["billing"]) == (1, "2.50", "on_demand")
    second = say.json("prices add --usd-per-gpu-hour 3 --from 2026-10-05 --replace --model", H100)
    ended = say.json("prices end --on 2026-12-01", str(second["id"]))
    listed = say.json("prices list")
    assert listed[1] == ended
    assert [row["valid_to"][:10] for row in listed] == ["2026-10-05", "2026-12-01"]
    assert f"model {H100}" in say.text("prices")
    assert say.json("prices remove 1") == {"removed": 1}
    assert [row["id"] for row in say.json("prices list")] == [2]


def test_mistakes_are_sentences_that_name_field_and_value(say: Say) -> None:
    say.json("prices add --host h1 --usd-per-gpu-hour 2")
    for line, says in (
        ("prices add --usd-per-gpu-hour 2", "say what the price is for"),
        ("prices add --host h1 --all --usd-per-gpu-hour 2", "exactly one of"),
        ("prices add --host h2 --usd-per-gpu-hour -1", "-1 is out of bounds"),
        ("prices add --host h2 --usd-per-gpu-hour NaN", "out of bounds"),
        ("prices add --host h2 --capex 0", "capex is 0"),
        ("prices add --host h2 --amount-per-gpu-hour 2 --currency ABC", "currency is 'ABC'"),
        ("prices add --host h2 --amount-per-gpu-hour 2 --currency EUR", "no exchange rate of EUR"),
        ("prices add --host h1 --usd-per-gpu-hour 3", "overlaps price 1"),
        (
            "prices add --host h2 --usd-per-gpu-hour 2 --from 2026-10-02 --to 2026-10-02",
            "valid_to is '2026-10-02', not",
        ),
        ("prices add --host h2 --usd-per-gpu-hour 2 --to 1960-01-01", "valid_to is '1960-01-01'"),
        ("rates add EUR --from 1960-01-01 --usd-per-unit 1", "from_day is '1960-01-01'"),
        ("prices end 9 --on 2026-10-01", "no price 9"),
        ("prices remove 9", "no price 9"),
        ("rates add USD --from 2026-10-01 --usd-per-unit 1", "a dollar is a dollar"),
        ("rates remove 9", "no exchange rate 9"),
    ):
        code = 2 if say.place[0] == "--database-url" or "say what" in says or "exactly" in says else 1
        assert says in say.text(line, code=code).replace("nan", "NaN"), line
    assert len(say.json("prices list")) == 1


def test_a_flag_before_the_command_is_refused(say: Say, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prices", *say.place, "list"]) == 2
    assert "give it after" in capsys.readouterr().err


def test_an_owned_machine_and_a_spot_one_tell_what_they_cost(say: Say) -> None:
    owned = say.text("prices add --host h1 --capex 330000 --pue 1.3 --tariff-per-kwh 0.12 --includes-energy")
    assert "1.80016" in owned
    assert "energy at idle draw is in the rate (2.2 kW × PUE 1.3 × 0.12 per kWh)" in owned
    spot = say.text("prices add --host h2 --usd-per-gpu-hour 2 --interruptions-per-hour 0.05 --restart-h 1")
    assert "2.10 USD an hour of finished work" in spot


def test_the_prices_in_force_count_the_unpriced(say: Say) -> None:
    say.json("prices add --usd-per-gpu-hour 2 --gpu", A)
    rows = {row["gpu_uuid"]: row for row in say.json("prices effective")}
    assert rows[A]["usd_per_gpu_hour"] == "2.00"
    assert {row["usd_per_gpu_hour"] for row in rows.values() if row["why_unpriced"]} == {None}
    shown = say.text("prices --effective")
    assert "2 GPUs priced, 1 unpriced." in shown
    assert "Unpriced: Card Of Nobody is in no price list of ours: give your own price." in shown


def test_a_price_that_is_for_no_gpu_says_so(say: Say) -> None:
    assert "Price 1: no GPU seen so far is of host h9: check the name." in say.text(
        "prices add --host h9 --usd-per-gpu-hour 2"
    )
    say.json("hosts label h1 cluster=north rack=7")
    for scope in ("--cluster north", "--label rack=7", "--all", f"--gpu {A}", "--model H100-SXM5-80GB"):
        say.json(f"prices add {scope} --usd-per-gpu-hour 2")
    assert [row["gpu_count"] for row in say.json("prices list")] == [0, 2, 2, 3, 1, 2]
    assert say.text("prices list").count("check the name") == 1


def test_gpus_of_a_host_that_are_priced_alike_are_one_line(say: Say) -> None:
    lines = say.text("prices effective").splitlines()
    (line,) = [line for line in lines if line.startswith("h1")]
    assert line.split()[:2] == ["h1", "2"]


def test_files_go_in_and_out_unchanged(say: Say, tmp_path: Path) -> None:
    rates, prices, out = (tmp_path / name for name in ("rates.csv", "prices.csv", "out.csv"))
    rates.write_text("currency,from_day,usd_per_unit\nEUR,2026-10-01,1.08\n")
    prices.write_text(
        "\ufeffscope_kind,scope_value,amount_per_gpu_hour,currency,valid_from,note\n"
        "cluster,north,2.1,EUR,2026-10-01,'=A1\n",
        encoding="utf-8",
    )
    assert say.json("rates import", str(rates))["added_count"] == 1
    assert say.json("prices import", str(prices))["prices"][0]["note"] == "=A1"
    say.text("prices export --out", str(out))
    assert out.read_bytes().decode() == say.text("prices export")
    assert say.json("prices import", str(out))["unchanged_count"] == 1
    exported = say.text("rates export")
    assert exported == "currency,from_day,usd_per_unit\r\nEUR,2026-10-01,1.08\r\n"
    rates.write_text(exported.replace("1.08", "1.09"))
    assert say.json("rates import --replace", str(rates))["replaced_count"] == 1
    assert say.json("rates list") == [
        {"id": 1, "currency": "EUR", "from_day": "2026-10-01", "usd_per_unit": "1.09"}
    ]
    prices.write_text("scope_kind,scope_value,amount_per_gpu_hour\nall,,x\nrack,1,1\n")
    code = 2 if say.place[0] == "--database-url" else 1
    refused = say.text("prices import", str(prices), code=code)
    assert "2 of 2 rows are refused, nothing was kept: line 2: " in refused
    assert "line 3: price scope 'rack'" in refused


def test_a_file_that_cannot_be_written_is_a_sentence(say: Say, tmp_path: Path) -> None:
    for command in ("prices", "rates", "owners"):
        said = say.text(f"{command} export --out", str(tmp_path / "none" / "x.csv"), code=1)
        assert "x.csv cannot be written (No such file or directory)" in said
        assert len(said.splitlines()) == 1
