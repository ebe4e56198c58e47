"""A chart over something else than time says so, and does not draw its values as milliseconds."""

from api.charts_lines import Line, line_chart
from core.evidence import Window


def test_an_axis_that_is_no_time_shows_its_ends_and_its_unit() -> None:
    points = ((0, 0.1), (100, 0.9), (167, 0.2))
    drawn = line_chart(
        [Line("busy", "active", points)],
        window=Window(0, 167),
        label="week",
        step_ms=None,
        x_unit="hour <of> week",
    )
    assert ">167</text>" in drawn
    assert "hour &lt;of&gt; week" in drawn
    assert "00:00" not in drawn
    assert drawn.count("M0") == 1
    assert "L" in drawn.split('d="')[1], "one unbroken line, however far its points are apart"
