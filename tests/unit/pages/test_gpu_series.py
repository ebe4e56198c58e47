"""A GPU's series: what folds to which step, what held clocks back, who held memory, and what the titles conclude."""

from dataclasses import replace
from decimal import Decimal

import pytest

from api.pages import gpu_said, gpu_slowed
from api.pages.gpu import links
from api.pages.gpu_charts import slowed_lanes
from api.pages.gpu_memory import OTHERS, UNNAMED, layers
from api.pages.gpu_money import other_rate
from api.pages.gpu_series import MOST, from_hours, from_samples, hour_step_for, step_for
from core.activity import Activity
from core.evidence import Price, Window
from core.hours import GpuHour
from core.units import DAY_MS, GIB, HOUR_MS
from store.queries.gpu_trace import Held
from tests.contract import page_fixtures as good

HOUR = Window(good.WINDOW.to_ms - HOUR_MS, good.WINDOW.to_ms)


def test_a_window_never_has_more_points_than_a_chart_can_show() -> None:
    for hours in (0.1, 1, 6, 24, 26):
        window = Window(0, int(hours * HOUR_MS))
        assert (window.to_ms - window.from_ms) / step_for(window) <= MOST


def test_folded_samples_keep_mean_highest_and_seconds() -> None:
    samples = [
        good.sample(i, Activity.BUSY, power_w=100.0 + i % 2 * 50, power_max_w=100.0 + i) for i in range(6)
    ]
    series = from_samples(samples, Window(good.WINDOW.to_ms - HOUR_MS, good.WINDOW.to_ms + 11 * HOUR_MS))
    assert series.step_ms == 60_000
    (point,) = series.points
    assert point.values["power_w"] == pytest.approx(125.0)
    assert point.values["power_max_w"] == 105.0
    assert point.seconds == {Activity.BUSY: 60.0}


def test_a_pause_becomes_an_unknown_point() -> None:
    samples = [good.sample(i, Activity.BUSY, power_w=100.0) for i in (0, 1, 5)]
    points = from_samples(samples, HOUR).with_gaps()
    assert [point.values.get("power_w") for point in points] == [100.0, 100.0, None, 100.0]


def test_an_unknown_value_stays_unknown_when_folded() -> None:
    series = from_samples([good.sample(0, Activity.UNKNOWN)], HOUR)
    assert series.points[0].values == {}


def test_traffic_of_a_link_is_known_where_both_directions_are() -> None:
    samples = [
        good.sample(0, Activity.BUSY, pcie_rx_bytes_per_s=2e9),
        good.sample(1, Activity.BUSY, pcie_rx_bytes_per_s=2e9, pcie_tx_bytes_per_s=1e9),
    ]
    points = from_samples(samples, HOUR).points
    assert [point.values.get("pcie_bytes_per_s") for point in points] == [None, 3e9]


def test_a_sample_longer_than_the_step_stays_where_it_is() -> None:
    long = [
        replace(
            good.sample(0, Activity.PARKED, power_w=90.0),
            ts_ms=HOUR.from_ms + i * 300_000,
            span_ms=300_000,
            covered_ms=300_000,
        )
        for i in range(3)
    ]
    short = [replace(good.sample(0, Activity.PARKED, power_w=90.0), ts_ms=HOUR.from_ms + 900_000)]
    series = from_samples([*long, *short], HOUR)
    assert [p.ts_ms - HOUR.from_ms for p in series.points] == [0, 300_000, 600_000, 900_000]
    assert None not in [p.values.get("power_w") for p in series.with_gaps()]


def test_no_samples_make_no_points() -> None:
    assert from_samples([], HOUR).points == ()
    assert from_hours([], HOUR).points == ()


def hour(i: int, **changes: object) -> GpuHour:
    base = GpuHour(
        "GPU-0",
        good.WINDOW.from_ms + i * HOUR_MS,
        3600.0,
        {Activity.BUSY: 3600.0},
        {},
        None,
        None,
        0.0,
        3600.0,
        3600.0,
        0.0,
        3600.0,
        power_w=200.0,
        power_max_w=300.0 + i,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def test_far_views_fold_hours_so_that_no_chart_has_more_points_than_it_can_show() -> None:
    for days in (2, 30, 90, 180, 400):
        window = Window(0, days * DAY_MS)
        assert days * DAY_MS / hour_step_for(window) <= MOST + 1
    start = good.WINDOW.from_ms - good.WINDOW.from_ms % (6 * HOUR_MS)
    hours = [replace(hour(0, power_w=100.0 + i), hour_ms=start + i * HOUR_MS) for i in range(12)]
    series = from_hours(hours, Window(start, start + 90 * DAY_MS))
    assert [point.values["power_w"] for point in series.points] == [102.5, 108.5]
    assert series.points[0].covered_s == 6 * 3600
    assert series.source == "one point for 6 hours"


def test_links_are_both_directions_together_and_unknown_with_neither() -> None:
    series = from_samples(
        [good.sample(0, Activity.BUSY, pcie_rx_bytes_per_s=2.0, pcie_tx_bytes_per_s=3.0)], HOUR
    )
    assert series.points[0].values["pcie_bytes_per_s"] == 5.0
    assert "nvlink_bytes_per_s" not in series.points[0].values


@pytest.mark.parametrize(
    ("values", "reasons"),
    [
        ({"event_reasons_flags": 0x00}, {}),
        ({"event_reasons_flags": 0x01}, {}),
        ({"event_reasons_flags": 0x04}, {"power_cap": 10.0}),
        ({"event_reasons_flags": 0x08}, {"hardware": 10.0}),
        ({"event_reasons_flags": 0x48}, {"heat_hardware": 10.0}),
        ({"event_reasons_flags": 0x04, "slowed_power_cap_s": 2.5}, {"power_cap": 2.5}),
        ({"slowed_sync_boost_s": 99.0}, {"sync_boost": 10.0}),
        ({"event_reasons_flags": 0x04, "slowed_power_cap_s": 0.0}, {}),
    ],
)
def test_what_held_clocks_back_is_counted_exactly_where_it_can_be(
    values: dict[str, float], reasons: dict[str, float]
) -> None:
    assert gpu_slowed.of_sample(good.sample(0, Activity.BUSY, **values)) == reasons
    assert gpu_slowed.is_told(values)


def test_idle_is_no_reason_and_silence_is_not_free_running() -> None:
    told = from_samples([good.sample(0, Activity.BUSY, event_reasons_flags=1.0, sm_clock_hz=1e9)], HOUR)
    silent = from_samples([good.sample(0, Activity.BUSY, sm_clock_hz=1e9)], HOUR)
    assert gpu_said.clocks(told).startswith("Nothing held the clocks back")
    assert gpu_said.clocks(silent) == "Nothing tells whether clocks were held back"


def test_each_kind_of_slowdown_has_a_lane_with_its_words() -> None:
    samples = [
        good.sample(0, Activity.BUSY, event_reasons_flags=float(0x04)),
        good.sample(1, Activity.BUSY, event_reasons_flags=float(0x04)),
        good.sample(5, Activity.BUSY, event_reasons_flags=float(0x40)),
    ]
    svg = str(slowed_lanes(from_samples(samples, HOUR)))
    assert svg.count('class="t-power"') == 1, "neighbours are one piece"
    assert svg.count('class="t-heat"') == 1
    assert ">power</text>" in svg
    assert "heat (by the hardware), 100\xa0% of the time" in svg
    assert slowed_lanes(from_samples([good.sample(0, Activity.BUSY)], HOUR)) is None


def test_far_hours_tell_power_from_heat() -> None:
    series = from_hours([hour(0, slowed_power_s=900.0, slowed_thermal_s=60.0)], good.WINDOW)
    assert series.points[0].slowed == {"hour_power": 900.0, "hour_heat": 60.0}
    assert gpu_said.clocks(series) == "Clocks were held back 25\xa0% of the time by the power or board limit"


def held(start_ms: int, key: int, gib: float, seconds: float = 10.0) -> Held:
    return Held(start_ms, key, gib * GIB * seconds)


def test_memory_is_stacked_by_name_and_what_no_process_names_is_a_layer() -> None:
    samples = [good.sample(i, Activity.BUSY, memory_used_bytes=70.0 * GIB) for i in (0, 1, 5)]
    series = from_samples(samples, HOUR)
    starts = [point.ts_ms for point in series.points]
    rows = (
        [held(t, 1, 20.0) for t in starts] + [held(t, 2, 15.0) for t in starts] + [held(starts[0], 3, 30.0)]
    )
    found = layers(series, rows, {1: "a", 2: "a", 3: "b"})
    assert [(area.name, area.values) for area in found.areas] == [
        ("a", (35.0, 35.0, None, 35.0)),
        ("b", (30.0, 0.0, None, 0.0)),
        (UNNAMED, (5.0, 35.0, None, 35.0)),
    ]
    assert found.largest == "a"
    assert gpu_said.memory(series, found, 80.0 * GIB) == "Up to 70 of 80\xa0GiB held, most by a"


def test_the_smaller_ones_share_a_layer() -> None:
    series = from_samples([good.sample(0, Activity.BUSY, memory_used_bytes=28.0 * GIB)], HOUR)
    start = series.points[0].ts_ms
    found = layers(series, [held(start, i, float(i)) for i in range(1, 8)], {i: f"w{i}" for i in range(1, 8)})
    assert [area.name for area in found.areas] == ["w7", "w6", "w5", "w4", "w3", OTHERS]
    assert found.areas[-1].values == (3.0,)


def test_the_headline_says_what_ran_and_what_of_the_money_did_not() -> None:
    parked = from_samples([good.sample(i, Activity.PARKED) for i in range(3)], HOUR)
    mixed = from_samples([good.sample(i, Activity.PARKED if i else Activity.BUSY) for i in range(4)], HOUR)
    blind = from_samples([good.sample(0, Activity.UNKNOWN)], HOUR)
    cost = Decimal("10.00")
    assert gpu_said.headline("G", parked, cost, cost) == (
        "G did nothing all the time and cost $10.00.",
        "All of it bought hours in which nothing ran.",
    )
    assert gpu_said.headline("G", mixed, cost, Decimal("7.50")) == (
        "G did nothing 75\xa0% of the time and cost $10.00.",
        "$7.50 of it bought hours in which nothing ran.",
    )
    assert gpu_said.headline("G", mixed, None, None) == ("G did nothing 75\xa0% of the time", "")
    assert gpu_said.headline("G", blind, cost, None)[0] == "G: what it did cannot be told"
    assert gpu_said.headline("G", from_samples([], HOUR), None, None)[0] == "G: no samples in this period"


def test_the_rate_is_said_only_where_the_price_of_now_does_not_explain_the_cost() -> None:
    price = Price(Decimal("2.00"), "x", "on_demand", 1, "2026-01-01", from_user=True)
    assert other_rate(Decimal("48.00"), 24.0, price) is None
    assert other_rate(Decimal("60.00"), 24.0, price) == Decimal("2.50")
    assert other_rate(None, 24.0, price) is None


def test_links_move_by_a_whole_window_and_never_past_the_newest_sample() -> None:
    newest = HOUR.to_ms
    at_end = links("/gpus/G", HOUR, newest)
    assert at_end.later is None
    assert "22%3A00%3A00" in at_end.earlier
    assert "23%3A15%3A00" in (at_end.closer or "")
    before = links("/gpus/G", Window(HOUR.from_ms - HOUR_MS, HOUR.from_ms), newest)
    assert "until=2025-11-20T00%3A00%3A00" in (before.later or "")
    assert links("/gpus/G", Window(newest - 90_000, newest), newest).closer is None
