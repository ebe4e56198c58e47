"""R04: nights and weekends of four weeks, tested on a week that was not looked at; no unit off, no cash."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest
from advice_builders import (
    PRICE,
    SITE,
    engine,
    engine_hour,
    evidence,
    found,
    gpu,
    gpu_hour,
    refused,
    use,
)

from advisor.cron import start_lines, stop_lines
from advisor.engine import advise
from advisor.estimators.off_hours import Block, Schedule
from advisor.off_habit import OffHoursLimits
from core.activity import Activity
from core.evidence import GpuEvidence
from core.finding import Grade
from core.hours import GpuHour
from core.units import HOUR_MS

RULE = "off-hours"
WEEK = 168
LIMITS = {RULE: OffHoursLimits(cold_start_s=360)}
"""A start of six minutes: 7 a week are 0.7 h."""


def is_night(index: int) -> bool:
    return index % 24 >= 20 or index % 24 < 6


def nights(
    weeks: int = 4, idle: Activity = Activity.EMPTY, off: Callable[[int], bool] = is_night
) -> list[GpuHour]:
    """At work by day; off by night."""
    return [gpu_hour(i, idle if off(i) else Activity.BUSY) for i in range(weeks * WEEK)]


def node(*cards: GpuEvidence) -> list[GpuEvidence]:
    """GPUs of one host that can only be handed back together."""
    price = replace(PRICE, gpus_per_unit=len(cards))
    return [replace(card, price=price, host_gpu_count=len(cards)) for card in cards]


def test_quiet_nights_of_four_weeks_save_to_the_cent() -> None:
    (finding,) = found(advise(evidence([gpu(nights())]), limits=LIMITS), RULE)
    hours = (70 - 7 * 0.1) * 730 / 168
    capacity, cash = finding.saving.capacity_gpu_h_month, finding.saving.cash_usd_month
    assert capacity is not None
    assert cash is not None
    assert capacity.p50 == pytest.approx(hours)
    assert round(cash.p50, 2) == round(hours * 2.5, 2) == 752.81
    assert cash.p10 == pytest.approx(0.9 * hours * 2.5)
    assert capacity.p90 == pytest.approx(70 * 730 / 168)
    assert finding.grade is Grade.B
    assert finding.stage == "schedule"
    assert finding.evidence["off_h_week"] == 70
    assert finding.evidence["back_test_off_h"] == 70
    assert finding.evidence["back_test_wrongly_off_min"] == 0
    assert finding.evidence["weeks_seen"] == 4
    assert "UTC" in finding.because


def test_two_weeks_are_tentative_and_one_is_refused() -> None:
    (finding,) = found(advise(evidence([gpu(nights(2))]), limits=LIMITS), RULE)
    assert finding.grade is Grade.C
    assert finding.is_short_of_data
    assert "tentative" in finding.state
    advice = advise(evidence([gpu(nights(1))]))
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("time",)


def test_a_gpu_that_works_around_the_clock_is_left_alone() -> None:
    for kind in (Activity.BUSY, Activity.MEMORY_BOUND, Activity.COMPUTE_BOUND, Activity.STARVED):
        advice = advise(evidence([gpu(nights(idle=kind))]))
        assert not found(advice, RULE)
        assert not refused(advice, RULE)


def test_a_gpu_that_stands_idle_altogether_is_the_stop_rules_business() -> None:
    advice = advise(evidence([gpu(nights(off=lambda _: True))]))
    assert found(advice, "empty-gpu")
    assert not found(advice, RULE)


def test_idle_hours_at_random_are_no_habit() -> None:
    scattered = gpu(nights(off=lambda i: (i * 7919) % 13 < 3))
    assert not found(advise(evidence([scattered])), RULE)


def test_a_last_week_of_night_work_is_refused_with_its_minutes() -> None:
    late = gpu(nights(off=lambda i: is_night(i) and not (i >= 3 * WEEK and i % 24 == 2)))
    advice = advise(evidence([late]))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert refusal.missing == ("a habit that repeats",)
    assert refusal.denies
    assert "420 minutes" in refusal.why


def test_nights_that_only_began_last_week_are_no_habit() -> None:
    begun = gpu(nights(off=lambda i: is_night(i) and i >= 3 * WEEK))
    assert not found(advise(evidence([begun])), RULE)


def test_the_last_week_widens_the_range_downwards() -> None:
    """Half an hour of night work in the last week: allowed, and taken off the lower end."""
    hours = nights()
    busy = {Activity.EMPTY: 1800.0, Activity.BUSY: 1800.0}
    hours[3 * WEEK + 2] = replace(hours[3 * WEEK + 2], seconds=busy, active_s=1800.0)
    (clean,) = found(advise(evidence([gpu(nights())]), limits=LIMITS), RULE)
    (late,) = found(advise(evidence([gpu(hours)]), limits=LIMITS), RULE)
    assert late.evidence["back_test_wrongly_off_min"] == 30
    assert clean.saving.capacity_gpu_h_month is not None
    assert late.saving.capacity_gpu_h_month is not None
    lower = clean.saving.capacity_gpu_h_month.p10 - late.saving.capacity_gpu_h_month.p10
    assert lower == pytest.approx(0.5 * 730 / 168)


def test_gaps_are_not_idle() -> None:
    """Nothing is known of the nights: no samples, no schedule."""
    by_day = gpu([hour for i, hour in enumerate(nights()) if not is_night(i)])
    assert not found(advise(evidence([by_day])), RULE)
    holed = [
        replace(h, covered_s=2400.0, seconds={Activity.EMPTY: 2400.0}) if is_night(i) else h
        for i, h in enumerate(nights())
    ]
    assert not found(advise(evidence([gpu(holed)])), RULE)


def test_a_card_without_utilization_is_refused() -> None:
    advice = advise(evidence([gpu(nights(off=lambda _: True, idle=Activity.UNKNOWN))]))
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("busy_ratio", "memory_used_bytes")


def test_old_data_is_refused() -> None:
    late = evidence([gpu(nights())])
    late = replace(late, window=replace(late.window, to_ms=late.window.to_ms + 30 * HOUR_MS))
    assert refused(advise(late), RULE)[0].missing == ("recent samples",)


def test_requests_at_night_are_work_however_little() -> None:
    card = gpu(nights(idle=Activity.PARKED))
    serving = engine([engine_hour(i, busy_s=600.0) for i in range(4 * WEEK)])
    assert found(advise(evidence([card])), RULE)
    assert not found(advise(evidence([card], [serving])), RULE)


def test_reserved_and_owned_capacity_saves_hours_and_no_cash() -> None:
    for paid in ("reserved", "owned"):
        card = replace(gpu(nights()), price=replace(PRICE, billing=paid))
        (finding,) = found(advise(evidence([card])), RULE)
        assert finding.saving.cash_usd_month is None
        assert paid in (finding.no_figure or "")
        assert finding.saving.capacity_gpu_h_month is not None


def test_a_node_is_handed_back_only_in_the_hours_all_of_it_is_off() -> None:
    shorter = gpu(nights(off=lambda i: i % 24 >= 22 or i % 24 < 6), uuid="GPU-b")
    pair = node(gpu(nights()), shorter)
    for finding in found(advise(evidence(pair), limits=LIMITS), RULE):
        assert finding.saving.cash_usd_month is not None
        assert finding.saving.cash_usd_month.p50 == pytest.approx((56 - 0.7) * 730 / 168 * 2.5)
        assert finding.evidence["unit_off_h_week"] == 56
    busy = node(gpu(nights()), gpu(nights(off=lambda _: False), uuid="GPU-b"))
    (alone,) = found(advise(evidence(busy)), RULE)
    assert alone.saving.cash_usd_month is None
    assert "1 of 2" in (alone.no_figure or "")


def test_an_empty_neighbour_does_not_hold_the_node_up() -> None:
    idle = gpu(nights(off=lambda _: True), uuid="GPU-b")
    (finding,) = found(advise(evidence(node(gpu(nights()), idle)), limits=LIMITS), RULE)
    assert finding.saving.cash_usd_month is not None


def test_opposite_shifts_on_a_node_save_no_cash() -> None:
    by_day = gpu(nights(off=lambda i: not is_night(i)), uuid="GPU-b")
    first, second = found(advise(evidence(node(gpu(nights()), by_day))), RULE)
    for finding in (first, second):
        assert finding.saving.cash_usd_month is None
        assert "all of its GPUs are off" in (finding.no_figure or "")


def test_penalties_of_starts_are_paid_from_the_cash() -> None:
    costly = {RULE: OffHoursLimits(cold_start_s=360, start_penalty_usd=10)}
    (finding,) = found(advise(evidence([gpu(nights())]), limits=costly), RULE)
    starts = 7 * 730 / 168
    assert finding.saving.cash_usd_month is not None
    assert finding.saving.cash_usd_month.p50 == pytest.approx(69.3 * 730 / 168 * 2.5 - starts * 10)
    ruinous = {RULE: OffHoursLimits(cold_start_s=360, start_penalty_usd=100)}
    (refusing,) = found(advise(evidence([gpu(nights())]), limits=ruinous), RULE)
    assert refusing.saving.cash_usd_month is None
    assert "starts cost" in (refusing.no_figure or "")


def test_the_models_size_sets_the_start() -> None:
    quiet = [engine_hour(i, busy_s=0.0 if is_night(i) else 3600.0) for i in range(4 * WEEK)]
    card = gpu(nights(idle=Activity.PARKED))
    (finding,) = found(advise(evidence([card], [engine(quiet)])), RULE)
    assert finding.evidence["cold_start_s_p50"] == pytest.approx(260, abs=2)
    assert finding.evidence["keep_warm_s"] == finding.evidence["cold_start_s_p50"]
    assert any("wake_up" in (action.command or "") for action in finding.actions)


def test_parked_nights_save_energy_where_the_site_pays() -> None:
    card = gpu(nights(idle=Activity.PARKED))
    (finding,) = found(advise(evidence([card], site=replace(SITE, pays_for_power=True)), limits=LIMITS), RULE)
    kwh, capacity = finding.saving.energy_kwh_month, finding.saving.capacity_gpu_h_month
    assert kwh is not None
    assert capacity is not None
    assert kwh.p50 == pytest.approx(capacity.p50 * 0.04)
    (rented,) = found(advise(evidence([card])), RULE)
    assert rented.saving.energy_kwh_month is None


def test_parked_nights_are_counted_once_in_the_totals() -> None:
    advice = advise(evidence([gpu(nights(idle=Activity.PARKED))]), limits=LIMITS)
    (parked,) = found(advice, "parked-model")
    (off,) = found(advice, RULE)
    assert parked.saving.capacity_gpu_h_month is not None
    assert off.saving.capacity_gpu_h_month is not None
    assert advice.totals.capacity_gpu_h_month is not None
    larger = max(parked.saving.capacity_gpu_h_month.p50, off.saving.capacity_gpu_h_month.p50)
    assert advice.totals.capacity_gpu_h_month.p50 == pytest.approx(larger)


def test_the_clock_names_the_commands_of_what_runs_there() -> None:
    card = replace(gpu(nights()), uses=(use("systemd_unit", "llm.service", name="llm.service"),))
    (finding,) = found(advise(evidence([card])), RULE)
    command = finding.actions[0].command or ""
    assert command.startswith("CRON_TZ=UTC\n")
    assert "0 20 * * 0,1,2,3,4,5,6 systemctl stop llm.service" in command
    assert "systemctl start llm.service" in command
    (unknown,) = found(advise(evidence([gpu(nights())])), RULE)
    assert unknown.actions[0].command is None
    assert "0 20 * * 0,1,2,3,4,5,6" in unknown.actions[0].text


def test_starts_come_early_enough_and_on_the_day_before_when_they_must() -> None:
    friday_to_monday = Schedule((Block(4 * 24 + 20, 52),), 4)
    assert stop_lines(friday_to_monday) == ["0 20 * * 5"]
    assert start_lines(friday_to_monday, 500) == ["51 23 * * 0"]


def test_an_unpriced_gpu_has_hours_and_no_money() -> None:
    (finding,) = found(advise(evidence([replace(gpu(nights()), price=None)])), RULE)
    assert finding.saving.cash_usd_month is None
    assert "no price" in (finding.no_figure or "")


@pytest.mark.parametrize("usd", ["0.10", "2.50", "40"])
def test_totals_never_exceed_the_spend(usd: str) -> None:
    card = replace(gpu(nights()), price=replace(PRICE, usd_per_gpu_hour=Decimal(usd)))
    totals = advise(evidence([card])).totals
    assert totals.cash_usd_month is not None
    assert totals.spend_usd_month is not None
    assert totals.cash_usd_month.p90 <= totals.spend_usd_month
