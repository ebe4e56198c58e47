"""What rows become in JSON."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from api.resources.as_json import to_json
from core.activity import Activity
from core.evidence import Window
from core.histogram import Histogram


@dataclass(frozen=True)
class Row:
    amount: Decimal | None
    at: datetime
    seconds: dict[Activity, float]
    parts: tuple[str, ...]


def test_a_row_keeps_its_field_names_and_its_unknowns() -> None:
    row = Row(None, datetime(2026, 10, 5, 14, 0, 0, 500_000, UTC), {Activity.MEMORY_BOUND: 1.5}, ("a",))
    assert to_json(row) == {
        "amount": None,
        "at": "2026-10-05T14:00:00.500Z",
        "seconds": {"memory_bound": 1.5},
        "parts": ["a"],
    }


@pytest.mark.parametrize(
    ("amount", "text"),
    [("3.5", "3.50"), ("0", "0.00"), ("1234567.891234567", "1234567.891235"), ("-0.000001", "-0.000001")],
)
def test_money_is_a_plain_decimal_string(amount: str, text: str) -> None:
    assert to_json(Decimal(amount)) == text


def test_times_are_utc_whatever_their_zone() -> None:
    at = datetime(2026, 10, 5, 16, 0, tzinfo=timezone(timedelta(hours=2)))
    assert to_json(at) == "2026-10-05T14:00:00.000Z"


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), float("-inf")])
def test_a_figure_that_is_not_finite_is_null(figure: float) -> None:
    assert to_json({"x": figure}) == {"x": None}
    json.dumps(to_json([figure]), allow_nan=False)


def test_enums_booleans_windows_and_histograms_have_a_form() -> None:
    assert to_json(Activity.EMPTY) == "empty"
    assert to_json(True) is True
    assert to_json(Window(0, 3_600_000)) == {
        "from": "1970-01-01T00:00:00.000Z",
        "to": "1970-01-01T01:00:00.000Z",
    }
    assert to_json(Histogram({8.0: 2.0, 1.0: 1.0})) == {"1": 1.0, "8": 2.0}


def test_what_has_no_form_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="object"):
        to_json(object())


def test_token_counts_and_bytes_lose_the_noise_of_added_floats() -> None:
    noisy = {"tokens_generated": 90966.99999999991, "memory_used_bytes": 75161927680.0, "tokens_per_s": 30.0}
    assert json.dumps(to_json(noisy)) == (
        '{"tokens_generated": 90967, "memory_used_bytes": 75161927680, "tokens_per_s": 30.0}'
    )
    assert to_json({"tokens_generated": 10.5, "usd_per_million_tokens": Decimal(3), "x_bytes": None}) == {
        "tokens_generated": 10.5,
        "usd_per_million_tokens": "3.00",
        "x_bytes": None,
    }
