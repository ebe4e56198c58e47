"""The power curve: its published points, its refusal, its laws, and its error on every public row at hand."""

import csv
import gzip
import math
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.estimators.power_cap import (
    LEAST_RATIO,
    RUN_NOISE,
    money_test,
    of_one_trial,
    power_cap,
    published_time,
)
from core.finding import Range

RATIOS = st.floats(LEAST_RATIO, 3.0)


def effect(ratio: float):
    found = power_cap(cap_w=ratio * 500, uncapped_mean_w=500)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("ratio", "time", "energy"), [(0.75, 0.12, -0.21), (0.85, 0.067, -0.17), (0.95, 0.032, -0.12)]
)
def test_the_middle_of_a_bin_is_the_published_median(ratio: float, time: float, energy: float) -> None:
    assert effect(ratio).time_ratio.p50 == pytest.approx(time)
    assert effect(ratio).energy_ratio.p50 == pytest.approx(energy)


@pytest.mark.parametrize(("cap_w", "mean_w"), [(340.0, 500.0), (0.0, 500.0), (400.0, 0.0), (-1.0, 500.0)])
def test_below_seven_tenths_and_without_a_power_there_is_no_answer(cap_w: float, mean_w: float) -> None:
    assert power_cap(cap_w=cap_w, uncapped_mean_w=mean_w) is None


def test_a_cap_far_above_the_draw_costs_no_time_but_what_two_runs_differ_by() -> None:
    assert effect(2.0).time_ratio == Range(0.0, 0.0, RUN_NOISE)


def test_the_noise_of_two_runs_widens_a_range_in_quadrature() -> None:
    trial = of_one_trial(Range(0.07, 0.10, 0.16), noise=0.04)
    assert trial.p10 == pytest.approx(0.05)
    assert trial.p50 == 0.10
    assert trial.p90 == pytest.approx(0.10 + math.hypot(0.06, 0.04))
    assert of_one_trial(Range(0.01, 0.02, 0.05), noise=0.1).p10 == 0.0
    assert published_time(0.75) == Range(0.07, 0.12, 0.23)


@given(RATIOS, RATIOS)
def test_a_lower_cap_never_runs_faster_and_its_range_is_in_order(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert effect(low).time_ratio.p50 >= effect(high).time_ratio.p50 - 1e-12
    assert effect(low).time_ratio.p10 >= 0
    assert effect(low).energy_ratio.p10 > -1


def test_the_money_test_weighs_energy_against_time_to_the_cent() -> None:
    """R22: at 2 USD/h and 0.10 USD/kWh a 6.7 % slowdown costs about ten times what it saves."""
    month = money_test(
        effect(0.85),
        energy_j_month=0.5 * 730 * 3.6e6,
        busy_h_month=730,
        usd_per_kwh=0.10,
        pue=1.3,
        usd_per_gpu_hour=2,
    )
    assert round(month.energy_usd_month, 2) == 8.07
    assert round(month.time_usd_month, 2) == 97.82
    assert month.net_usd_month == pytest.approx(8.0665 - 97.82)
    assert 9 < month.time_usd_month / month.energy_usd_month < 13


@pytest.mark.shared_data
def test_added_time_is_within_four_points_on_the_public_rows(shared_data: Path) -> None:
    folder = shared_data / "zeus_nsdi23"
    if not folder.is_dir():
        pytest.skip("the Zeus power summaries are not here")
    errors: list[float] = []
    for path in sorted(folder.glob("summary_power_*.csv.gz")):
        runs: dict[tuple[str, ...], list[tuple[float, float, float]]] = defaultdict(list)
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                key = (row["dataset"], row["network"], row["batch_size"], row["optimizer"])
                runs[key].append(
                    (float(row["power_limit"]), float(row["time_per_epoch"]), float(row["average_power"]))
                )
        for points in runs.values():
            _, free_s, free_w = max(points)
            for limit_w, seconds, _ in points:
                if 0.75 <= limit_w / free_w <= 1.1:
                    found = power_cap(cap_w=limit_w, uncapped_mean_w=free_w)
                    assert found is not None
                    errors.append(abs(seconds / free_s - 1 - found.time_ratio.p50))
    assert len(errors) > 150
    assert sum(errors) / len(errors) <= 0.04
