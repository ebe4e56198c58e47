"""R01: fires, stays silent, refuses thin data, saves to the cent, and knows what a releasable unit is."""

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

from advisor.empty_streak import EmptyGpuLimits
from advisor.engine import advise
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence
from core.finding import Grade
from core.units import HOUR_MS, MIB

RULE = "empty-gpu"
WEEK_H = 168
EMPTY = gpu(gpu_hours(FORTNIGHT_H, Activity.EMPTY))


def node(empty: int, price_unit: int = 8) -> tuple[GpuEvidence, ...]:
    price = replace(PRICE, gpus_per_unit=price_unit)
    return tuple(
        replace(
            gpu(gpu_hours(FORTNIGHT_H, Activity.EMPTY if i < empty else Activity.BUSY), uuid=f"GPU-{i}"),
            price=price,
            host_gpu_count=8,
        )
        for i in range(8)
    )


def test_a_gpu_empty_for_a_fortnight_saves_its_whole_price_to_the_cent() -> None:
    (finding,) = found(advise(evidence([EMPTY])), RULE)
    cash = finding.saving.cash_usd_month
    assert cash is not None
    assert (round(cash.p10, 2), round(cash.p50, 2), round(cash.p90, 2)) == (1733.75, 1825.00, 1825.00)
    assert finding.saving.capacity_gpu_h_month is not None
    assert finding.saving.capacity_gpu_h_month.p50 == pytest.approx(730)
    assert finding.saving.energy_kwh_month is None, "the rent holds the power"
    assert finding.grade is Grade.A
    assert finding.stage == "stop"
    assert finding.evidence["coverage_ratio"] == 1.0


def test_only_the_empty_hours_up_to_now_count() -> None:
    mixed = gpu(gpu_hours(FORTNIGHT_H - 84) + gpu_hours(84, Activity.EMPTY, start=FORTNIGHT_H - 84))
    (finding,) = found(advise(evidence([mixed])), RULE)
    assert finding.saving.cash_usd_month is not None
    assert round(finding.saving.cash_usd_month.p50, 2) == round(84 / 336 * 730 * 2.50, 2) == 456.25


def test_a_gpu_at_work_is_left_alone() -> None:
    advice = advise(evidence([gpu()]))
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_a_gpu_that_worked_yesterday_is_left_alone() -> None:
    recent = gpu(gpu_hours(FORTNIGHT_H - 20) + gpu_hours(20, Activity.EMPTY, start=FORTNIGHT_H - 20))
    advice = advise(evidence([recent]))
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_half_an_hour_of_emptiness_is_not_evidence() -> None:
    short = gpu([gpu_hour(0, Activity.EMPTY, seconds=1800)])
    advice = advise(evidence([short]))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert refusal.missing == ("time",)
    assert "30 minutes" in refusal.why
    assert "24 hours" in refusal.why


def test_two_days_of_data_still_answer_one_grade_lower_and_say_why() -> None:
    (finding,) = found(advise(evidence([gpu(gpu_hours(48, Activity.EMPTY))])), RULE)
    assert finding.grade is Grade.B
    assert "14 days are the floor" in finding.confidence
    assert finding.saving.cash_usd_month is not None
    assert finding.saving.cash_usd_month.p10 == pytest.approx(1825 * 48 / FORTNIGHT_H), "only what was seen"


def test_gaps_in_the_data_silence_the_rule() -> None:
    holed = gpu([hour for i, hour in enumerate(gpu_hours(FORTNIGHT_H, Activity.EMPTY)) if i % 2])
    advice = advise(evidence([holed]))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert refusal.missing == ("samples",)


def test_a_gpu_without_utilization_such_as_a_mig_slice_is_not_called_empty() -> None:
    advice = advise(evidence([gpu(gpu_hours(FORTNIGHT_H, Activity.UNKNOWN))]))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert "busy_ratio" in refusal.missing


def test_a_gpu_that_fell_silent_is_not_called_empty() -> None:
    silent = evidence([EMPTY, gpu(gpu_hours(FORTNIGHT_H + 24), uuid="GPU-b", host="node-2")])
    advice = advise(silent)
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("recent samples",)


def test_one_empty_gpu_of_a_node_frees_capacity_and_no_cash() -> None:
    (finding,) = found(advise(evidence(node(empty=1))), RULE)
    assert finding.saving.cash_usd_month is None
    assert finding.saving.capacity_gpu_h_month is not None
    assert finding.no_figure is not None
    assert "1 of 8" in finding.no_figure


def test_a_wholly_empty_node_saves_cash_on_every_gpu() -> None:
    advice = advise(evidence(node(empty=8)))
    cash = [finding.saving.cash_usd_month for finding in found(advice, RULE)]
    assert [round(figure.p50, 2) for figure in cash if figure is not None] == [1825.00] * 8
    assert advice.totals.cash_usd_month is not None
    assert (
        round(advice.totals.cash_usd_month.p50, 2)
        == 14_600.00
        == round(advice.totals.spend_usd_month or 0, 2)
    )


@pytest.mark.parametrize("billing", ["reserved", "owned"])
def test_capacity_that_is_paid_anyway_saves_no_cash_and_waits_a_week(billing: str) -> None:
    price = replace(PRICE, billing=billing)
    five_days = replace(gpu(gpu_hours(120, Activity.EMPTY)), price=price)
    assert not found(advise(evidence([five_days])), RULE)
    (finding,) = found(advise(evidence([replace(EMPTY, price=price)])), RULE)
    assert finding.saving.cash_usd_month is None
    assert billing in (finding.no_figure or "")


def test_an_unpriced_gpu_has_no_cash_figure_and_says_so() -> None:
    (finding,) = found(advise(evidence([replace(EMPTY, price=None)])), RULE)
    assert finding.saving.cash_usd_month is None
    assert finding.saving.capacity_gpu_h_month is not None
    assert "no price" in (finding.no_figure or "")


def test_energy_is_counted_only_where_the_site_pays_its_power() -> None:
    owned: Evidence = evidence([EMPTY], site=replace(SITE, pays_for_power=True))
    (finding,) = found(advise(owned), RULE)
    energy = finding.saving.energy_kwh_month
    assert energy is not None
    assert energy.p50 == pytest.approx(80 * 730 / 1000)
    assert finding.evidence["idle_power_w"] == 80.0


def test_a_probe_within_an_hour_does_not_break_the_streak_and_work_does() -> None:
    hours = list(gpu_hours(48, Activity.EMPTY))
    hours[40] = replace(hours[40], seconds={Activity.EMPTY: 3590.0, Activity.BUSY: 10.0})
    assert found(advise(evidence([gpu(hours)])), RULE)
    hours[40] = replace(hours[40], seconds={Activity.EMPTY: 1800.0, Activity.BUSY: 1800.0})
    assert not found(advise(evidence([gpu(hours)])), RULE)


def test_limits_of_a_run_replace_the_rules_own() -> None:
    short = evidence([gpu(gpu_hours(6, Activity.EMPTY))])
    assert not found(advise(short), RULE)
    assert found(advise(short, limits={RULE: EmptyGpuLimits(min_rented_h=4)}), RULE)


def test_the_window_scales_the_month() -> None:
    late = evidence([EMPTY])
    twice = replace(late, window=replace(late.window, from_ms=late.window.from_ms - FORTNIGHT_H * HOUR_MS))
    (finding,) = found(advise(twice), RULE)
    assert finding.saving.capacity_gpu_h_month is not None
    assert finding.saving.capacity_gpu_h_month.p50 == pytest.approx(365)


@pytest.mark.parametrize(
    ("empty", "host_gpus", "unit", "from_user", "cash"),
    [
        (1, 8, 1, True, True),
        (1, 8, 1, False, False),
        (8, 8, 1, False, True),
        (8, 8, 8, True, True),
        (7, 8, 8, True, False),
        (1, 1, 1, False, True),
        (1, 1, 8, False, False),
        (4, 4, 8, True, False),
        (8, 8, 8, False, True),
        (4, 4, 8, False, False),
        (4, 4, 72, False, False),
    ],
)
def test_the_billing_unit_is_the_users_word_or_else_the_host(
    empty: int, host_gpus: int, unit: int, from_user: bool, cash: bool
) -> None:
    price = replace(PRICE, gpus_per_unit=unit, from_user=from_user)
    cards = [
        replace(
            gpu(gpu_hours(FORTNIGHT_H, Activity.EMPTY if i < empty else Activity.BUSY), uuid=f"GPU-{i}"),
            price=price,
            host_gpu_count=host_gpus,
        )
        for i in range(host_gpus)
    ]
    findings = found(advise(evidence(cards)), RULE)
    assert len(findings) == empty
    assert all((finding.saving.cash_usd_month is not None) is cash for finding in findings)


def test_a_host_smaller_than_the_catalogues_unit_frees_capacity_and_says_that_the_unit_is_not_known() -> None:
    price = replace(PRICE, gpus_per_unit=72, from_user=False)
    cards = [
        gpu(gpu_hours(FORTNIGHT_H, Activity.EMPTY), uuid=f"GPU-{i}", price=price, host_gpu_count=4)
        for i in range(4)
    ]
    finding = found(advise(evidence(cards)), RULE)[0]
    assert finding.saving.cash_usd_month is None
    assert finding.saving.capacity_gpu_h_month is not None
    assert "whether the host is the unit is not known" in (finding.no_figure or "")


def test_half_a_node_empty_and_half_parked_say_the_same() -> None:
    price = replace(PRICE, gpus_per_unit=8)
    cards = [
        replace(
            gpu(gpu_hours(FORTNIGHT_H, Activity.EMPTY if i < 4 else Activity.PARKED), uuid=f"GPU-{i}"),
            price=price,
            host_gpu_count=8,
        )
        for i in range(8)
    ]
    advice = advise(evidence(cards))
    assert len(found(advice, RULE)) == len(found(advice, "parked-model")) == 4
    cash = [finding.saving.cash_usd_month for finding in advice.findings]
    assert [round(figure.p50, 2) for figure in cash if figure is not None] == [1825.00] * 8


def test_energy_known_for_a_tenth_of_the_time_is_no_figure_and_power_is_what_was_read() -> None:
    hours = [
        replace(hour, joules={Activity.EMPTY: 28_800.0}, energy_j=28_800.0, energy_covered_s=360.0)
        for hour in gpu_hours(FORTNIGHT_H, Activity.EMPTY)
    ]
    (finding,) = found(advise(evidence([gpu(hours)], site=replace(SITE, pays_for_power=True))), RULE)
    assert finding.saving.energy_kwh_month is None
    assert finding.evidence["idle_power_w"] == 80.0


def test_no_range_reaches_beyond_the_hours_and_the_energy_that_exist() -> None:
    """Half of the window has data: 365 hours and 29.2 kWh a month are all there is."""
    late = evidence([EMPTY], site=replace(SITE, pays_for_power=True))
    twice = replace(late, window=replace(late.window, from_ms=late.window.from_ms - FORTNIGHT_H * HOUR_MS))
    (finding,) = found(advise(twice), RULE)
    capacity, energy = finding.saving.capacity_gpu_h_month, finding.saving.energy_kwh_month
    assert capacity is not None
    assert energy is not None
    assert capacity.p90 == pytest.approx(365)
    assert energy.p90 == pytest.approx(29.2)


def holding(mib: float, busy_ratio: float = 0.0) -> GpuEvidence:
    """Idle for a fortnight with a context that is too small for a model."""
    hours = gpu_hours(FORTNIGHT_H, Activity.PARKED)
    return gpu([replace(hour, memory_used_bytes=mib * MIB, busy_ratio=busy_ratio) for hour in hours])


@pytest.mark.parametrize("mib", [4, 500, 900])
def test_an_idle_gpu_with_a_small_context_is_told_and_never_passed_over(mib: int) -> None:
    advice = advise(evidence([holding(mib)]))
    (finding,) = found(advice, RULE)
    assert finding.state == "small context held"
    assert f"small context of {mib} MiB is held" in finding.because
    assert finding.saving.cash_usd_month is not None
    assert finding.evidence["idle_power_w"] == 120.0
    assert not found(advice, "parked-model")


def test_a_small_context_that_is_much_of_a_small_card_is_graded_one_lower() -> None:
    large = holding(900)
    small = replace(large, identity=replace(large.identity, memory_total_bytes=16_000 * MIB))
    assert found(advise(evidence([large])), RULE)[0].grade is Grade.A
    assert found(advise(evidence([small])), RULE)[0].grade is Grade.B


def test_a_small_context_that_serves_now_and_then_is_graded_down_or_left_alone() -> None:
    blinking = holding(900, busy_ratio=0.03)
    (finding,) = found(advise(evidence([blinking])), RULE)
    assert finding.grade is Grade.B
    assert "under 5 % busy (3.0 % on average)" in finding.because
    assert not found(advise(evidence([blinking], [engine(engine_hours(FORTNIGHT_H))])), RULE)


def test_a_context_that_came_and_went_does_not_break_the_streak() -> None:
    hours = list(gpu_hours(FORTNIGHT_H, Activity.EMPTY))
    for index in range(100, 200):
        hours[index] = gpu_hour(index, Activity.PARKED, memory_used_bytes=500.0 * MIB)
    (finding,) = found(advise(evidence([gpu(hours)])), RULE)
    assert finding.evidence["empty_h"] == FORTNIGHT_H
    assert finding.state == "empty"


def week_of(index: int) -> Activity:
    """At work from Monday morning to Friday evening; the builders' hours begin on a Monday."""
    return Activity.EMPTY if index % WEEK_H >= 5 * 24 - 4 or index % WEEK_H < 6 else Activity.BUSY


def weeks(hours: int, then_empty: int = 0) -> GpuEvidence:
    worked = [gpu_hour(index, week_of(index)) for index in range(hours)]
    return gpu([*worked, *gpu_hours(then_empty, Activity.EMPTY, start=hours)])


def test_a_weekend_like_every_weekend_is_no_reason_to_release() -> None:
    sunday_evening = weeks(4 * WEEK_H - 2)
    advice = advise(evidence([sunday_evening]))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert "as in every week: it rests in 58 hours of each" in refusal.why
    assert refusal.denies, "an older finding is over"
    (schedule,) = found(advice, "off-hours")
    assert schedule.evidence["off_h_week"] == 58, "what the weekends are worth is said there"


def test_a_weekend_from_which_nobody_came_back_is_found_after_a_day() -> None:
    def told(away_h: int) -> int:
        return len(found(advise(evidence([weeks(4 * WEEK_H, then_empty=6 + away_h)])), RULE))

    assert (told(23), told(24)) == (0, 1), "counted from Monday at six, when work begins"


def test_a_gap_in_the_data_of_a_gpu_that_never_works_is_no_hour_of_work() -> None:
    hours = [hour for at, hour in enumerate(gpu_hours(FORTNIGHT_H, Activity.EMPTY)) if at != 100]
    (finding,) = found(advise(evidence([gpu(hours)])), RULE)
    assert finding.evidence["empty_h"] == FORTNIGHT_H - 1


def test_one_weekend_alone_is_no_habit_yet() -> None:
    (finding,) = found(advise(evidence([weeks(WEEK_H - 2)])), RULE)
    assert finding.evidence["empty_h"] == 50


def test_a_node_that_rests_at_weekends_is_judged_as_one() -> None:
    price = replace(PRICE, gpus_per_unit=2)
    pair = [
        replace(weeks(4 * WEEK_H - 2), price=price, host_gpu_count=2),
        replace(gpu(gpu_hours(4 * WEEK_H - 2, Activity.EMPTY), uuid="GPU-b"), price=price, host_gpu_count=2),
    ]
    (finding,) = found(advise(evidence(pair)), RULE)
    assert finding.gpu_uuids == ("GPU-b",)
    assert finding.saving.cash_usd_month is None, "its neighbour works again on Monday: the node stays"
