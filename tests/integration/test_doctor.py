"""``gpuwise doctor`` in plain words."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from store_samples import gpu_sample

from api.resources.scope import default_window
from core.clock import now_ms
from core.samples import GpuSample
from core.units import DAY_MS, HOUR_MS
from gpuwise.commands.doctor import doctor
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.rollup import roll_up
from store.schema import ensure_ready


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
