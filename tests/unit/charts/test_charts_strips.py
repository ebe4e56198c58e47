"""Strips: one piece for equal neighbours, gaps left out, seven shades over the scale."""

import pytest

from api.charts_strips import SHADES, Cell, activity_strip, heat_strip, shade_class, strip_words
from core.activity import Activity


def test_equal_hours_are_one_piece_and_an_activity_one_path() -> None:
    strip = (Activity.EMPTY,) * 3 + (Activity.BUSY,) * 2 + (Activity.EMPTY,) * 19
    drawn = str(activity_strip(strip))
    assert drawn.count("<path") == 2
    assert 'class="a-empty" d="M0 0h15v13h-15zM25 0h95v13h-95z"' in drawn
    assert 'class="a-busy" d="M15 0h10v13h-10z"' in drawn


def test_a_gap_is_a_dotted_line_and_said() -> None:
    drawn = str(activity_strip((None,) * 24))
    assert 'class="gapline"' in drawn
    assert "<title>no samples 24 h</title>" in drawn


def test_words_follow_the_order_of_legends() -> None:
    hours = {None: 1, Activity.EMPTY: 2, Activity.COMPUTE_BOUND: 3}
    assert strip_words(hours) == "compute-bound 3 h, empty 2 h, no samples 1 h"


@pytest.mark.parametrize(
    ("share", "number"), [(0.0, 1), (0.142, 1), (0.143, 2), (0.5, 4), (1.0, 7), (1.7, 7), (-1, 1)]
)
def test_shades_cut_the_scale_evenly(share: float, number: int) -> None:
    assert shade_class(share) == f"h-{number}"
    assert 1 <= number <= SHADES


def test_what_is_not_known_is_blank() -> None:
    drawn = str(heat_strip([Cell(None), Cell(0.0, "0 %"), Cell(None)], label="x", when=str))
    assert drawn.count("<rect") == 1
    assert 'x="1" width="1"' in drawn


def test_texts_of_a_heat_strip_are_escaped() -> None:
    drawn = str(heat_strip([Cell(Activity.BUSY, "<b>")], label='"<i>', when=lambda at: f"<{at}>"))
    assert "<b>" not in drawn
    assert "<i>" not in drawn
    assert "<0>" not in drawn
