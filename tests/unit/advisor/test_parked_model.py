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
from core.evidence import GpuEvidence
from core.finding import Grade
from core.hours import GpuHour
from core.units import GIB, HOUR_MS

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
    assert finding.state == "parked throughout"
    assert finding.grade is Grade.A
    assert finding.evidence["parking_tax_w"] == 40.0
    assert finding.evidence["memory_held_bytes"] == 60 * GIB


def test_parked_nights_save_hours_and_no_cash() -> None:
    (finding,) = found(advise(evidence([gpu(nights(8))])), RULE)
    assert finding.state == "parked for hours on most days"
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


def pair(other: list[GpuHour] | tuple[GpuHour, ...]) -> list[GpuEvidence]:
    """A parked GPU and its neighbour in a unit of two."""
    price = replace(PRICE, gpus_per_unit=2)
    cards = [PARKED, gpu(other, uuid="GPU-b")]
    return [replace(card, price=price, host_gpu_count=2) for card in cards]


def test_a_neighbour_that_fell_silent_does_not_release_the_node() -> None:
    (finding,) = found(advise(evidence(pair(gpu_hours(1, Activity.EMPTY)))), RULE)
    assert finding.saving.cash_usd_month is None
    assert "1 of 2" in (finding.no_figure or "")


def test_a_neighbour_with_gaps_or_too_short_a_streak_does_not_release_the_node() -> None:
    holed = [hour for i, hour in enumerate(gpu_hours(FORTNIGHT_H, Activity.EMPTY)) if i % 2]
    recent = gpu_hours(12, Activity.EMPTY, start=FORTNIGHT_H - 12)
    for neighbour in (holed, recent):
        (finding,) = found(advise(evidence(pair(neighbour))), RULE)
        assert finding.saving.cash_usd_month is None


def test_an_hour_of_parking_tells_hours_and_no_cash() -> None:
    (finding,) = found(advise(evidence([gpu(gpu_hours(1, Activity.PARKED))])), RULE)
    assert finding.saving.cash_usd_month is None
    assert finding.saving.capacity_gpu_h_month is not None
    assert "60 minutes of data" in (finding.no_figure or "")


def test_below_a_fortnight_the_lower_end_is_what_was_observed() -> None:
    (finding,) = found(advise(evidence([gpu(gpu_hours(48, Activity.PARKED))])), RULE)
    cash, capacity = finding.saving.cash_usd_month, finding.saving.capacity_gpu_h_month
    assert cash is not None
    assert capacity is not None
    assert capacity.p10 == pytest.approx(48 / 336 * 730)
    assert cash.p10 == pytest.approx(48 / 336 * 1825)
    assert cash.p50 == pytest.approx(1825)


def test_a_model_that_was_unloaded_is_no_longer_advised_on() -> None:
    """Parked on most days up to five hours ago; nothing is held since."""
    hours = [*gpu_hours(FORTNIGHT_H - 5, Activity.PARKED)]
    assert found(advise(evidence([gpu(hours)])), RULE)
    hours += gpu_hours(5, Activity.EMPTY, start=FORTNIGHT_H - 5)
    assert not found(advise(evidence([gpu(hours)])), RULE)


def test_a_gpu_at_work_now_is_not_parked_throughout() -> None:
    hours = [*gpu_hours(FORTNIGHT_H - 6, Activity.PARKED), *gpu_hours(6, start=FORTNIGHT_H - 6)]
    (finding,) = found(advise(evidence([gpu(hours)])), RULE)
    assert finding.state == "parked for hours on most days"
    assert finding.saving.cash_usd_month is None


def test_both_ways_of_being_parked_are_one_finding() -> None:
    (throughout,) = found(advise(evidence([PARKED])), RULE)
    (recurring,) = found(advise(evidence([gpu(nights(8))])), RULE)
    assert throughout.state != recurring.state
    assert throughout.fingerprint == recurring.fingerprint


def test_no_range_reaches_beyond_the_hours_that_exist() -> None:
    late = evidence([PARKED])
    twice = replace(late, window=replace(late.window, from_ms=late.window.from_ms - FORTNIGHT_H * HOUR_MS))
    (finding,) = found(advise(twice), RULE)
    assert finding.saving.capacity_gpu_h_month is not None
    assert finding.saving.capacity_gpu_h_month.p90 == pytest.approx(365)


def test_little_work_is_told_as_such_and_graded_down_where_no_engine_is_seen() -> None:
    blinking = gpu([replace(h, busy_ratio=0.03) for h in gpu_hours(FORTNIGHT_H, Activity.PARKED)])
    (finding,) = found(advise(evidence([blinking])), RULE)
    assert "under 5 % busy (3.0 % on average)" in finding.because
    assert "no work" not in finding.because
    assert finding.grade is Grade.B
    asleep = engine(engine_hours(FORTNIGHT_H, running=0.0001, busy_s=0.0))
    (watched,) = found(advise(evidence([blinking], [asleep])), RULE)
    assert watched.grade is Grade.A
