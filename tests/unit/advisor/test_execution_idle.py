"""R05: energy of pauses within jobs, above bare idle and above what a context draws anyway; nothing else."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, SITE, engine, evidence, found, gpu, gpu_hour, gpu_hours, refused
from hypothesis import given
from hypothesis import strategies as st

from advisor.engine import advise
from advisor.rules.execution_idle import avoidable_w
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence
from core.finding import Grade
from core.units import HOUR_MS

RULE = "execution-idle"
OWN = replace(SITE, pays_for_power=True)


def pausing(gap_s: float = 900.0, hours: int = FORTNIGHT_H, watts: float = 160.0, **more: Any) -> GpuEvidence:
    """Every hour at work but for its pauses, at 160 W where bare idle is 80 W."""
    seconds = {Activity.PARKED: gap_s, Activity.BUSY: 3600 - gap_s}
    facts: dict[str, Any] = {"seconds": seconds, "active_s": 3600 - gap_s, "parked_power_w": watts, **more}
    return gpu([replace(hour, **facts) for hour in gpu_hours(hours)])


def paid(card: GpuEvidence, **more: Any) -> Evidence:
    return evidence([card], site=OWN, **more)


def test_a_quarter_of_every_hour_saves_energy_and_nothing_else() -> None:
    (finding,) = found(advise(paid(pausing())), RULE)
    saving = finding.saving
    assert saving.cash_usd_month is None
    assert saving.capacity_gpu_h_month is None
    assert saving.energy_kwh_month is not None
    gap_h = 730 / 4
    assert saving.energy_kwh_month.p50 == pytest.approx((80 - 46) * gap_h / 1000)
    assert saving.energy_kwh_month.p10 == pytest.approx((80 - 66) * gap_h / 1000)
    assert saving.energy_kwh_month.p90 == pytest.approx((80 - 26) * gap_h / 1000)
    assert finding.grade is Grade.D
    assert finding.evidence["gap_ratio"] == 0.25
    assert finding.evidence["gap_energy_above_bare_usd_month"] == pytest.approx(80 * gap_h / 1000 * 0.12)


def test_power_inside_the_price_is_no_saving() -> None:
    (finding,) = found(advise(evidence([pausing()])), RULE)
    assert finding.saving.is_empty
    assert "inside the price" in (finding.no_figure or "")
    assert "14.6 kWh" in (finding.no_figure or "")


def test_what_a_context_draws_anyway_is_no_saving() -> None:
    (finding,) = found(advise(paid(pausing(watts=120.0))), RULE)
    assert finding.saving.is_empty
    assert "context alone" in (finding.no_figure or "")


def test_pauses_near_bare_idle_or_few_are_left_alone() -> None:
    for card in (pausing(watts=100.0), pausing(gap_s=300.0)):
        advice = advise(paid(card))
        assert not found(advice, RULE)
        assert not refused(advice, RULE)


def test_whole_idle_hours_are_not_pauses() -> None:
    hours = [gpu_hour(i, Activity.PARKED if i % 2 else Activity.BUSY) for i in range(FORTNIGHT_H)]
    assert not found(advise(paid(gpu(hours))), RULE)


def test_waiting_for_input_is_not_idle() -> None:
    starved = {Activity.STARVED: 1800.0, Activity.BUSY: 1800.0}
    card = gpu([replace(hour, seconds=starved) for hour in gpu_hours(FORTNIGHT_H)])
    assert not found(advise(paid(card)), RULE)


def test_unknown_power_is_refused_by_name() -> None:
    (refusal,) = refused(advise(paid(pausing(parked_power_w=None))), RULE)
    assert refusal.missing == ("parked_power_w",)
    (bare,) = refused(advise(paid(replace(pausing(), bare_idle_w=None))), RULE)
    assert bare.missing == ("bare_idle_w",)


def test_little_data_gaps_and_silence_are_refused() -> None:
    assert refused(advise(paid(pausing(hours=6))), RULE)[0].missing == ("time",)
    card = pausing()
    holed = replace(card, hours=tuple(hour for i, hour in enumerate(card.hours) if i % 2))
    assert refused(advise(paid(holed)), RULE)[0].missing == ("samples",)
    late = paid(card)
    late = replace(late, window=replace(late.window, to_ms=late.window.to_ms + 30 * HOUR_MS))
    assert refused(advise(late), RULE)[0].missing == ("recent samples",)


def test_a_server_between_requests_is_told_so() -> None:
    (finding,) = found(advise(paid(pausing(), engines=(engine(),))), RULE)
    assert finding.state == "idle between requests"
    assert "replicas" in finding.actions[0].text


def test_short_data_say_so() -> None:
    (finding,) = found(advise(paid(pausing(hours=48))), RULE)
    assert finding.is_short_of_data


def test_totals_stay_within_the_energy_drawn() -> None:
    card = pausing(energy_j=1000.0)
    totals = advise(paid(card)).totals
    assert totals.energy_kwh_month is not None
    assert totals.energy_kwh_month.p90 <= 1000 * 730 / 3.6e6 + 1e-9


@given(st.floats(0, 700), st.floats(0, 700), st.floats(0, 200))
def test_more_power_never_spares_less_and_never_more_than_is_above_bare(
    one: float, other: float, bare: float
) -> None:
    low, high = sorted((one, other))
    assert avoidable_w(low, bare).p50 <= avoidable_w(high, bare).p50
    assert 0 <= avoidable_w(high, bare).p90 <= max(0.0, high - bare)
