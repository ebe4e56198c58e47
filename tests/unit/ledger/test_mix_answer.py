"""The mix as an answer: what data carry it, its interval, its curve and its steps."""

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest

from core.units import HOUR_MS
from ledger.demand import Demand, HourOfGpus, demand_of
from ledger.mix import MixPrices, OwnPrice
from ledger.mix_answer import MixAnswer, Standing, answer

T0 = 1_791_158_400_000
PRICES = MixPrices(
    Decimal(4),
    own=OwnPrice(Decimal("1.60"), Decimal("0.08"), 8),
    commit=Decimal("2.20"),
    reserve=Decimal("2.60"),
    spot=Decimal("1.70"),
    restartable_ratio=0.2,
)


def demand(weeks: float, *, busy_weeks: int = 0) -> Demand:
    """16 GPUs: 10 wanted always, 14 by day; all 16 in the first ``busy_weeks``."""
    return demand_of(
        HourOfGpus(
            T0 + at * HOUR_MS,
            (16 if at < busy_weeks * 168 else 14 if at % 24 < 12 else 10) * HOUR_MS,
            16 * HOUR_MS,
            16 * HOUR_MS,
        )
        for at in range(round(weeks * 168))
    )


def ask(weeks: float, prices: MixPrices = PRICES, *, assume: bool = False, busy_weeks: int = 0) -> MixAnswer:
    return answer(
        demand(weeks, busy_weeks=busy_weeks),
        prices,
        today_usd_per_gpu_h=Decimal(4),
        left_out={},
        assume_measured=assume,
    )


def test_three_weeks_are_refused_unless_told_to_assume() -> None:
    refused = ask(3.2)
    assert (refused.standing, refused.mix, refused.curve, refused.steps) == (Standing.REFUSED, None, (), ())
    assert "3.2 weeks measured, 4 are needed" in refused.reason
    assert ask(3.2, assume=True).standing is Standing.PROVISIONAL


def test_six_weeks_are_provisional_and_eight_are_firm() -> None:
    assert ask(6).standing is Standing.PROVISIONAL
    assert "6.0 weeks measured, 8 are asked for" in ask(6).reason
    assert ask(8).standing is Standing.FIRM


def test_no_hour_seen_is_refused_even_when_told_to_assume() -> None:
    nothing = answer(demand_of([]), PRICES, today_usd_per_gpu_h=None, left_out={}, assume_measured=True)
    assert nothing.standing is Standing.REFUSED


def test_the_mix_with_its_break_evens() -> None:
    found = ask(8, replace(PRICES, spot=None))
    assert found.mix is not None
    assert (found.mix.own_gpus, found.mix.commit_gpus) == (8, 2)
    assert found.mix.on_demand_gpus == 2.0
    assert found.break_even_ratio["commit"] == pytest.approx(0.55)
    assert found.break_even_ratio["own"] == pytest.approx(1.6 / 3.92)


def test_each_step_saves_against_the_one_before_it() -> None:
    steps = ask(8).steps
    assert [step.name for step in steps] == ["today", "on_demand", "spot", "reserve", "commit", "own"]
    assert steps[0].usd_per_month == 16 * 4 * 730
    assert steps[1].usd_per_month == 12 * 4 * 730
    assert steps[0].saves_usd_per_month is None
    for before, step in pairwise(steps):
        assert step.saves_usd_per_month == before.usd_per_month - step.usd_per_month
        assert step.saves_usd_per_month >= 0
    unpriced = answer(demand(8), PRICES, today_usd_per_gpu_h=None, left_out={})
    assert unpriced.steps[0].name == "on_demand"


def test_the_curve_has_its_least_at_the_mix() -> None:
    found = ask(8)
    assert found.mix is not None
    least = min(found.curve, key=lambda point: point.usd_per_month)
    assert (least.gpus, least.usd_per_month) == (found.mix.paid_gpus, found.mix.usd_per_month)
    assert found.curve[0].gpus == 0
    assert found.curve[-1].gpus >= 14
    machines = ask(8, MixPrices(Decimal(4), own=PRICES.own)).curve
    assert [point.gpus for point in machines] == [0, 8, 16]


def test_weeks_alike_give_a_point_and_weeks_apart_an_interval() -> None:
    alike = ask(8).ranges["paid_gpus"]
    assert alike.p10 == alike.p90
    apart = ask(8, MixPrices(Decimal(4), commit=Decimal("2.20")), busy_weeks=4).ranges["paid_gpus"]
    assert apart.p10 < apart.p90
    assert ask(0.9, assume=True).ranges == {}
