from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.clock import from_ms, iso, to_ms
from core.finding import Range
from core.money import from_micro, text, to_micro, usd


@given(st.decimals(-(10**9), 10**9, places=6))
def test_micro_dollars_keep_every_amount(amount: Decimal) -> None:
    assert from_micro(to_micro(amount)) == amount


def test_a_float_price_is_the_number_people_wrote() -> None:
    assert usd(0.1) + usd(0.2) == Decimal("0.3")


def test_money_text_is_a_plain_decimal() -> None:
    assert (text(Decimal(2)), text(Decimal("1E+3")), text(Decimal("0.0000004")), text(None)) == (
        "2.00",
        "1000.00",
        "0.00",
        None,
    )


def test_naive_times_are_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        to_ms(datetime(2026, 1, 1))  # noqa: DTZ001 - the point of the test


def test_times_of_any_zone_mean_the_same_instant() -> None:
    utc = datetime(2026, 10, 5, 12, tzinfo=UTC)
    berlin = utc.astimezone(timezone(timedelta(hours=2)))
    assert to_ms(berlin) == to_ms(utc)
    assert from_ms(to_ms(utc)) == utc
    assert iso(to_ms(utc)) == "2026-10-05T12:00:00.000Z"


def test_a_range_out_of_order_is_refused_and_negative_values_stay_ordered() -> None:
    with pytest.raises(ValueError, match="out of order"):
        Range(2, 1, 3)
    assert Range.around(-10, 0.1) == Range(-11, -10, -9)
