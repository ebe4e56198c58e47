"""``gpuwise doctor`` in plain words: this installation, and a driver in every state that users report."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from store_samples import gpu_sample

from api.resources.scope import default_window
from core.clock import now_ms
from core.readings import GpuIdentity
from core.samples import GpuSample
from core.units import DAY_MS, HOUR_MS
from gpuwise.commands.doctor import doctor
from gpuwise.commands.prices import prices
from gpuwise.commands.sites import sites
from gpuwise.commands.tariffs import tariffs
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.rollup import roll_up
from store.schema import ensure_ready
from tests.standin import profiles
from tests.standin.build import build_or_skip, environment
from tests.standin.scenario import Scenario

ROOT = Path(__file__).resolve().parents[2]
Found = dict[tuple[str, str], tuple[str, str]]


def looks(url: str) -> dict[str, tuple[str, str]]:
    done = CliRunner().invoke(doctor, ["--json", "--database-url", url])
    return {check["name"]: (check["state"], check["finding"]) for check in json.loads(done.stdout)}


def put(url: str, samples: Sequence[GpuSample]) -> None:
    ensure_ready(url)
    with open_connection(url) as connection:
        ingest = Ingest(connection)
        ingest.gpu_samples(samples)
        ingest.commit()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'x.db'}"


def test_a_new_installation_is_told_how_to_get_data(url: str) -> None:
    state, finding = looks(url)["data"]
    assert state == "note"
    assert "gpuwise import" in finding


def test_data_from_the_future_is_bad(url: str) -> None:
    now = now_ms() // 10_000 * 10_000
    put(url, [replace(gpu_sample(0), ts_ms=ts_ms) for ts_ms in (now - 20_000, now + 90 * DAY_MS)])
    roll_up(make_engine(url), now_ms=now)
    state, finding = looks(url)["data"]
    assert state == "bad"
    assert "90 days in the future" in finding


def test_a_mistyped_setting_of_the_environment_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWISE_TARIF_USD_PER_KWH", "0.2")
    state, finding = looks(url)["settings"]
    assert state == "bad"
    assert "GPUWISE_TARIF_USD_PER_KWH" in finding


def test_a_host_whose_clock_is_ahead_does_not_move_the_window_of_the_others(url: str) -> None:
    now = now_ms() // 10_000 * 10_000
    put(url, [replace(gpu_sample(0), ts_ms=ts_ms) for ts_ms in (now - 20_000, now + 90 * DAY_MS)])
    roll_up(make_engine(url), now_ms=now)
    with session_scope(make_engine(url)) as session:
        window = default_window(session, now)
    assert window is not None
    assert window.to_ms <= now + HOUR_MS


def fleet(url: str, *models: str) -> None:
    ensure_ready(url)
    with open_connection(url) as connection:
        ingest = Ingest(connection)
        ingest.gpus([GpuIdentity(f"GPU-{at}", f"h{at}", 0, model) for at, model in enumerate(models)])
        ingest.commit()


def test_unpriced_and_aged_prices_are_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet(url, "NVIDIA H100 80GB HBM3", "Card Of Nobody", "Card Of Nobody", "NVIDIA A10G")
    monkeypatch.setattr("gpuwise.commands.doctor.now_ms", lambda: 1_800_000_000_000)  # 2027-01-15
    CliRunner().invoke(
        prices, ["add", "--model", "NVIDIA H100 80GB HBM3", "--usd-per-gpu-hour", "2", "--database-url", url]
    )
    state, finding = looks(url)["prices"]
    assert state == "note"
    assert finding.startswith(
        "1 price rows of yours; 2 of 4 GPUs have no price and no cost (2 × Card Of Nobody); "
    )
    assert "1 GPUs have a catalogue price older than 90 days (1 × NVIDIA A10G)" in finding


def test_a_fleet_with_prices_of_its_own_is_fine(url: str) -> None:
    fleet(url, "NVIDIA H100 80GB HBM3", "Card Of Nobody")
    assert looks(url)["prices"][1].startswith("no prices of yours")
    CliRunner().invoke(prices, ["add", "--all", "--usd-per-gpu-hour", "2", "--database-url", url])
    assert looks(url)["prices"] == ("ok", "1 price rows of yours")


def test_hosts_without_a_tariff_are_named(url: str) -> None:
    fleet(url, "NVIDIA H100 80GB HBM3", "NVIDIA A10G")
    assert looks(url)["energy"][1].startswith("no tariff anywhere: ")
    there = ("--database-url", url)
    CliRunner().invoke(tariffs, ["add", "--name", "t", "--usd-per-kwh", "0.2", *there])
    CliRunner().invoke(sites, ["add", "--name", "s", "--host", "h0", "--tariff", "t", *there])
    state, finding = looks(url)["energy"]
    assert (state, finding.split(":")[0]) == ("note", "no tariff for 1 of 2 hosts (h1)")
    CliRunner().invoke(sites, ["add", "--name", "all", "--tariff", "t", "--pue", "1.2", *there])
    assert looks(url)["energy"][0] == "ok"
    assert looks(url)["energy"][1].startswith("0.2 USD/kWh now, PUE 1.2, grid ")


def meet(tmp_path: Path, scenario: Scenario, *words: str) -> tuple[int, Found]:
    """Exit code and checks by (part, name) of a doctor that meets the stand-in driver."""
    folder = build_or_skip(tmp_path / "driver", without=scenario.without)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "gpuwise",
            "doctor",
            "--json",
            "--database-url",
            f"sqlite:///{tmp_path / 'x.db'}",
            *words,
        ],
        env={
            **environment(folder, scenario.write(tmp_path / "scenario")),
            "GPUWISE_SPOOL_PATH": str(tmp_path / "spool.db"),
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    checks = json.loads(done.stdout)
    return done.returncode, {(one["part"], one["name"]): (one["state"], one["finding"]) for one in checks}


def test_a_healthy_card_has_nothing_to_note(tmp_path: Path) -> None:
    code, found = meet(tmp_path, profiles.busy_decode(2))
    assert code == 0
    for index in (0, 1):
        rows = {name: state for (part, name), (state, _finding) in found.items() if part == f"gpu {index}"}
        assert set(rows.values()) == {"ok"}, rows
        assert {"utilization", "energy counter", "SM counters", "processes", "ECC", "MIG"} <= rows.keys()
    assert found["driver", "nvml"][0] == "ok"
    assert "580.95.05" in found["driver", "versions"][1]


def test_a_lost_card_is_bad_and_hides_no_other(tmp_path: Path) -> None:
    code, found = meet(tmp_path, Scenario(gpus=2).lost(0, at=0))
    assert code == 1
    assert "off the bus" in found["gpu 0", "card"][1]
    assert found["gpu 1", "utilization"][0] == "ok"


def test_refused_counters_name_the_module_option(tmp_path: Path) -> None:
    code, found = meet(tmp_path, Scenario().fail("nvmlGpmSampleGet", 4))
    assert code == 0
    state, finding = found["gpu 0", "SM counters"]
    assert (state, "NVreg_RestrictProfilingToAdminUsers=0" in finding) == ("note", True)


def test_an_old_driver_is_told_what_it_lacks(tmp_path: Path) -> None:
    code, found = meet(tmp_path, profiles.old_driver_470())
    assert code == 0
    assert "R510" in found["gpu 0", "memory"][1]
    assert "Hopper" in found["gpu 0", "SM counters"][1]


def test_mig_is_explained_and_its_instances_are_probed(tmp_path: Path) -> None:
    _code, found = meet(tmp_path, profiles.mig())
    assert "MIG on" in found["gpu 0", "utilization"][1]
    assert "for a MIG instance" in found["gpu 0", "SM counters"][1]
    assert "3 instances" in found["gpu 0", "MIG"][1]


@pytest.mark.parametrize(
    ("function", "said"), [("nvmlInit_v2", "nvmlInit"), ("nvmlDeviceGetEccMode", "health of GPU 0")]
)
def test_a_driver_that_hangs_does_not_hang_the_doctor(tmp_path: Path, function: str, said: str) -> None:
    code, found = meet(tmp_path, Scenario().hang(function), "--driver-timeout", "4")
    state, finding = found["driver", "nvml"]
    assert (code, state) == (1, "bad")
    assert said in finding
    assert ("delivery", "spool") in found


def test_an_upgraded_driver_is_named_as_such(tmp_path: Path) -> None:
    code, found = meet(tmp_path, Scenario().fail("nvmlInit_v2", 18))
    assert code == 1
    assert "upgraded while it ran" in found["driver", "nvml"][1]


def test_the_base_install_has_it_too_and_then_needs_a_driver(tmp_path: Path) -> None:
    blocked = (
        "import sys\nfor name in ('click', 'sqlalchemy', 'pydantic', 'psycopg'): sys.modules[name] = None\n"
    )
    code = f"{blocked}from agent.doctor.cli import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "--json", "--database-url", f"sqlite:///{tmp_path / 'x.db'}"],
        env={
            **os.environ,
            "LD_LIBRARY_PATH": str(tmp_path),
            "GPUWISE_SPOOL_PATH": str(tmp_path / "spool.db"),
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = {one["name"]: one["state"] for one in json.loads(done.stdout)}
    assert "prices" not in found
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("this machine has a driver")
    assert (done.returncode, found["nvml"]) == (1, "bad")


def test_its_text_keeps_to_the_width(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpuwise", "doctor", "--database-url", f"sqlite:///{tmp_path / 'x.db'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Where samples go" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
