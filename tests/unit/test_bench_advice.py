"""Scores are counted as they say, and without captures the rows of the rules still speak."""

import pytest

from bench.advice import Case, cases, score, scores, table
from bench.advice_rows import data_folder
from core.finding import Range


def case(p10: float, p50: float, p90: float, measured: float, **more: object) -> Case:
    fields: dict[str, object] = {"neutral": None, "is_share": False, **more}
    return Case("g", "s", "n", Range(p10, p50, p90), measured, **fields)  # type: ignore[arg-type]


def test_errors_are_shares_of_the_measurement_or_points() -> None:
    assert case(0.9, 1.1, 1.2, 1.0).error == pytest.approx(0.1)
    assert case(0.0, 0.05, 0.1, 0.02, is_share=True).error == pytest.approx(0.03)


def test_a_wrong_sign_is_one_said_with_the_whole_range() -> None:
    assert case(1.1, 1.2, 1.3, 0.98, neutral=1.0).has_wrong_sign()
    assert not case(1.1, 1.2, 1.3, 0.98, neutral=1.0).has_wrong_sign(0.05)
    assert case(-0.3, -0.2, -0.1, 0.2, neutral=0.0).has_wrong_sign(0.05)
    assert not case(0.9, 1.2, 1.3, 0.5, neutral=1.0).has_wrong_sign()
    assert not case(1.1, 1.2, 1.3, 0.5).has_wrong_sign()


def test_a_score_says_whether_its_intervals_are_what_they_say() -> None:
    inside, outside = case(0.9, 1.0, 1.1, 1.0), case(0.9, 1.0, 1.1, 2.0)
    assert score("g", [inside] * 8 + [outside] * 2).verdict == "as it says"
    assert score("g", [inside] * 5 + [outside] * 5).verdict == "too narrow"
    assert score("g", [inside] * 10).verdict == "too wide"


def test_without_captures_the_rows_of_the_rules_are_scored_and_the_absence_is_said() -> None:
    found, (note,) = cases(None)
    assert "no folder of captures" in note
    own = scores(found)
    assert own["step time, dense on Hopper"].error <= 0.07
    assert own["gain, dense on Hopper"].error <= 0.08
    assert own["step time, dense on Hopper"].count == 22
    assert "| step time, dense on Hopper | 22 |" in table(found)


def test_the_environment_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("GPUWISE_BENCH_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.setenv("GPUWISE_BENCH_DATA", f"{tmp_path}/absent")
    assert data_folder() is None
