"""The scoreboard of the estimators holds its thresholds on every public measurement at hand (``bench/advice.py``)."""

from functools import cache
from pathlib import Path

import pytest

from advisor.estimators import decode_step
from bench.advice import ALL, BAND, NOISE, Score, held_out, scores
from bench.advice_cases import DENSE, ELSEWHERE, Case, Measurements, cases, measurements
from bench.advice_held_out import HeldOut, coverage, fitted_widths, mixture_terms, once

MOST_ERROR = {
    "step time, dense on Hopper": 0.07,
    "gain, dense on Hopper": 0.08,
    "power cap, added time": 0.04,
}
"""Section 8 of the advisor rules: shares of the measurement; of the cap points."""
HELD_OUT = (
    f"step time, {DENSE}",
    f"gain, {DENSE}",
    f"step time, {ELSEWHERE}",
    f"gain, {ELSEWHERE}",
    "power cap, added time",
)
"""Groups whose widths are fitted to models or cards at hand."""
GROUPS = (
    *HELD_OUT,
    "power cap, energy",
    "step time, fitted on site",
    "gain, fitted on site",
    ALL,
)
pytestmark = pytest.mark.shared_data


@cache
def at_hand(folder: Path) -> Measurements:
    return measurements(folder)


@cache
def found(folder: Path) -> list[Case]:
    return cases(at_hand(folder))


@cache
def scored(folder: Path) -> dict[str, Score]:
    return scores(found(folder))


@cache
def folds(folder: Path) -> dict[str, list[HeldOut]]:
    return held_out(at_hand(folder))


@pytest.mark.parametrize("group", MOST_ERROR)
def test_mean_errors_are_within_those_of_the_rules(shared_data: Path, group: str) -> None:
    own = scored(shared_data)[group]
    assert own.count > 90
    assert own.error <= MOST_ERROR[group]


@pytest.mark.parametrize("group", GROUPS)
def test_eighty_percent_intervals_hold_75_to_90_percent(shared_data: Path, group: str) -> None:
    own = scored(shared_data)[group]
    assert own.subjects > 1
    assert BAND[0] <= own.coverage <= BAND[1]


@pytest.mark.parametrize("group", HELD_OUT)
def test_intervals_hold_75_to_90_percent_of_what_they_were_not_fitted_on(
    shared_data: Path, group: str
) -> None:
    assert BAND[0] <= coverage(folds(shared_data)[group]) <= BAND[1]


def test_what_ships_is_what_the_fits_give(shared_data: Path) -> None:
    layer_s, sequence_s = mixture_terms(once(at_hand(shared_data).series))
    assert layer_s == pytest.approx(decode_step.MIXTURE_LAYER_S, rel=0.03)
    assert sequence_s == pytest.approx(decode_step.MIXTURE_SEQUENCE_S, rel=0.05)
    widths = fitted_widths(at_hand(shared_data).series)
    for place, width in (
        (DENSE, decode_step.HALF_WIDTH_DENSE_HOPPER),
        (ELSEWHERE, decode_step.HALF_WIDTH_HOPPER),
    ):
        assert widths[f"step time, {place}"] == pytest.approx(width, rel=0.03)
        assert widths[f"gain, {place}"] == pytest.approx(decode_step.GAIN_WIDTH * width, rel=0.08)


def test_no_sign_is_wrong_with_confidence(shared_data: Path) -> None:
    """Gains of a batch or of 8 bits never; time and energy under a cap within what two runs differ by anyway."""
    assert [case.name for case in found(shared_data) if case.has_wrong_sign(NOISE)] == []
    signs = [case for case in found(shared_data) if case.group.startswith(("gain", "speed-up"))]
    assert len(signs) > 300
    assert [case.name for case in signs if case.has_wrong_sign()] == []


def test_rows_of_one_model_are_said_to_be_too_few(shared_data: Path) -> None:
    assert "too few" in scored(shared_data)["speed-up by 8-bit weights"].verdict


def test_what_cannot_be_estimated_is_refused_by_name(shared_data: Path) -> None:
    notes = at_hand(shared_data).notes
    assert any("Nemotron" in note for note in notes)
    assert any("share the GPU" in note for note in notes)


def test_every_source_is_in_the_scoreboard(shared_data: Path) -> None:
    assert {series.source for series in at_hand(shared_data).series} == {"rules 2.4", "mlenergy", "bsc"}
    assert {row.board for row in at_hand(shared_data).caps} == {"a40", "rtx6000"}
