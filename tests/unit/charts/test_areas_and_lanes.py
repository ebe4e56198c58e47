"""Stacked areas and lanes: layers add up, gaps break them, hostile words are inert, shapes tell kinds apart."""

import re

from api.charts_areas import Area, stacked_areas
from api.charts_lanes import SHAPES, Instant, Lane, Stretch, instants, lanes
from api.words import Mark
from core.evidence import Window

WINDOW = Window(0, 4_000)
SPANS = [(0, 1_000), (1_000, 2_000), (2_000, 3_000), (3_000, 4_000)]
HOSTILE = "<script>alert(1)</script>\u202e"


def areas(*values: tuple[float | None, ...]) -> str:
    layers = [Area(f"p-{i + 1}", f"w{i}", one) for i, one in enumerate(values)]
    return str(stacked_areas(SPANS, layers, window=WINDOW, label="x", height=118))


def paths(svg: str) -> list[str]:
    return re.findall(r'class="area [^"]+"[^>]* d="([^"]+)"', svg)


def test_a_layer_stands_on_the_one_below() -> None:
    lower, upper = paths(areas((10.0,) * 4, (10.0,) * 4))
    assert lower.startswith("M0 50L250 50")
    assert lower.endswith("L0 100Z")
    assert upper.startswith("M0 0L250 0")
    assert upper.endswith("L0 50Z")


def test_a_gap_breaks_a_layer_and_zero_draws_nothing() -> None:
    (path,) = paths(areas((10.0, None, 10.0, 0.0)))
    assert path.count("M") == 2
    assert paths(areas((0.0, None, 0.0, 0.0))) == []


def test_a_layer_that_nothing_names_is_hatched() -> None:
    svg = str(stacked_areas(SPANS, [Area("a-unknown", "rest", (1.0,) * 4)], window=WINDOW, label="x"))
    assert 'fill="url(#hatch)"' in svg


def test_names_in_charts_are_text() -> None:
    area = stacked_areas(SPANS, [Area("p-1", HOSTILE, (1.0,) * 4)], window=WINDOW, label=HOSTILE)
    lane = lanes([Lane("t-heat", "heat", (Stretch(0, 1, HOSTILE),))], window=WINDOW, label=HOSTILE)
    mark = instants([Instant(1, Mark.BAD, HOSTILE, "#events")], window=WINDOW, label="x")
    for svg in (area, lane, mark):
        assert "<script" not in svg
        assert "alert(1)" in svg
    assert "\u202e" not in mark


def test_a_stretch_is_as_long_as_its_time_and_never_too_thin_to_see() -> None:
    row = Lane("t-power", "power", (Stretch(1_000, 2_000, "a"), Stretch(3_000, 3_000, "b")))
    widths = re.findall(
        r'class="t-power" x="([\d.]+)%" width="([\d.]+)%"', lanes([row], window=WINDOW, label="x")
    )
    assert widths == [("25", "25"), ("75", "0.15")]


def test_each_kind_of_event_has_a_shape_of_its_own() -> None:
    assert set(SHAPES) == set(Mark)
    assert len(set(SHAPES.values())) == len(Mark)
    linked = instants([Instant(1_000, Mark.WARN, "x", "#events")], window=WINDOW, label="x")
    assert 'role="group"' in linked
    assert '<a href="#events"' in linked
    assert 'role="img"' in instants([Instant(1_000, Mark.WARN, "x")], window=WINDOW, label="x")
