"""What seconds cost at a price, and that cutting time changes no sum."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evidence import Price
from ledger.cost import Meter, cost_usd


def price(usd: str) -> Price:
    return Price(Decimal(usd), "your price", "on_demand", 1, "2026-09-01", from_user=True)


@pytest.mark.parametrize(
    ("seconds", "usd", "cost"),
    [
        (3600.0, "2.00", "2"),
        (1.0, "3.60", "0.001"),
        (0.0, "2.00", "0"),
        (5400.0, "6.88", "10.32"),
        (1.0, "2.00", "0.000556"),
    ],
)
def test_gpu_seconds_cost_their_share_of_the_hour(seconds: float, usd: str, cost: str) -> None:
    assert cost_usd(seconds, price(usd)) == Decimal(cost)


@given(st.floats(0, 1e9), st.decimals("0.01", 100, places=4))
def test_a_cost_is_whole_micro_dollars_and_never_further_than_half_of_one(
    seconds: float, usd: Decimal
) -> None:
    cost = cost_usd(seconds, price(str(usd)))
    assert cost * 1_000_000 % 1 == 0
    assert abs(cost - Decimal(str(seconds)) * usd / 3600) <= Decimal("0.0000005")


@given(
    st.lists(st.integers(0, 10**9), min_size=1, max_size=30),
    st.sampled_from(["0.000001", "0.333333", "1.80", "6.880003"]),
    st.integers(1, 30),
)
def test_however_time_is_cut_a_meter_reads_the_same(lengths_ms: list[int], usd: str, stride: int) -> None:
    fine, coarse = Meter(), Meter()
    parts = [fine.add(length / 1000, price(usd)) for length in lengths_ms]
    for at in range(0, len(lengths_ms), stride):
        coarse.add(sum(length / 1000 for length in lengths_ms[at : at + stride]), price(usd))
    assert all(part >= 0 for part in parts)
    assert sum(parts) == fine.usd == coarse.usd == cost_usd(sum(lengths_ms) / 1000, price(usd))


def test_a_meter_takes_the_price_of_each_part() -> None:
    meter = Meter()
    assert (meter.add(3600, price("2")), meter.add(1800, price("10"))) == (Decimal(2), Decimal(5))
    assert meter.usd == Decimal(7)
