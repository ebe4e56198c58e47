"""The cheapest mix: exact against every other one, by hand where a hand can, and monotone."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.units import HOUR_MS
from ledger.mix import Load, MixPrices, OwnPrice, cheapest, with_paid, without

RENT = Decimal("4.00")
OWN = OwnPrice(Decimal("1.50"), Decimal("0.08"), 8)


def load(*gpus: float, restartable: float = 0.0) -> Load:
    return Load.of([round(count * HOUR_MS) for count in gpus], restartable)


def brute(of: Load, prices: MixPrices, demands: list[int]) -> int:
    """Least cost over every number of machines and promises, hour by hour."""
    micro = Decimal(1_000_000)
    unit = prices.own.unit if prices.own else 1
    own_fixed = int(prices.own.fixed_usd_per_gpu_h * micro) if prices.own else 0
    own_used = int(prices.own.used_usd_per_gpu_h * micro) if prices.own else 0
    flat = int(prices.flat[1] * micro) if prices.flat else 0
    rent, spot = int(prices.rent * micro), int(prices.cheapest_use * micro)
    movable = round(prices.restartable_ratio * 1_000_000) if prices.takes_spot else 0
    costs = []
    for machines in range(of.most_gpus // unit + 2 if prices.own else 1):
        for promised in range(of.most_gpus + 2 if prices.flat else 1):
            own = machines * unit
            cost = 0
            for demand in demands:
                firm = demand * (1_000_000 - movable) // 1_000_000
                left = demand - min(demand, promised * HOUR_MS)
                by_own = min(left, own * HOUR_MS)
                left -= by_own
                on_demand = max(0, firm - (own + promised) * HOUR_MS) if movable else left
                cost += HOUR_MS * (own * own_fixed + promised * flat) + by_own * own_used
                cost += on_demand * rent + (left - on_demand) * spot
            costs.append(cost)
    return min(costs)


def test_gpus_are_committed_while_their_use_is_above_one_less_the_discount() -> None:
    """38 % discount: above 62 % use (cost-model 2). Uses of the GPUs 1 to 4: 1, 0.7, 0.6, 0.1."""
    demands = [4.0, *[3.0] * 5, 2.0, *[1.0] * 3]
    mix = cheapest(load(*demands), MixPrices(Decimal(1), commit=Decimal("0.62")))
    assert (mix.commit_gpus, mix.own_gpus, mix.reserve_gpus) == (2, 0, 0)
    assert mix.on_demand_gpus == pytest.approx(0.6 + 0.1)
    assert mix.idle_gpus == pytest.approx(0.3)
    assert mix.usd_per_month == Decimal(730) * (2 * Decimal("0.62") + Decimal("0.7"))


def test_steady_demand_is_owned_and_a_rare_one_is_rented() -> None:
    steady = cheapest(load(*[8.0] * 10), MixPrices(RENT, own=OWN))
    assert (steady.own_gpus, steady.on_demand_gpus) == (8, 0.0)
    assert steady.usd_per_month == Decimal(730) * 8 * Decimal("1.58")
    rare = cheapest(load(*[8.0], *[0.0] * 9), MixPrices(RENT, own=OWN))
    assert (rare.own_gpus, rare.on_demand_gpus) == (0, 0.8)


def test_owned_gpus_come_in_whole_machines() -> None:
    mix = cheapest(load(*[11.0] * 10), MixPrices(RENT, own=OWN, reserve=Decimal("2.50")))
    assert (mix.own_gpus, mix.reserve_gpus) == (8, 3)
    assert cheapest(load(*[15.0] * 10), MixPrices(RENT, own=OWN)).own_gpus == 16


def test_of_two_promises_the_cheaper_is_taken_and_the_shorter_of_equal_ones() -> None:
    steady = load(*[2.0] * 4)
    dearer = MixPrices(RENT, commit=Decimal(2), reserve=Decimal(3))
    assert (cheapest(steady, dearer).commit_gpus, cheapest(steady, dearer).reserve_gpus) == (2, 0)
    equal = MixPrices(RENT, commit=Decimal(2), reserve=Decimal(2))
    assert (cheapest(steady, equal).commit_gpus, cheapest(steady, equal).reserve_gpus) == (0, 2)
    assert cheapest(steady, MixPrices(RENT, commit=Decimal(5))).paid_gpus == 0


def test_only_what_can_restart_goes_to_spot() -> None:
    demand = load(4.0, 4.0, restartable=0.25)
    mix = cheapest(demand, MixPrices(RENT, spot=Decimal(1), restartable_ratio=0.25))
    assert (mix.spot_gpus, mix.on_demand_gpus) == (1.0, 3.0)
    assert mix.usd_per_month == Decimal(730) * (1 + 3 * 4)
    nothing = cheapest(load(4.0, 4.0), MixPrices(RENT, spot=Decimal(1)))
    assert (nothing.spot_gpus, nothing.on_demand_gpus) == (0.0, 4.0)
    dear = cheapest(demand, MixPrices(RENT, spot=Decimal(5), restartable_ratio=0.25))
    assert dear.spot_gpus == 0.0


def test_an_exact_number_of_paid_gpus_is_split_at_least_cost() -> None:
    demand = load(*[10.0] * 3, 2.0)
    prices = MixPrices(RENT, own=OWN, commit=Decimal(2))
    assert with_paid(demand, replace(prices, commit=None), 9) is None
    assert with_paid(demand, without(prices, "own", "commit"), 1) is None
    nine = with_paid(demand, prices, 9)
    assert nine is not None
    assert (nine.own_gpus, nine.commit_gpus) == (8, 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"commit": Decimal(0)}, "commit_usd_per_gpu_hour is 0"),
        ({"rent": Decimal(-1)}, "rent_usd_per_gpu_hour is -1"),
        ({"spot": Decimal("NaN")}, "spot_usd_per_gpu_hour is NaN"),
        ({"restartable_ratio": 1.5}, "restartable_ratio is 1.5"),
        ({"rent": Decimal("0.05")}, "an hour of work on an owned GPU costs 0.0800"),
    ],
)
def test_prices_that_cannot_be_are_refused_by_name(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(MixPrices(RENT, own=OWN), **change)  # type: ignore[arg-type]


PRICE = st.integers(1, 60).map(lambda dimes: Decimal(dimes) / 10)
DEMANDS = st.lists(st.integers(0, 40).map(lambda quarters: quarters * HOUR_MS // 4), min_size=1, max_size=12)


@st.composite
def priced(draw: st.DrawFn) -> MixPrices:
    rent = draw(PRICE)
    spot = draw(st.none() | PRICE)
    ratio = draw(st.sampled_from([0.0, 0.25, 0.6, 1.0]))
    least = min(rent, spot) if spot is not None and ratio else rent
    own = None
    if draw(st.booleans()):
        used = least * draw(st.integers(0, 9)) / 10
        own = OwnPrice(draw(PRICE), used.quantize(Decimal("0.001")), draw(st.sampled_from([1, 2, 3, 8])))
    return MixPrices(rent, own, draw(st.none() | PRICE), draw(st.none() | PRICE), spot, ratio)


@given(demands=DEMANDS, prices=priced())
def test_no_other_mix_is_cheaper(demands: list[int], prices: MixPrices) -> None:
    demand = Load.of(demands, prices.restartable_ratio)
    mix = cheapest(demand, prices)
    assert mix.exact == brute(demand, prices, demands)
    same = with_paid(demand, prices, mix.paid_gpus)
    assert same is not None
    assert same.exact == mix.exact


@given(demands=DEMANDS, more=DEMANDS, prices=priced())
def test_more_demand_never_lowers_what_is_owned(
    demands: list[int], more: list[int], prices: MixPrices
) -> None:
    """With one way to own or promise: between two of them demand may shift."""
    grown = [a + b for a, b in zip(demands, [*more, *[0] * len(demands)], strict=False)]
    for alone in (without(prices, "commit", "reserve"), without(prices, "own")):
        before = cheapest(Load.of(demands, alone.restartable_ratio), alone)
        after = cheapest(Load.of(grown, alone.restartable_ratio), alone)
        assert after.paid_gpus >= before.paid_gpus
        assert after.exact >= before.exact


@given(demands=DEMANDS, prices=priced())
def test_one_way_more_is_never_dearer(demands: list[int], prices: MixPrices) -> None:
    demand = Load.of(demands, prices.restartable_ratio)
    costs = [
        cheapest(demand, without(prices, *missing)).exact
        for missing in (("own", "commit", "reserve", "spot"), ("own", "commit", "reserve"), ("own",), ())
    ]
    assert costs == sorted(costs, reverse=True)


@given(demands=DEMANDS, prices=priced())
def test_the_parts_of_a_mix_serve_the_demand(demands: list[int], prices: MixPrices) -> None:
    mix = cheapest(Load.of(demands, prices.restartable_ratio), prices)
    served = mix.paid_gpus - mix.idle_gpus
    mean = sum(demands) / len(demands) / HOUR_MS
    assert served + mix.on_demand_gpus + mix.spot_gpus == pytest.approx(mean)
    assert mix.idle_gpus >= -1e-9
    assert mix.spot_gpus <= mean * prices.restartable_ratio + 1e-6


def test_weeks_weigh_as_often_as_they_are_there() -> None:
    prices = MixPrices(RENT, commit=Decimal(2))
    quiet, loud = Load.of([HOUR_MS] * 4, 0.0), Load.of([5 * HOUR_MS] * 4, 0.0)
    twice = Load((*((*part[:2], 2) for part in quiet.parts), *loud.parts))
    same = Load.of([HOUR_MS] * 8 + [5 * HOUR_MS] * 4, 0.0)
    assert cheapest(twice, prices) == cheapest(same, prices)
