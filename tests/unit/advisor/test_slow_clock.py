"""R25: a card below its fleet's clock is found by its peers; heat, caps and other work are not slow clocks."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from advice_builders import FORTNIGHT_H, START_MS, evidence, found, refused
from hardware_builders import card, claims_nothing, no_saving_cases, use, work_hour, work_hours
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine import advise
from advisor.rules.slow_clock import RULE
from core.activity import Activity
from core.evidence import GpuEvidence
from core.hours import GpuHour
from core.units import HOUR_MS

ID = RULE.id


def fleet(odd: Sequence[GpuHour], activity: Activity = Activity.COMPUTE_BOUND, peers: int = 4):
    """One odd card among healthy ones."""
    rest = [card(work_hours(activity=activity), uuid=f"GPU-{i}") for i in range(peers)]
    return advise(evidence([card(odd, uuid="GPU-odd"), *rest]), rules=(RULE,))


def test_a_card_below_its_fleet_loses_what_its_clock_loses() -> None:
    """1 − 1.40/1.75 = 20 % of 730 h."""
    (finding,) = found(fleet(work_hours(sm_clock_hz=1.4e9)), ID)
    assert finding.subject.id == "GPU-odd"
    assert finding.saving.capacity_gpu_h_month is not None
    assert finding.saving.capacity_gpu_h_month.p50 == pytest.approx(146.0)
    assert finding.saving.cash_usd_month is None
    assert finding.evidence["peer_count"] == 4
    assert any("-rgc" in (action.command or "") for action in finding.actions)


def test_the_loss_of_memory_bound_work_is_small_and_said_so() -> None:
    slow = work_hours(activity=Activity.MEMORY_BOUND, sm_clock_hz=1.4e9)
    (finding,) = found(fleet(slow, Activity.MEMORY_BOUND), ID)
    assert finding.saving.is_empty
    assert "No capacity figure, because it may save nothing: 0.0 GPU-h to" in (finding.no_figure or "")
    assert "the loss is small" in finding.because


def test_a_few_percent_between_boards_are_no_finding() -> None:
    assert not found(fleet(work_hours(sm_clock_hz=1.68e9)), ID)


@pytest.mark.parametrize("name", ["slowed_thermal_s", "slowed_power_s", "throttled_s"])
def test_a_clock_with_a_known_reason_is_not_this_rules(name: str) -> None:
    assert not found(fleet(work_hours(sm_clock_hz=1.2e9, **{name: 1800.0})), ID)


def test_power_at_the_cap_explains_a_clock_where_its_counter_is_missing() -> None:
    capped = work_hours(sm_clock_hz=1.2e9, slowed_power_s=None, power_w=695.0)
    assert not found(fleet(capped), ID)


def test_a_card_with_other_work_than_its_peers_is_not_compared() -> None:
    assert not found(fleet(work_hours(activity=Activity.MEMORY_BOUND, sm_clock_hz=1.4e9)), ID)


def test_a_card_that_idles_half_the_time_is_not_judged_by_its_clock() -> None:
    assert not found(fleet(work_hours(sm_clock_hz=0.9e9, busy_ratio=0.5)), ID)


def test_two_peers_are_no_fleet() -> None:
    assert not found(fleet(work_hours(sm_clock_hz=1.4e9), peers=2), ID)


def test_a_card_alone_far_below_its_own_highest_is_told_without_figure() -> None:
    lone = card(work_hours(sm_clock_hz=1.2e9))
    lone = replace(lone, identity=replace(lone.identity, max_sm_clock_hz=1.98e9))
    (finding,) = found(advise(evidence([lone]), rules=(RULE,)), ID)
    assert finding.saving.is_empty
    assert "not known" in (finding.no_figure or "")


def test_clocks_without_event_reasons_are_refused() -> None:
    blind = work_hours(throttled_s=None, slowed_thermal_s=None, sm_clock_hz=1.2e9)
    (refusal,) = refused(advise(evidence([card(blind)]), rules=(RULE,)), ID)
    assert "event_reasons_flags" in refusal.missing


def test_half_an_hour_of_load_is_refused() -> None:
    part = replace(
        work_hour(FORTNIGHT_H - 1, sm_clock_hz=1.4e9),
        covered_s=1500.0,
        active_s=1500.0,
        seconds={Activity.COMPUTE_BOUND: 1500.0},
    )
    (refusal,) = refused(fleet([part]), ID)
    assert refusal.missing == ("time",)


def test_gaps_silence_the_rule() -> None:
    advice = fleet([hour for i, hour in enumerate(work_hours(sm_clock_hz=1.4e9)) if i % 2])
    assert not found(advice, ID)
    assert refused(advice, ID)[0].missing == ("samples",)


def short_lived(mode: str) -> GpuEvidence:
    uses = tuple(use(key=f"{pid}:0", last_ms=START_MS + HOUR_MS) for pid in range(5))
    return card(uses=uses, health={"persistence_mode": mode}, health_ms=START_MS)


def test_short_processes_without_persistence_mode_are_told_without_figure() -> None:
    (finding,) = found(advise(evidence([short_lived("disabled")]), rules=(RULE,)), ID)
    assert finding.cause == "persistence"
    assert finding.saving.is_empty
    assert not found(advise(evidence([short_lived("enabled")]), rules=(RULE,)), ID)


@settings(max_examples=6, deadline=None)
@given(st.floats(0.3e9, 1.75e9))
def test_a_slower_clock_never_saves_less_and_never_more_than_the_hours(clock_hz: float) -> None:
    def saved(hz: float) -> float:
        findings = found(fleet(work_hours(48, sm_clock_hz=hz, start=FORTNIGHT_H - 48)), ID)
        figures = [f.saving.capacity_gpu_h_month for f in findings]
        return figures[0].p50 if figures and figures[0] is not None else 0.0

    assert 0 <= saved(clock_hz) <= saved(clock_hz * 0.8) <= 730


@pytest.mark.parametrize("name", no_saving_cases())
def test_nothing_is_claimed_where_nothing_can_be_saved(name: str) -> None:
    advice = advise(no_saving_cases()[name], rules=(RULE,))
    assert claims_nothing(found(advice, ID))
    assert name != "MIG without utilization" or refused(advice, ID)
