"""R32: measured use against the break-even of an owned machine, over the whole range or not at all."""

from dataclasses import replace
from decimal import Decimal

import pytest
from advice_builders import FORTNIGHT_H, PRICE, SITE, evidence, found, gpu, gpu_hour, gpu_hours, refused

from advisor.engine import advise
from core import breakeven
from core.activity import Activity
from core.evidence import GpuEvidence, Price, Site
from core.finding import Advice, Grade
from core.units import HOUR_MS

RULE = "rent-or-buy"
OWN: Site = replace(SITE, own_capex_usd=330_000.0)
RENT = replace(PRICE, usd_per_gpu_hour=Decimal("6.88"), gpus_per_unit=8)


def used(
    share: float, count: int = 8, price: Price | None = RENT, hours: int = FORTNIGHT_H
) -> list[GpuEvidence]:
    """GPUs that work the first part of every day."""
    days = [
        gpu_hour(i, Activity.BUSY if i % 24 < round(24 * share) else Activity.EMPTY) for i in range(hours)
    ]
    return [replace(gpu(days, uuid=f"GPU-{i}"), price=price, host_gpu_count=8) for i in range(count)]


def run(gpus: list[GpuEvidence], site: Site = OWN) -> Advice:
    return advise(evidence(gpus, site=site))


def test_rented_gpus_at_work_all_day_are_cheaper_owned_to_the_cent() -> None:
    """The worked example of cost-model 2 at full use: own 1.878 against 6.88 USD per GPU-hour."""
    (finding,) = found(run(used(1.0)), RULE)
    idle = breakeven.energy_usd_per_h(2.2, 1.3, 0.12) * 8760
    fixed = breakeven.capex_per_year_usd(330_000, 49_500, 0.08, 4) + 16_500 + 18_000 + idle
    own = breakeven.own_usd_per_gpu_h(fixed, 0.624, 8, 1.0)
    assert own is not None
    assert finding.cause == "buy"
    assert finding.saving.cash_usd_month is not None
    assert round(finding.saving.cash_usd_month.p50, 2) == round((6.88 - own) * 730 * 8, 2) == 29_210.75
    assert finding.evidence["breakeven_p50_ratio"] == 0.2647
    assert finding.saving.cash_usd_month.p10 > 0
    assert finding.grade is Grade.C


def test_the_total_stays_below_the_rent() -> None:
    totals = run(used(1.0)).totals
    assert totals.cash_usd_month is not None
    assert totals.spend_usd_month is not None
    assert totals.cash_usd_month.p90 <= totals.spend_usd_month


def test_little_use_of_rented_gpus_is_as_it_should_be() -> None:
    advice = run(used(0.15))
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_use_inside_the_range_gives_no_advice() -> None:
    """Break-even 0.46 at 3.99; 12 hours a day is above the middle and not above the whole range."""
    price = replace(RENT, usd_per_gpu_hour=Decimal("3.99"))
    assert not found(run(used(0.5, price=price)), RULE)


def test_owned_gpus_far_below_break_even_are_told_for_next_time_without_a_figure() -> None:
    price = replace(RENT, billing="owned", usd_per_gpu_hour=Decimal("2.27"))
    (finding,) = found(run(used(0.1, price=price)), RULE)
    assert finding.cause == "rent"
    assert finding.saving.is_empty
    assert "paid" in (finding.no_figure or "")


def test_owned_gpus_are_measured_against_a_rent_and_never_against_their_own_rate() -> None:
    own = replace(RENT, billing="owned", usd_per_gpu_hour=Decimal("0.01"))
    (finding,) = found(run(used(0.1, price=own)), RULE)
    assert finding.evidence["price_basis"].startswith("catalogue: median on-demand")
    assert Decimal(finding.evidence["usd_per_gpu_hour"]) > 1


def test_without_capex_the_setting_is_named() -> None:
    (refusal,) = refused(run(used(1.0), site=SITE), RULE)
    assert refusal.missing == ("setting own_capex_usd",)


def test_without_a_tariff_the_setting_is_named() -> None:
    (refusal,) = refused(run(used(1.0), site=replace(OWN, tariff_usd_per_kwh=None)), RULE)
    assert refusal.missing == ("setting tariff_usd_per_kwh",)


def test_three_days_decide_no_purchase() -> None:
    (refusal,) = refused(run(used(1.0, hours=72)), RULE)
    assert refusal.missing == ("time",)
    assert "3 days" in refusal.why


def test_ten_days_answer_graded_down() -> None:
    (finding,) = found(run(used(1.0, hours=240)), RULE)
    assert finding.grade is Grade.D
    assert "10 days of data, 14 days are the floor" in finding.confidence


def test_gaps_silence_the_rule() -> None:
    holed = [replace(each, hours=each.hours[::2]) for each in used(1.0)]
    advice = run(holed)
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("samples",)


def test_unpriced_gpus_have_nothing_to_compare_with() -> None:
    (refusal,) = refused(run(used(1.0, price=None)), RULE)
    assert refusal.missing == ("price",)


def test_fewer_gpus_than_a_machine_are_refused() -> None:
    (refusal,) = refused(run(used(1.0, count=4)), RULE)
    assert refusal.missing == ("GPUs for a whole machine",)


def test_twelve_gpus_are_one_machine_and_four_rented() -> None:
    (finding,) = found(run(used(1.0, count=12)), RULE)
    assert finding.evidence["gpu_count"] == 8
    assert len(finding.gpu_uuids) == 8


def test_a_capex_of_another_model_is_not_held_against_these_gpus() -> None:
    small = [replace(each, gpu_key="T4") for each in used(1.0)]
    advice = run(
        [
            *small,
            *[
                replace(each, identity=replace(each.identity, gpu_uuid=f"H-{i}"))
                for i, each in enumerate(used(1.0))
            ],
        ]
    )
    subjects = {refusal.subject.id: refusal.missing for refusal in refused(advice, RULE)}
    assert subjects == {"T4": ("setting own_capex_usd for this GPU model",)}
    assert [finding.subject.id for finding in found(advice, RULE)] == ["H100-SXM5-80GB"]


def test_unknown_activity_is_neither_used_nor_unused() -> None:
    half = [
        replace(
            gpu(
                gpu_hours(FORTNIGHT_H // 2)
                + gpu_hours(FORTNIGHT_H // 2, Activity.UNKNOWN, start=FORTNIGHT_H // 2),
                uuid=f"GPU-{i}",
            ),
            price=RENT,
            host_gpu_count=8,
        )
        for i in range(8)
    ]
    (finding,) = found(run(half), RULE)
    assert finding.evidence["use_ratio"] == pytest.approx(1.0)


def test_the_command_repeats_it_with_the_measured_use() -> None:
    (finding,) = found(run(used(1.0)), RULE)
    assert finding.actions[0].command == (
        "gpuwise plan rent-or-buy --capex-usd 330000 --gpu-count 8 --rent-usd-per-gpu-hour 6.88 --utilisation 1.000"
    )


def test_owned_and_rented_gpus_of_one_model_are_judged_apart() -> None:
    """8 owned at 0.50 and 8 rented at 6.00: only the rented ones can be bought instead, within their rent."""
    own = replace(RENT, billing="owned", usd_per_gpu_hour=Decimal("0.50"))
    rented = used(1.0, price=replace(RENT, usd_per_gpu_hour=Decimal("6.00")))
    owned = [
        replace(each, identity=replace(each.identity, gpu_uuid=f"OWN-{i}", host="node-2"))
        for i, each in enumerate(used(1.0, price=own))
    ]
    (finding,) = [each for each in found(run([*owned, *rented]), RULE) if each.cause == "buy"]
    assert finding.evidence["gpu_count"] == 8
    assert finding.evidence["usd_per_gpu_hour"] == "6.00"
    assert set(finding.gpu_uuids) == {each.gpu_uuid for each in rented}
    assert finding.saving.cash_usd_month is not None
    assert finding.saving.cash_usd_month.p90 <= 8 * 6 * 730


def test_owned_gpus_far_below_break_even_are_told_beside_rented_ones_at_work() -> None:
    own = replace(RENT, billing="owned", usd_per_gpu_hour=Decimal("2.27"))
    owned = [
        replace(each, identity=replace(each.identity, gpu_uuid=f"OWN-{i}", host="node-2"))
        for i, each in enumerate(used(0.1, price=own))
    ]
    findings = found(run([*owned, *used(1.0)]), RULE)
    assert {finding.cause for finding in findings} == {"buy", "rent"}


def test_half_a_window_of_samples_saves_half_and_never_more_than_the_spend() -> None:
    whole = evidence(used(1.0), site=OWN)
    twice = replace(whole, window=replace(whole.window, from_ms=whole.window.from_ms - FORTNIGHT_H * HOUR_MS))
    (finding,), spend = found(advise(twice), RULE), advise(twice).totals.spend_usd_month
    assert finding.saving.cash_usd_month is not None
    assert finding.saving.cash_usd_month.p50 == pytest.approx(29_210.75 / 2, abs=0.01)
    assert spend is not None
    assert finding.saving.cash_usd_month.p90 <= spend


def test_prices_of_one_group_are_averaged_and_not_represented_by_the_middle_one() -> None:
    cards = used(1.0)
    dear = replace(RENT, usd_per_gpu_hour=Decimal("10.88"))
    (finding,) = found(run([*cards[:4], *[replace(each, price=dear) for each in cards[4:]]]), RULE)
    assert finding.evidence["usd_per_gpu_hour"] == "8.8800"


@pytest.mark.parametrize("billing", ["reserved", "committed"])
def test_promised_gpus_below_break_even_are_not_called_owned_or_paid(billing: str) -> None:
    price = replace(RENT, billing=billing, usd_per_gpu_hour=Decimal("2.27"))
    advice = run(used(0.1, price=price))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert refusal.why.startswith(f"{billing.capitalize()} capacity is paid until its term ends")
