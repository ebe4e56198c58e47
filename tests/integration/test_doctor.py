"""``gpuwise doctor`` in plain words."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from store_samples import gpu_sample

from core.clock import now_ms
from core.samples import GpuSample
from gpuwise.commands.doctor import doctor
from store.dbapi import open_connection
from store.ingest import Ingest
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
    late = gpu_sample(0)
    put(
        url,
        [
            GpuSample(
                "GPU-a",
                now_ms() // 10_000 * 10_000 + 90 * 86_400_000,
                10_000,
                10_000,
                late.values,
                None,
                late.activity,
            )
        ],
    )
    state, finding = looks(url)["data"]
    assert state == "bad"
    assert "90 days in the future" in finding


def test_a_mistyped_setting_of_the_environment_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWISE_TARIF_USD_PER_KWH", "0.2")
    state, finding = looks(url)["settings"]
    assert state == "bad"
    assert "GPUWISE_TARIF_USD_PER_KWH" in finding
