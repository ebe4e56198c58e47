"""Shares in sentences."""

import pytest

from core.percent import percent, percent_range


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.82, "82 %"), (0.0, "0 %"), (0.004, "under 1 %"), (0.01, "1 %"), (1.0, "100 %"), (-0.2, "−20 %")],
)
def test_a_share_is_whole_percent_after_a_space_and_never_rounds_to_none(share: float, said: str) -> None:
    assert percent(share) == said


def test_decimals_and_signs_are_told_where_asked_for() -> None:
    assert percent(0.0304, 1) == "3.0 %"
    assert percent(0.052, signed=True) == "+5 %"
    assert percent(-0.0312, 1, signed=True) == "−3.1 %"


def test_a_range_names_the_unit_once() -> None:
    assert percent_range(0.1, 0.2) == "10–20 %"
