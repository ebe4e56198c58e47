"""Calls that are slower than the interval: rounds are skipped and counted, and what is stored stays right."""

from pathlib import Path

import pytest
from live_agent import LiveAgent

from core.clock import now_ms
from tests.standin import profiles
from tests.standin.scenario import gpu_uuid

SECONDS = 8


def test_slow_calls_skip_rounds_and_leave_energy_and_means_right(tmp_path: Path) -> None:
    start_s = now_ms() / 1000
    scenario = profiles.busy_decode(start_s=start_s).slow("nvmlDeviceGetUtilizationRates", 250)
    for second in range(0, 40, 2):  # a square wave of power, 200 W and 600 W
        scenario.values(second, power_mw=200_000).values(second + 1, power_mw=600_000)
    with LiveAgent(tmp_path, scenario) as agent:
        agent.until(lambda: len(agent.samples(gpu_uuid(0), "covered_ms = 1000")) >= SECONDS)
        agent.until(lambda: agent.rows("SELECT 1 FROM host_sample WHERE agent_skipped_count > 0"))
        samples = agent.samples(gpu_uuid(0), "covered_ms = 1000")
        (cost,) = agent.rows(
            "SELECT max(agent_skipped_count) AS skipped, max(agent_tick_max_s) AS tick_s FROM host_sample"
        )
    assert len({sample["ts_ms"] for sample in samples}) == len(samples)
    assert samples[-1]["ts_ms"] - samples[0]["ts_ms"] == 1000 * (len(samples) - 1)  # covered without a hole
    times = [sample["ts_ms"] / 1000 - start_s for sample in samples]
    exact_j = sum(_energy_j(at, at + 1) for at in times)
    assert sum(sample["energy_j"] for sample in samples) == pytest.approx(exact_j, rel=0.005, abs=200 * 0.35)
    for sample in samples:
        assert sample["busy_ratio"] == pytest.approx(0.97)
        assert 200 <= sample["power_w"] <= 600
    assert {round(sample["sm_active_ratio"], 9) for sample in samples[3:]} == {0.7}
    assert cost["skipped"] >= 2
    assert cost["tick_s"] >= 0.25


def _energy_j(begin_s: float, end_s: float) -> float:
    return _total_j(end_s) - _total_j(begin_s)


def _total_j(at_s: float) -> float:
    whole, part = divmod(at_s, 2)
    return whole * 800 + min(part, 1) * 200 + max(part - 1, 0) * 600
