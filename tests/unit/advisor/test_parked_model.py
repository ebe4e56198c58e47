"""R02: fires, stays silent, refuses thin data, saves to the cent, and tells a parked model from a pause."""

from dataclasses import replace

import pytest
from advice_builders import (
    FORTNIGHT_H,
    PRICE,
    SITE,
    engine,
    engine_hours,
    evidence,
    found,
    gpu,
    gpu_hour,
    gpu_hours,
    refused,
)

from advisor.engine import advise
from core.activity import Activity
from core.finding import Grade
from core.hours import GpuHour
from core.units import GIB

RULE = "parked-model"
PARKED = gpu(gpu_hours(FORTNIGHT_H, Activity.PARKED))


def nights(parked_per_day: int, days: int = 14) -> list[GpuHour]:
    """Parked through the first hours of every day, at work in the others."""
    return [
        gpu_hour(day * 24 + hour, Activity.PARKED if hour < parked_per_day else Activity.BUSY)
        for day in range(days)
        for hour in range(24)
    ]


def test_a_model_parked_for_a_fortnight_saves_its_gpus_price_to_the_cent() -> None:
    (finding,) = found(advise(evidence([PARKED])), RULE)
    assert finding.saving.cash_usd_month is not None
    assert round(finding.saving.cash_usd_month.p50, 2) == 1825.00
    assert finding.cause == "throughout"
    assert finding.grade is Grade.A
    assert finding.evidence["parking_tax_w"] == 40.0
    assert finding.evidence["memory_held_bytes"] == 60 * GIB


def test_parked_nights_save_hours_and_no_cash() -> None:
    (finding,) = found(advise(evidence([gpu(nights(8))])), RULE)
    assert finding.cause == "recurring"
    assert finding.saving.cash_usd_month is None
    assert finding.saving.capacity_gpu_h_month is not None
    assert finding.saving.capacity_gpu_h_month.p50 == pytest.approx(730 / 3)
    assert "works in between" in (finding.no_figure or "")
    assert finding.evidence["days_of_last_7"] == 7


def test_a_working_gpu_is_left_alone() -> None:
    advice = advise(evidence([gpu()]))
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_pauses_between_requests_are_not_parking() -> None:
    half = {Activity.PARKED: 1800.0, Activity.BUSY: 1800.0}
    pausing = gpu([replace(hour, seconds=half, active_s=1800.0) for hour in gpu_hours(FORTNIGHT_H)])
    assert not found(advise(evidence([pausing])), RULE)


def test_two_parked_days_of_seven_are_not_a_habit() -> None:
    hours = list(gpu_hours(FORTNIGHT_H))
    for index in (330, 300):
        hours[index] = gpu_hour(index, Activity.PARKED)
    assert not found(advise(evidence([gpu(hours)])), RULE)


def test_half_an_hour_of_parking_is_refused() -> None:
    advice = advise(evidence([gpu([gpu_hour(0, Activity.PARKED, seconds=1800)])]))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert refusal.missing == ("time",)
    assert "60 minutes" in refusal.why


def test_six_hours_parked_throughout_answer_graded_down() -> None:
    (finding,) = found(advise(evidence([gpu(gpu_hours(6, Activity.PARKED))])), RULE)
    assert finding.grade is Grade.B
    assert "6 hours of data, 14 days are the floor" in finding.confidence


def test_gaps_in_the_data_silence_the_rule() -> None:
    holed = gpu([hour for i, hour in enumerate(gpu_hours(FORTNIGHT_H, Activity.PARKED)) if i % 2])
    advice = advise(evidence([holed]))
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("samples",)


def test_an_hour_with_a_twenty_minute_gap_is_not_called_parked() -> None:
    hours = [replace(hour, covered_s=2400.0, seconds={Activity.PARKED: 2400.0}) for hour in nights(8)]
    assert not found(advise(evidence([gpu(hours)])), RULE)


def test_memory_that_was_not_read_is_refused() -> None:
    blind = gpu([replace(hour, memory_used_bytes=None) for hour in gpu_hours(FORTNIGHT_H, Activity.PARKED)])
    advice = advise(evidence([blind]))
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("memory_used_bytes",)


def test_a_small_context_is_not_a_model() -> None:
    small = gpu(
        [replace(hour, memory_used_bytes=0.4 * GIB) for hour in gpu_hours(FORTNIGHT_H, Activity.PARKED)]
    )
    assert not found(advise(evidence([small])), RULE)


def test_hours_in_which_the_engine_served_are_not_parked() -> None:
    serving = engine(engine_hours(FORTNIGHT_H, kv_used=0.01))
    assert not found(advise(evidence([PARKED], [serving])), RULE)


def test_the_tax_is_energy_only_where_the_site_pays_its_power() -> None:
    own = evidence([PARKED], site=replace(SITE, pays_for_power=True))
    (finding,) = found(advise(own), RULE)
    assert finding.saving.energy_kwh_month is not None
    assert finding.saving.energy_kwh_month.p50 == pytest.approx(40 * 730 / 1000)
    (rented,) = found(advise(evidence([PARKED])), RULE)
    assert rented.saving.energy_kwh_month is None


def test_an_unknown_bare_idle_power_gives_no_tax() -> None:
    (finding,) = found(advise(evidence([replace(PARKED, bare_idle_w=None)])), RULE)
    assert "parking_tax_w" not in finding.evidence


def test_a_node_of_empty_and_parked_gpus_can_be_handed_back_once_unloaded() -> None:
    price = replace(PRICE, gpus_per_unit=2)
    pair = [
        replace(gpu(gpu_hours(FORTNIGHT_H, kind), uuid=f"GPU-{kind}"), price=price, host_gpu_count=2)
        for kind in (Activity.PARKED, Activity.EMPTY)
    ]
    (finding,) = found(advise(evidence(pair)), RULE)
    assert finding.saving.cash_usd_month is not None


def test_vllm_gets_its_own_sleep_command() -> None:
    asleep = engine(engine_hours(FORTNIGHT_H, running=0.0001, busy_s=0.0))
    (finding,) = found(advise(evidence([PARKED], [asleep])), RULE)
    assert any("/sleep" in (action.command or "") for action in finding.actions)
