"""What a GPU-hour costs in each way: the worked example's node by the hour, spot with interruptions, what is left out."""

from dataclasses import replace
from decimal import Decimal

import pytest

from ledger.mix import OwnPrice
from ledger.mix_prices import MixInputs, mix_prices, own_price
from ledger.rent_or_buy_inputs import RentOrBuyInputs

NODE = RentOrBuyInputs(capex_usd=330_000.0, tariff_usd_per_kwh=0.12)
RENT = MixInputs(Decimal("3.99"))


def test_the_worked_examples_node_by_the_hour() -> None:
    """fixed_year 126 155.22 USD over 8 × 8760 h, var_h 0.624 USD over 8."""
    found = own_price(NODE, Decimal("3.99"))
    assert isinstance(found, OwnPrice)
    assert found.fixed_usd_per_gpu_h == Decimal("1.800160")
    assert (found.used_usd_per_gpu_h, found.unit) == (Decimal("0.078"), 8)


def test_a_machine_that_is_down_half_of_the_time_costs_twice_the_hour() -> None:
    whole = own_price(NODE, Decimal("3.99"))
    half = own_price(replace(NODE, availability_ratio=0.5), Decimal("3.99"))
    assert isinstance(whole, OwnPrice)
    assert isinstance(half, OwnPrice)
    assert float(half.fixed_usd_per_gpu_h) == pytest.approx(2 * float(whole.fixed_usd_per_gpu_h), abs=1e-5)


def test_spot_costs_what_its_interruptions_lose_too() -> None:
    """Cost-model 2: spot × (1 + λ × (t_ckpt/2 + t_restart))."""
    spot = replace(
        RENT,
        spot_usd_per_gpu_hour=Decimal("1.40"),
        interruptions_per_hour=0.1,
        checkpoint_h=1.0,
        restart_h=0.5,
        restartable_ratio=0.3,
    )
    prices, left_out = mix_prices(spot, NODE)
    assert prices.spot == Decimal("1.54")
    assert prices.takes_spot
    assert set(left_out) == {"commit", "reserve"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "spot_usd_per_gpu_hour is not given"),
        ({"spot_usd_per_gpu_hour": Decimal(1), "interruptions_per_hour": 0.1}, "restartable_ratio is 0"),
        (
            {"spot_usd_per_gpu_hour": Decimal(1), "restartable_ratio": 0.5},
            "interruptions_per_hour is not given",
        ),
        (
            {
                "spot_usd_per_gpu_hour": Decimal(4),
                "restartable_ratio": 0.5,
                "interruptions_per_hour": 0.0,
            },
            "not less than the rent",
        ),
    ],
)
def test_spot_is_left_out_with_its_reason(change: dict[str, object], why: str) -> None:
    prices, left_out = mix_prices(replace(RENT, **change), NODE)  # type: ignore[arg-type]
    assert not prices.takes_spot
    assert why in left_out["spot"]


def test_owning_is_left_out_with_its_reason() -> None:
    _, left_out = mix_prices(RENT, RentOrBuyInputs())
    assert left_out["own"] == "capex_usd and tariff_usd_per_kwh not given"
    _, left_out = mix_prices(MixInputs(Decimal("0.05")), NODE)
    assert "in energy alone, not less than the rent" in left_out["own"]
    prices, left_out = mix_prices(RENT, replace(NODE, tariff_usd_per_kwh=None, own_opex_usd_per_hour=5.0))
    assert prices.own is not None
    assert prices.own.used_usd_per_gpu_h == 0
