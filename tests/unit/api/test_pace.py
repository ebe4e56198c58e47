"""A month's figure says from how much data it is."""

import pytest

from api.formats import pace
from api.pages.recommendations import ledgers_of
from core.evidence import Window
from core.finding import Range, Totals


@pytest.mark.parametrize(
    ("hours", "says"),
    [
        (0.5, "(0.5 h of data, little to go by)"),
        (13 * 24, "(13 days of data, little to go by)"),
        (30 * 24, "(30 days of data)"),
    ],
)
def test_a_projection_says_its_data_and_when_they_are_few(hours: float, says: str) -> None:
    assert pace(hours) == f"a month at the pace of this window {says}"


def test_the_page_calls_the_spend_of_half_an_hour_a_projection() -> None:
    totals = Totals(Range(1.0, 2.0, 3.0), None, None, 9_087.0)
    said = str(ledgers_of(totals, Window(0, 1_800_000), ()))
    assert "of $9,087 a month at the pace of this window (0.5 h of data, little to go by)" in said
    assert "spent" not in said
