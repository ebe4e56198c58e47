"""Figures for people: units, rounding, and the unknown that is never 0."""

from decimal import Decimal

import pytest

from api import formats
from core.finding import Range


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal(84310), "$84,310"),
        (Decimal("5.4712"), "$5.47"),
        (99.999, "$100.00"),
        (0, "$0"),
        (Decimal("0.001"), "under $0.01"),
        (-120, "−$120"),
        (None, "–"),
    ],
)
def test_money_is_whole_above_a_hundred_and_in_cents_below(value: Decimal | None, text: str) -> None:
    assert formats.money(value).replace(formats.NBSP, " ") == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.38, "38 %"),
        (0.992, "99.2 %"),
        (1.0, "100 %"),
        (0.0, "0 %"),
        (0.9999, "over 99.9 %"),
        (0.0001, "under 0.1 %"),
        (None, "–"),
    ],
)
def test_percent_never_rounds_nearly_all_to_all(ratio: float | None, text: str) -> None:
    assert formats.percent(ratio).replace(formats.NBSP, " ") == text


@pytest.mark.parametrize(
    "print_it",
    [
        formats.money,
        formats.percent,
        formats.gpu_hours,
        formats.watts,
        formats.gib,
        formats.duration,
        formats.kwh,
        formats.clock_mhz,
        formats.milliseconds,
        formats.money_rate,
        formats.short,
        formats.figure,
    ],
)
def test_the_unknown_is_a_dash_and_zero_is_a_zero(print_it: object) -> None:
    assert callable(print_it)
    assert print_it(None) == formats.UNKNOWN
    assert "0" in print_it(0)


def test_a_range_shares_its_unit() -> None:
    assert formats.spread(Range(4900, 5470, 5900), "cash") == "$4,900–5,900"
    assert formats.spread(Range(1050, 1240, 1400), "capacity") == "1,050–1,400"


def test_durations_use_their_largest_fitting_unit() -> None:
    said = [formats.duration(s).replace(formats.NBSP, " ") for s in (12, 600, 5 * 3600, 30 * 86_400)]
    assert said == ["12 s", "10 min", "5 h", "30 days"]


def test_a_change_needs_something_to_compare_with() -> None:
    assert formats.change(104.1, 100).replace(formats.NBSP, " ") == "+4.1 %"
    assert formats.change(50, 100).replace(formats.NBSP, " ") == "−50 %"
    assert formats.change(1, 0) == formats.UNKNOWN
    assert formats.change(None, 100) == formats.UNKNOWN


def test_a_window_of_days_reads_as_days_and_a_short_one_as_minutes() -> None:
    midnight = 1_763_596_800_000
    assert formats.span(midnight, midnight + 7 * 86_400_000) == "20 Nov – 26 Nov 2025"
    assert formats.span(midnight, midnight + 1_800_000) == "20 Nov 2025 00:00 – 00:30 UTC"
