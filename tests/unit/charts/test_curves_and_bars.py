"""Curves over a number, and bars of one row: what they draw, and that words in them are only words."""

import re
import xml.etree.ElementTree as ET

from api.charts_bars import Part, parts_bar, swing_bar
from api.charts_curves import Curve, Mark, curves
from api.charts_scatter import Upright

LINE = tuple((float(x), 2.0 * x) for x in range(11))


def test_a_curve_is_a_path_and_its_band_an_area() -> None:
    svg = curves((Curve("own", LINE, LINE, tuple((x, y + 1) for x, y in LINE)),), label="cost", x_unit="use")
    root = ET.fromstring(svg)
    assert root.get("aria-label") == "cost"
    assert [one.get("class") for one in root.iter() if one.tag.endswith("path")] == [
        "band-of own",
        "line own",
    ]


def test_a_curve_that_leaves_the_chart_is_cut_and_does_not_stretch_it() -> None:
    steep = Curve("own", ((1.0, 1_000.0), (2.0, 5.0)))
    svg = curves((steep,), label="", x_unit="", y_to=10)
    assert 'overflow="hidden"' in svg
    assert ">10<" in svg
    assert ">1,000<" not in svg


def test_a_mark_stands_where_its_figures_say() -> None:
    svg = curves(
        (Curve("own", LINE),), label="", x_unit="", marks=(Mark(5, 10, "here", 4, 6),), x_to=10, y_to=20
    )
    assert 'cx="50%"' in svg
    assert re.search(r'class="whisker" x1="40%" x2="60%"', svg)


def test_an_upright_beyond_the_axis_stands_at_its_end() -> None:
    svg = curves((Curve("own", LINE),), label="", x_unit="", uprights=(Upright(50, "memory"),), x_to=10)
    assert "memory →" in svg


def test_words_of_charts_are_only_words() -> None:
    hostile = "<script>alert(1)</script>"
    svg = curves(
        (Curve("own", LINE),),
        label=hostile,
        x_unit=hostile,
        marks=(Mark(1, 1, hostile),),
        uprights=(Upright(1, hostile),),
    )
    svg += parts_bar((Part("k-kv", 1, hostile),), 2, hostile) + swing_bar(-1, 1, 0, (-1, 1), hostile)
    assert "<script" not in svg


def test_parts_fill_their_share_and_no_more_than_the_whole() -> None:
    svg = parts_bar((Part("a", 25, "a"), Part("b", 100, "b")), 100, "memory")
    assert 'class="a" x="0%" width="25%"' in svg
    assert 'class="b" x="25%" width="75%"' in svg


def test_a_swing_is_cut_in_two_at_zero() -> None:
    svg = swing_bar(-10, 30, None, (-10, 30), "use")
    assert 'class="s-against" x="0%" width="25%"' in svg
    assert 'class="s-for" x="25%" width="75%"' in svg
    assert "s-against" not in swing_bar(5, 30, None, (0, 30), "rent")
