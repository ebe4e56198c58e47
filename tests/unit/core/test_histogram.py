import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.histogram import Histogram, level

PAIRS = st.lists(st.tuples(st.floats(0, 5000), st.floats(0.001, 3600)), max_size=40)


def build(pairs: list[tuple[float, float]]) -> Histogram:
    histogram = Histogram()
    for value, seconds in pairs:
        histogram.add(value, seconds)
    return histogram


def test_small_batch_sizes_stay_exact() -> None:
    assert [level(b) for b in (0, 1, 8, 64, 99)] == [0, 1, 8, 64, 99]
    assert level(1027) == 1000


def test_quantiles_weigh_time_not_counts() -> None:
    histogram = build([(8, 900), (64, 100)])
    assert histogram.quantile(0.5) == 8
    assert histogram.quantile(0.95) == 64
    assert histogram.mean() == pytest.approx(13.6)


def test_no_time_means_no_figure() -> None:
    empty = Histogram()
    assert (empty.quantile(0.5), empty.mean(), empty.max(), empty.share_at_least(1)) == (
        None,
        None,
        None,
        None,
    )


@given(PAIRS, PAIRS)
def test_merging_is_the_same_as_counting_together(
    first: list[tuple[float, float]], second: list[tuple[float, float]]
) -> None:
    merged = Histogram.merged([build(first), build(second)])
    assert merged.total_s == pytest.approx(build(first + second).total_s)
    assert merged.quantile(0.5) == build(first + second).quantile(0.5)


@given(PAIRS)
def test_text_keeps_levels_and_time(pairs: list[tuple[float, float]]) -> None:
    histogram = build(pairs)
    back = Histogram.from_json(histogram.to_json())
    assert set(back.seconds) == set(histogram.seconds)
    assert back.total_s == pytest.approx(histogram.total_s, abs=0.001 * len(pairs) + 1e-9)
