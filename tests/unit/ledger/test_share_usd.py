"""Parts of an amount add up to it, to the micro-dollar."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.money import to_micro
from ledger.share import rounded, split_usd

AMOUNTS = st.decimals(min_value=0, max_value=10_000_000, places=8, allow_nan=False)
WEIGHTS = st.dictionaries(
    st.integers(0, 40), st.floats(0, 1e9, allow_nan=False, allow_infinity=False), min_size=1
).filter(lambda weights: sum(weights.values()) > 1e-3)


@given(AMOUNTS, WEIGHTS)
def test_parts_add_up_to_the_whole_and_none_is_negative(total: Decimal, weights: dict[int, float]) -> None:
    parts = split_usd(total, weights)
    assert sum(parts.values()) == rounded(total)
    assert set(parts) == set(weights)
    assert all(part >= 0 for part in parts.values())
    assert all(part * 1_000_000 == to_micro(part) for part in parts.values())


@given(AMOUNTS, WEIGHTS)
def test_a_part_is_its_share_within_the_rounding(total: Decimal, weights: dict[int, float]) -> None:
    parts = split_usd(total, weights)
    for key, weight in weights.items():
        share = float(total) * weight / sum(weights.values())
        assert float(parts[key]) == pytest.approx(share, rel=1e-9, abs=1e-6 * (len(weights) + 1))


@given(AMOUNTS, WEIGHTS)
def test_a_correction_is_shared_like_the_charge_it_undoes(total: Decimal, weights: dict[int, float]) -> None:
    charge, correction = split_usd(total, weights), split_usd(-total, weights)
    assert all(charge[key] == -correction[key] for key in weights)


def test_the_residue_goes_to_the_largest_share() -> None:
    assert split_usd(Decimal("0.000010"), {"a": 1, "b": 1, "c": 1.5}) == {
        "a": Decimal("0.000002"),
        "b": Decimal("0.000002"),
        "c": Decimal("0.000006"),
    }


def test_no_weight_shares_nothing_but_never_loses_money() -> None:
    assert split_usd(Decimal(0), {"a": 0.0}) == {"a": Decimal(0)}
    with pytest.raises(ValueError, match="nothing to share it by"):
        split_usd(Decimal(1), {"a": 0.0})
    with pytest.raises(ValueError, match="negative or not finite"):
        split_usd(Decimal(1), {"a": -1.0})
    with pytest.raises(ValueError, match="negative or not finite"):
        split_usd(Decimal(1), {"a": float("nan")})
