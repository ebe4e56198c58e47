"""R17: narrow, slow and full links; an idle look at the generation proves nothing; no figure is ever named."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, SETTINGS, engine, evidence, found, gpu_hour, refused
from hardware_builders import END_MS, card, claims_nothing, no_saving_cases, work_hour, work_hours
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine import advise
from advisor.rules.pcie_bound import RULE
from core.activity import Activity
from core.evidence import GpuEvidence
from core.hours import GpuHour
from core.units import DAY_MS, HOUR_MS

ID = RULE.id
LINK: dict[str, Any] = {
    "pcie_link_generation": 5.0,
    "pcie_link_max_generation": 5.0,
    "pcie_link_width": 16.0,
    "pcie_link_max_width": 16.0,
    "pcie_replay_count": 0.0,
}
FULL = {"pcie_bytes_per_s": 42e9, "sm_active_ratio": 0.3}


def linked(
    hours: list[GpuHour] | None = None, *, health_ms: int | None = END_MS - HOUR_MS // 2, **health: Any
) -> GpuEvidence:
    return card(hours or work_hours(), health=LINK | health, health_ms=health_ms)


def run(gpu: GpuEvidence):
    return advise(evidence([gpu]), rules=(RULE,))


def test_a_link_of_half_the_lanes_is_told_without_figure() -> None:
    (finding,) = found(run(linked(pcie_link_width=8.0)), ID)
    assert finding.cause == "width"
    assert "8 of 16 lanes" in finding.because
    assert finding.saving.is_empty
    assert finding.no_figure


def test_an_old_generation_at_work_is_told() -> None:
    (finding,) = found(run(linked(pcie_link_generation=3.0)), ID)
    assert finding.cause == "generation"


def test_an_old_generation_in_an_idle_hour_is_by_design() -> None:
    hours = [*work_hours(FORTNIGHT_H - 1), gpu_hour(FORTNIGHT_H - 1, Activity.PARKED)]
    advice = run(linked(hours, pcie_link_generation=1.0))
    assert not found(advice, ID)
    assert not refused(advice, ID)


def test_a_full_link_while_the_card_waits_is_told_in_words() -> None:
    (finding,) = found(run(linked(work_hours(**FULL))), ID)
    assert finding.cause == "traffic"
    assert finding.evidence["link_ratio"] == pytest.approx(0.84)
    assert "some kernel was running" in finding.because


def test_a_full_link_beside_full_multiprocessors_is_no_bottleneck() -> None:
    assert not found(run(linked(work_hours(pcie_bytes_per_s=42e9))), ID)


def test_the_same_traffic_fills_an_older_link() -> None:
    hours = work_hours(pcie_bytes_per_s=9e9, sm_active_ratio=0.3)
    old = {"pcie_link_generation": 3.0, "pcie_link_max_generation": 3.0}
    assert found(run(linked(hours, **old)), ID)
    assert not found(run(linked(hours)), ID)


def test_an_engines_offload_explains_the_traffic() -> None:
    served = engine(settings={**SETTINGS, "cpu_offload_gb": "20"})
    (finding,) = found(advise(evidence([linked(work_hours(**FULL))], [served]), rules=(RULE,)), ID)
    assert "cpu_offload_gb explains it" in finding.because
    assert any("--cpu-offload-gb" in action.text for action in finding.actions)


def test_traffic_over_an_unknown_link_is_refused() -> None:
    (refusal,) = refused(run(card(work_hours(**FULL))), ID)
    assert "pcie_link_width" in refusal.missing


def test_a_full_link_without_profiling_counters_is_refused() -> None:
    (refusal,) = refused(run(linked(work_hours(pcie_bytes_per_s=42e9, sm_active_ratio=None))), ID)
    assert refusal.missing == ("sm_active_ratio",)


def test_replays_whose_growth_is_not_recorded_are_refused() -> None:
    (refusal,) = refused(run(linked(pcie_replay_count=50_000.0)), ID)
    assert refusal.missing == ("pcie_replay_count over time",)


def test_neither_link_nor_traffic_is_refused_for_all_at_once() -> None:
    (refusal,) = refused(run(card(work_hours(pcie_bytes_per_s=None))), ID)
    assert refusal.subject.kind == "fleet"


def test_a_link_looked_at_days_ago_is_not_believed() -> None:
    assert not found(run(linked(pcie_link_width=8.0, health_ms=END_MS - 3 * DAY_MS)), ID)


def test_half_an_hour_is_refused() -> None:
    part = replace(work_hour(), covered_s=1500.0, active_s=1500.0, seconds={Activity.COMPUTE_BOUND: 1500.0})
    now = part.hour_ms + 1_000_000
    assert refused(run(linked([part], health_ms=now, pcie_link_width=8.0)), ID)[0].missing == ("time",)


def test_gaps_silence_the_rule() -> None:
    holed = [hour for i, hour in enumerate(work_hours()) if i % 2]
    advice = run(linked(holed, pcie_link_width=8.0))
    assert not found(advice, ID)
    assert refused(advice, ID)[0].missing == ("samples",)


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 1e11), st.floats(0, 1), st.sampled_from([1.0, 4.0, 8.0, 16.0]))
def test_no_link_ever_carries_a_figure(traffic: float, sm: float, width: float) -> None:
    hours = work_hours(24, pcie_bytes_per_s=traffic, sm_active_ratio=sm)
    now = hours[-1].hour_ms + HOUR_MS // 2
    assert claims_nothing(found(run(linked(hours, health_ms=now, pcie_link_width=width)), ID))


@pytest.mark.parametrize("name", no_saving_cases())
def test_nothing_is_claimed_where_nothing_can_be_saved(name: str) -> None:
    advice = advise(no_saving_cases()[name], rules=(RULE,))
    assert claims_nothing(found(advice, ID))
    assert name != "MIG without utilization" or refused(advice, ID)
