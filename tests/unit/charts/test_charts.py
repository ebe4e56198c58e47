"""Charts: the drawn lengths are the values, gaps stay gaps, what is unknown is hatched, names say it all."""

import re
from xml.etree import ElementTree as ET

import pytest

from api.charts import FunnelBar, Layer, funnel, stacked_bars
from api.charts_bands import Column, activity_band
from api.charts_lines import Line, line_chart, meter, runs, sparkline
from api.charts_parts import nice_ticks, time_label, time_ticks
from core.activity import Activity
from core.evidence import Window
from core.units import DAY_MS, HOUR_MS

START = 1_763_596_800_000  # 2025-11-20 00:00 UTC
DAY = Window(START, START + DAY_MS)
SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def classes(svg: str, tag: str = "rect") -> list[str]:
    return [element.get("class", "") for element in parsed(svg).iter(f"{SVG}{tag}")]


def test_ticks_are_round_and_reach_the_highest_value() -> None:
    assert nice_ticks(2810) == [0, 1000, 2000, 3000]
    assert nice_ticks(0.7) == [0, 0.25, 0.5, 0.75]
    assert nice_ticks(1.0)[-1] == 1.0
    assert nice_ticks(0) == [0, 1]


def test_time_ticks_are_round_instants_inside_the_window() -> None:
    ticks = time_ticks(Window(START + 1, START + 6 * HOUR_MS))
    assert all(START < t <= START + 6 * HOUR_MS and t % HOUR_MS == 0 for t in ticks)
    assert time_label(ticks[0], Window(START, START + 6 * HOUR_MS)) == "02:00"
    assert time_label(START, Window(START, START + 30 * DAY_MS)) == "20 Nov"


def test_two_days_name_each_day_once() -> None:
    window = Window(START, START + 2 * DAY_MS)
    told = [time_label(ts_ms, window) for ts_ms in time_ticks(window)]
    assert told == ["20 Nov", "12:00", "21 Nov", "12:00", "22 Nov"]


def test_bar_heights_are_proportional_to_their_values() -> None:
    svg = stacked_bars(
        ["a"], [Layer("a-empty", "empty", (30.0,)), Layer("a-busy", "busy", (10.0,))], label="x"
    )
    heights = {rect.get("class"): float(rect.get("height", "0")) for rect in parsed(svg).iter(f"{SVG}rect")}
    assert heights["a-empty"] == pytest.approx(3 * heights["a-busy"], rel=0.02)


def test_a_day_without_samples_draws_no_bar_and_says_so() -> None:
    svg = stacked_bars(["1 Nov", "2 Nov"], [Layer("a-empty", "empty", (5.0, None))], label="x")
    assert classes(svg).count("a-empty") == 1
    assert "2 Nov: no samples" in svg


def test_the_last_day_is_always_labelled() -> None:
    names = [f"d{i}" for i in range(30)]
    svg = stacked_bars(names, [Layer("a-empty", "empty", (1.0,) * 30)], label="x")
    labels = [text.text for text in parsed(svg).iter(f"{SVG}text")]
    assert "d0" in labels
    assert "d29" in labels


def test_unknown_is_hatched_and_not_coloured_alone() -> None:
    svg = activity_band([Column(START, START + HOUR_MS, {Activity.UNKNOWN: 3600.0})], window=DAY, label="x")
    (rect,) = parsed(svg).iter(f"{SVG}rect")
    assert rect.get("fill") == "url(#hatch)"
    assert "unknown" in svg


def test_equal_neighbours_of_a_band_become_one_piece() -> None:
    columns = [
        Column(START + i * HOUR_MS, START + (i + 1) * HOUR_MS, {Activity.PARKED: 3600.0}, 3600.0)
        for i in range(24)
    ]
    svg = activity_band(columns, window=DAY, label="node")
    assert classes(svg) == ["a-parked"]
    assert "node: parked 24" in parsed(svg).get("aria-label", "")


def test_a_band_leaves_gaps_blank_and_counts_them() -> None:
    columns = [
        Column(START, START + HOUR_MS, {Activity.EMPTY: 3600.0}, 3600.0),
        Column(START + HOUR_MS, START + 2 * HOUR_MS, {}, 3600.0),
    ]
    svg = activity_band(columns, window=DAY, label="x")
    assert len(classes(svg)) == 1
    assert "no samples for" in parsed(svg).get("aria-label", "")


def test_a_half_covered_column_is_half_high() -> None:
    svg = activity_band(
        [Column(START, START + HOUR_MS, {Activity.EMPTY: 1800.0}, 3600.0)], window=DAY, label="x", height=20
    )
    (rect,) = parsed(svg).iter(f"{SVG}rect")
    assert float(rect.get("height", "0")) == pytest.approx(10.0)


def test_the_funnel_draws_unknown_hours_after_the_known_ones() -> None:
    svg = funnel(
        [FunnelBar("Total", 100.0, "100"), FunnelBar("Effective", 40.0, "40", unknown=10.0)], label="x"
    )
    hatched = [r for r in parsed(svg).iter(f"{SVG}rect") if r.get("fill") == "url(#hatch)"]
    assert [(r.get("x"), r.get("width")) for r in hatched] == [("40%", "10%")]


def test_an_unknown_funnel_step_has_no_bar() -> None:
    svg = funnel([FunnelBar("Total", 10.0, "10"), FunnelBar("Effective", None, "unknown")], label="x")
    assert [c for c in classes(svg) if c.startswith("f-")] == ["f-0"]


def test_lines_break_at_unknown_values_and_at_pauses() -> None:
    points = ((0, 1.0), (10, 2.0), (20, None), (30, 3.0), (100, 4.0))
    assert runs(points, 10) == [[(0, 1.0), (10, 2.0)], [(30, 3.0)], [(100, 4.0)]]
    assert runs(points, None) == [[(0, 1.0), (10, 2.0)], [(30, 3.0), (100, 4.0)]]


def test_a_line_chart_draws_its_threshold_with_its_words() -> None:
    points = tuple((START + i * HOUR_MS, 100.0 + i) for i in range(24))
    svg = line_chart(
        [Line("power", "mean", points)],
        window=DAY,
        label="Power",
        step_ms=HOUR_MS,
        threshold=700.0,
        threshold_text="limit 700 W",
    )
    assert "threshold" in classes(svg, "line")
    assert "limit 700 W" in svg
    (path,) = parsed(svg).iter(f"{SVG}path")
    assert path.get("d", "").count("M") == 1


def test_a_lone_point_is_still_visible() -> None:
    assert "<circle" in sparkline([(0, 5.0)], unit="requests")
    svg = line_chart([Line("busy", "x", ((START, 5.0),))], window=DAY, label="x", step_ms=HOUR_MS)
    assert "h.1" in svg


def test_a_long_series_is_thinned_and_keeps_its_words() -> None:
    points = [(i, 1000.0 if i == 777 else 1.0) for i in range(2000)]
    svg = sparkline(points, unit="W")
    assert len(svg) < 3000
    assert "highest 1,000" in svg


def test_a_single_day_is_a_bar_and_not_a_wall() -> None:
    svg = stacked_bars(["5 Oct"], [Layer("a-empty", "empty", (5.0,))], label="x")
    (bar,) = (r for r in parsed(svg).iter(f"{SVG}rect") if r.get("class") == "a-empty")
    assert bar.get("width") == "14%"


def test_a_sparkline_says_last_highest_and_threshold() -> None:
    svg = sparkline([(0, 8.0), (10, 12.0), (20, 9.0)], unit="requests", threshold=71.0)
    assert parsed(svg).get("aria-label") == "requests: last 9, highest 12, threshold 71"


def test_a_sparkline_of_nothing_is_nothing() -> None:
    assert sparkline([(0, None)], unit="W") == ""


def test_an_unknown_meter_has_no_bar() -> None:
    assert len(classes(meter(None, label="x"))) == 1
    assert len(classes(meter(0.5, label="x"))) == 2


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", 'a"b', "a&b"])
def test_text_from_outside_is_inert(name: str) -> None:
    drawn = (
        stacked_bars([name], [Layer("a-empty", name, (1.0,))], label=name),
        funnel([FunnelBar(name, 1.0, name)], label=name),
        activity_band([Column(START, START + HOUR_MS, {Activity.EMPTY: 1.0})], window=DAY, label=name),
        sparkline([(0, 1.0), (1, 2.0)], unit=name),
        meter(0.5, label=name),
    )
    for svg in drawn:
        assert "<script" not in svg
        assert name in (parsed(svg).get("aria-label") or "")


def test_no_chart_carries_inline_style_or_script() -> None:
    svg = stacked_bars(["a"], [Layer("a-empty", "empty", (1.0,))], label="x")
    svg += activity_band([Column(START, START + HOUR_MS, {Activity.EMPTY: 1.0})], window=DAY, label="x")
    assert not re.search(r"\sstyle=|<script|\son\w+=", svg)
