"""A packed chart is the mapping it was made of, to the type of each value."""

import pickle
from array import array

import pytest

from core.chart import PackedChart
from core.units import HOUR_MS
from store.finding_json import _wrap


def _plain(times_ms: list[int], values: list[float]) -> dict[str, object]:
    series = [list(point) for point in zip(times_ms, values, strict=True)]
    return {"kind": "time", "series": series, "unit": "W", "threshold": 71.0}


@pytest.mark.parametrize(
    ("times_ms", "values"),
    [
        ([], []),
        ([5 * HOUR_MS], [1.5]),
        ([at * HOUR_MS for at in range(48)], [at / 7 for at in range(48)]),
        ([0, HOUR_MS, 3 * HOUR_MS], [1.0, 2.0, 3.0]),  # an hour without data has no point
        ([0, 0, HOUR_MS], [1.0, 2.0, 3.0]),
        ([0, HOUR_MS], [1, 2]),  # whole numbers stay whole in JSON
    ],
)
def test_it_is_the_same_as_the_plain_mapping(times_ms: list[int], values: list[float]) -> None:
    chart, plain = PackedChart(times_ms, values, "W", 71.0), _plain(times_ms, values)
    assert chart == plain
    assert list(chart) == list(plain)
    assert str(_wrap(chart)) == str(plain)
    assert str(dict(pickle.loads(pickle.dumps(chart)))) == str(plain)


def test_a_profile_says_what_it_is_over() -> None:
    chart = PackedChart([0.0, 1.0], [0.5, 0.25], "ratio", 0.7, "hour of the week")
    plain = {
        "kind": "profile",
        "series": [[0.0, 0.5], [1.0, 0.25]],
        "unit": "ratio",
        "x_unit": "hour of the week",
        "threshold": 0.7,
    }
    assert str(dict(chart)) == str(plain)
    assert chart.with_points([2.0], [0.5]) == plain | {"series": [[2.0, 0.5]]}


def test_its_points_can_be_changed_without_changing_it() -> None:
    chart = PackedChart([0, HOUR_MS], [1.0, 2.0], "W", None)
    chart["series"].clear()
    assert len(chart["series"]) == 2


def test_points_of_a_fortnight_take_eight_bytes_each() -> None:
    chart = PackedChart(range(0, 336 * HOUR_MS, HOUR_MS), array("d", range(336)), "W", None)
    assert len(pickle.dumps(chart)) < 336 * 8 + 400


def test_it_has_no_other_parts() -> None:
    with pytest.raises(KeyError):
        PackedChart([], [], "W", None)["x_unit"]
    with pytest.raises(KeyError):
        PackedChart([], [], "W", None)["xs"]
