"""Measured points under a law, and the bar of how well GPU time was used."""

import pytest

from advisor.estimators.fit_refusal import fit_refusal
from api.charts_scatter import Curve, Dot, Upright, scatter
from api.charts_use import Use, use_bar
from api.pages.pager import pager
from api.pages.view import Address
from core.hours import BatchPoint

DOTS = [Dot(2, 100, "two"), Dot(8, 300, "<b>eight</b>")]


def test_points_stand_at_their_share_of_the_axes_and_their_text_is_escaped() -> None:
    svg = scatter(DOTS, label="x", x_unit="requests running")
    assert 'cx="25%"' in svg
    assert 'cx="100%"' in svg
    assert "&lt;b&gt;eight" in svg
    assert 'class="law' not in svg


def test_a_law_is_dashed_beyond_what_its_data_reach() -> None:
    seen = Curve(lambda batch: 40 * batch, 4, "law")
    assert 'class="law beyond"' in scatter(DOTS, label="x", x_unit="n", curve=seen)
    reached = Curve(lambda batch: 40 * batch, 100, "law")
    assert 'class="law beyond"' not in scatter(DOTS, label="x", x_unit="n", curve=reached)


def test_what_lies_beyond_the_axis_stands_at_its_end_with_an_arrow() -> None:
    marks = [Upright(5, "half rate 5"), Upright(256, "limit 256")]
    far = scatter(DOTS, label="x", x_unit="n", uprights=marks, to=10)
    assert "limit 256 →" in far
    assert 'x1="50%"' in far
    assert "limit 256 →" not in scatter(DOTS, label="x", x_unit="n", uprights=marks)


@pytest.mark.parametrize(
    ("use", "said", "hatched"),
    [
        (Use(10, 8, 6), "10\u00a0GPU-h held, 8 active, 6 effective", False),
        (Use(10, 8, None, untold_h=8), "10\u00a0GPU-h held, 8 active, 8 active that nothing can judge", True),
        (Use(10, None, None), "10\u00a0GPU-h held, active not known", True),
        (
            Use(10, 8, 8, unnamed_h=2),
            "10\u00a0GPU-h held, 8 active, 8 effective, 2 of unknown activity",
            True,
        ),
    ],
)
def test_a_bar_says_what_it_shows_and_hatches_what_nothing_can_tell(
    use: Use, said: str, hatched: bool
) -> None:
    svg = use_bar(use)
    assert f'aria-label="{said}"' in svg
    assert ("url(#hatch)" in svg) is hatched


def test_no_hours_draw_no_bar() -> None:
    assert 'class="f-' not in use_bar(Use(0, 0, 0))


def profile(*batches: float, seconds: float = 3000.0, step: float = 0.01) -> dict[float, BatchPoint]:
    return {batch: BatchPoint(seconds, batch * seconds / (step + 0.001 * batch), 0.0) for batch in batches}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (profile(1, 4, 8), None),
        ({}, "no batch size was held"),
        (profile(8), "it ran at 1 batch size only (8)"),
        (profile(1, 4, 8, seconds=100.0), "300 s of work are too few"),
        (profile(5, 6, 7), "lie too close together"),
        (profile(1, 4, 8, step=-0.0005), "follow no line"),
    ],
)
def test_a_fit_is_refused_for_the_first_condition_that_is_not_met(
    given: dict[float, BatchPoint], why: str | None
) -> None:
    said = fit_refusal(given)
    assert said is None if why is None else said is not None and why in said


def test_pages_lead_to_their_neighbours_and_never_beyond() -> None:
    address = Address("/workloads", (("user", "ann"), ("page", "2")))
    second = pager(address, 250, 100)
    assert (second.first, second.last) == (100, 200)
    assert second.before == "/workloads?user=ann"
    assert second.after == "/workloads?user=ann&page=3"
    last = pager(Address("/workloads", (("page", "99"),)), 250, 100)
    assert (last.first, last.last, last.after) == (200, 250, "")
    assert pager(Address("/workloads", (("page", "x"),)), 0, 100).last == 0
