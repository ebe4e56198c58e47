"""Scores are counted as they say, what is held out is not seen, and without captures the rows of the rules still speak."""

from dataclasses import replace

import pytest

from bench.advice import calibration, held_out, score, scores, table
from bench.advice_cases import Case, cases, law_of, measurements
from bench.advice_held_out import (
    HeldOut,
    coverage,
    held_out_cards,
    held_out_models,
    mixture_terms,
    once,
    width,
)
from bench.advice_rows import SIXTEEN, CapRow, Row, Series, data_folder
from catalog import gpu_specs, llm_models
from core.finding import Range


def case(p10: float, p50: float, p90: float, measured: float, **more: object) -> Case:
    fields: dict[str, object] = {"subject": "m", "neutral": None, "is_share": False, **more}
    return Case("g", "s", fields.pop("subject"), "n", Range(p10, p50, p90), measured, **fields)  # type: ignore[arg-type]


def mixture(model: str, ranks: int, layer_s: float, sequence_s: float) -> Series:
    """A mixture whose steps are the formula's, but for what its layers and sequences add per doubling of ranks."""
    llm, spec = llm_models.resolve(model), gpu_specs.by_key("H100-SXM5-80GB")
    assert llm is not None
    assert spec is not None
    rows = tuple(Row(batch, 0.0, 700.0, 0.4) for batch in (8.0, 32.0, 128.0))
    series = Series("simulated", model, llm, spec, ranks, SIXTEEN, rows)
    doublings = {1: 0, 2: 1, 4: 2, 8: 3}[ranks]

    def measured(row: Row) -> float:
        added = (layer_s - 45e-6) * llm.layers + (sequence_s - 11e-6) * row.batch
        return law_of(series, row).step_s(row.batch) + added * doublings

    return replace(series, rows=tuple(replace(row, step_s=measured(row)) for row in rows))


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
    inside, outside = case(0.9, 1.0, 1.1, 1.0), case(0.9, 1.0, 1.1, 2.0, subject="another")
    assert score("g", [inside] * 8 + [outside] * 2).verdict == "as it says"
    assert score("g", [inside] * 5 + [outside] * 5).verdict == "too narrow"
    assert score("g", [inside] * 19 + [outside]).verdict == "too wide"
    assert "too few" in score("g", [inside] * 8).verdict


def test_a_width_counts_models_not_rows_and_is_wider_with_few_of_them() -> None:
    many_rows = {"a": [0.01] * 100, **{name: [0.1] for name in "bcdefghi"}, "j": [0.5]}
    assert width(many_rows) == 0.1, "nine models in ten, and 0.88 is asked of ten"
    assert width({name: [0.1] for name in "abc"} | {"d": [0.5]}) == 0.5, "of four models all are asked"


def test_the_terms_of_mixtures_are_found_again() -> None:
    every = [
        mixture("qwen3-30b-a3b", 2, 60e-6, 20e-6),
        mixture("qwen3-235b-a22b", 8, 60e-6, 20e-6),
    ]
    assert mixture_terms(every) == (pytest.approx(60e-6), pytest.approx(20e-6))
    assert mixture_terms([mixture("qwen3-30b-a3b", 1, 60e-6, 20e-6)]) == (0.0, 0.0)


def test_a_model_left_out_is_judged_by_terms_it_had_no_part_in() -> None:
    """Three mixtures agree, the fourth adds ten times as much: it is not held, however well it would fit itself."""
    alike = [
        mixture(name, 8, 60e-6, 20e-6)
        for name in ("qwen3-30b-a3b", "qwen3-235b-a22b", "llama-4-scout-17b-16e")
    ]
    other = mixture("llama-4-maverick-17b-128e", 8, 600e-6, 200e-6)
    folds = {fold.subject: fold for fold in held_out_models([*alike, other]) if fold.group.startswith("step")}
    assert folds[other.llm.model_key].held == 0
    assert folds[other.llm.model_key].fitted == pytest.approx(0.0, abs=1e-6)
    assert all(folds[series.llm.model_key].held == 3 for series in alike)


def test_two_models_are_too_few_to_leave_one_out() -> None:
    two = [mixture("qwen3-30b-a3b", 2, 6e-5, 2e-5), mixture("qwen3-235b-a22b", 8, 6e-5, 2e-5)]
    assert held_out_models(two) == []


def test_the_noise_of_one_card_judges_the_other() -> None:
    """Where the curve says +12 [7..23] %: one card's rows lie on its low end, the other's 10 points below it."""
    rows = [CapRow("steady", 75.0, 100.0, 0.07, -0.2)] * 5 + [CapRow("wild", 75.0, 100.0, -0.03, -0.2)] * 5
    steady, wild = held_out_cards(rows)
    assert (wild.subject, wild.fitted, wild.held) == ("wild", 0.0, 0)
    assert steady.fitted > 0.09
    assert steady.held == 5
    assert coverage([steady, wild]) == 0.5
    assert held_out_cards(rows[:5]) == []


def test_rows_that_the_rules_repeat_are_calibrated_on_once() -> None:
    one = mixture("qwen3-30b-a3b", 2, 6e-5, 2e-5)
    again = replace(one, source="rules 2.4")
    assert once([again, one]) == [one]
    assert once([again]) == [again]


def test_without_captures_the_rows_of_the_rules_are_scored_and_the_absence_is_said() -> None:
    at_hand = measurements(None)
    found = cases(at_hand)
    assert "no folder of captures" in at_hand.notes[0]
    own = scores(found)
    assert own["step time, dense on Hopper"].error <= 0.07
    assert own["gain, dense on Hopper"].error <= 0.08
    assert own["step time, dense on Hopper"].count == 22
    folds = held_out(at_hand)
    assert "| step time, dense on Hopper | 22 | 4 |" in table(found, folds)
    assert "Held out, step time, dense on Hopper" in calibration(at_hand, folds)


def test_the_table_shows_what_was_held_out_beside_its_group() -> None:
    folds = {"g": [HeldOut("g", "a", 0.1, 3, 4)]}
    assert "| 75 % | 0 | 0 |" in table([case(0.9, 1.0, 1.1, 1.0)], folds)


def test_the_environment_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("GPUWISE_BENCH_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.setenv("GPUWISE_BENCH_DATA", f"{tmp_path}/absent")
    assert data_folder() is None
