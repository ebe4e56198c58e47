"""What the intervals hold of models and cards that nobody calibrated them on.

Rows of one model are alike, so a width that holds 80 % of the *rows* at hand says little about the next model. Each model
in turn is left out; what the formula adds for mixtures and the width are fitted on the others, and the width is judged by
the rows of the one left out. The width is the quantile of the others' errors, each model with the same weight, at
0.8·(n + 1)/n for n models: with few of them the next one may well be worse than all (conformal prediction for
hierarchical data, Lee, Barber and Willett, arXiv 2306.06342). What ships is the same fit on all, rounded.

Of a power cap the noise of two runs is what is fitted: the least with which 80 % of one card's rows are held; the other
card's rows judge it. The curve itself is published, and not of the A40.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import Final

from advisor.estimators import decode_step, power_cap
from advisor.estimators.decode_step import DecodeStep
from bench.advice_cases import DENSE, ELSEWHERE, law_of, measured_gain, where
from bench.advice_rows import CapRow, Row, Series
from core.finding import Range

TARGET: Final = 0.8
NOISES: Final = tuple(step / 400 for step in range(41))
"""Candidates for the noise of two runs: 0 to 10 % by quarters of a point."""

Terms = tuple[float, float]
"""Seconds that a mixture's layer and its sequence add per doubling of ranks."""
Errors = Mapping[str, Sequence[float]]
"""By model: what half-width would just hold each row."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """One subject left out of a calibration.

    Attributes:
        group: what is predicted, and where. subject: the model or card.
        fitted: the width (of a cap: the noise) by the others. held, count: rows of the subject within it, and all.
    """

    group: str
    subject: str
    fitted: float
    held: int
    count: int


def coverage(folds: Iterable[HeldOut]) -> float:
    """Share of rows held when their subject was left out."""
    every = list(folds)
    return sum(fold.held for fold in every) / sum(fold.count for fold in every)


def once(every: Iterable[Series]) -> list[Series]:
    """Without rows that the rules repeat from another source."""
    found = list(every)
    elsewhere = {series.llm.model_key for series in found if series.source != "rules 2.4"}
    return [s for s in found if s.source != "rules 2.4" or s.llm.model_key not in elsewhere]


def mixture_terms(every: Sequence[Series]) -> Terms:
    """Least squares of relative residuals, each mixture with the same weight; (0, 0) without any on several ranks."""
    spread = [series for series in every if series.llm.is_moe and series.ranks > 1]
    rows_of: dict[str, int] = {}
    for series in spread:
        rows_of[series.llm.model_key] = rows_of.get(series.llm.model_key, 0) + len(series.rows)
    layer2 = cross = sequence2 = layer_y = sequence_y = 0.0
    for series in spread:
        doublings = log2(series.ranks)
        for row in series.rows:
            weight = 1 / row.step_s**2 / rows_of[series.llm.model_key]
            layer, sequence = series.llm.layers * doublings, row.batch * doublings
            residual = row.step_s - _with(law_of(series, row), series, (0.0, 0.0)).step_s(row.batch)
            layer2 += weight * layer * layer
            cross += weight * layer * sequence
            sequence2 += weight * sequence * sequence
            layer_y += weight * layer * residual
            sequence_y += weight * sequence * residual
    determinant = layer2 * sequence2 - cross * cross
    if determinant <= 0:
        return 0.0, 0.0
    return (
        (layer_y * sequence2 - sequence_y * cross) / determinant,
        (layer2 * sequence_y - cross * layer_y) / determinant,
    )


def width(errors: Errors) -> float:
    """Half-width that holds a row of the next model four times out of five."""
    models = len(errors)
    level = min(1.0, TARGET * (models + 1) / models)
    weighted = sorted((error, 1 / len(own) / models) for own in errors.values() for error in own)
    held = 0.0
    for error, weight in weighted:
        held += weight
        if held >= level - 1e-9:
            return error
    return weighted[-1][0]


def step_errors(every: Sequence[Series], terms: Terms) -> dict[str, list[float]]:
    """Of step times, by model."""
    found: dict[str, list[float]] = {}
    for series in every:
        own = found.setdefault(series.llm.model_key, [])
        own += [abs(row.step_s / _law(series, row, terms).step_s(row.batch) - 1) for row in series.rows]
    return found


def gain_errors(every: Sequence[Series], terms: Terms) -> dict[str, list[float]]:
    """Of gains, over the share 1 − now/then that such a width grows with."""
    found: dict[str, list[float]] = {}
    for series in every:
        own = found.setdefault(series.llm.model_key, [])
        first = series.rows[0]
        for row in series.rows[1:]:
            law = _law(series, row, terms)
            predicted = law.tokens_per_s(row.batch) / law.tokens_per_s(first.batch)
            off = abs(measured_gain(first, row) / predicted - 1)
            own.append(off / (1 - first.batch / row.batch))
    return {model: own for model, own in found.items() if own}


ERRORS: Final = {"step time": step_errors, "gain": gain_errors}


def fitted_widths(every: Sequence[Series]) -> dict[str, float]:
    """By group, on all that is at hand: what ships is this, rounded."""
    found = once(every)
    terms = mixture_terms(found)
    return {
        f"{what}, {place}": width(errors([s for s in found if where(s) == place], terms))
        for place in (DENSE, ELSEWHERE)
        if any(where(s) == place for s in found)
        for what, errors in ERRORS.items()
    }


def held_out_models(every: Sequence[Series]) -> list[HeldOut]:
    """Each model left out once, of each group with at least three of them."""
    found, folds = once(every), []
    for place in (DENSE, ELSEWHERE):
        own = [series for series in found if where(series) == place]
        models = sorted({series.llm.model_key for series in own})
        for model in models if len(models) > 2 else ():
            others = [series for series in own if series.llm.model_key != model]
            mine = [series for series in own if series.llm.model_key == model]
            terms = mixture_terms(others)
            for what, errors in ERRORS.items():
                fitted = width(errors(others, terms))
                rows = errors(mine, terms).get(model, [])
                held = sum(error <= fitted for error in rows)
                folds.append(HeldOut(f"{what}, {place}", model, fitted, held, len(rows)))
    return folds


def held_out_cards(rows: Sequence[CapRow]) -> list[HeldOut]:
    """Each card left out once."""
    folds = []
    for board in sorted({row.board for row in rows}):
        mine, others = _times(rows, board, own=True), _times(rows, board, own=False)
        if not others:
            continue
        fitted = next((each for each in NOISES if _held(others, each) >= TARGET * len(others)), NOISES[-1])
        folds.append(HeldOut("power cap, added time", board, fitted, _held(mine, fitted), len(mine)))
    return folds


def _law(series: Series, row: Row, terms: Terms) -> DecodeStep:
    return _with(law_of(series, row), series, terms)


def _with(law: DecodeStep, series: Series, terms: Terms) -> DecodeStep:
    """The law with other terms for mixtures."""
    if not series.llm.is_moe:
        return law
    doublings = log2(series.ranks)
    layer_s, sequence_s = terms[0] - decode_step.MIXTURE_LAYER_S, terms[1] - decode_step.MIXTURE_SEQUENCE_S
    return replace(
        law,
        fixed_s=law.fixed_s + layer_s * series.llm.layers * doublings,
        sequence_s=law.sequence_s + sequence_s * doublings,
    )


def _times(rows: Sequence[CapRow], board: str, *, own: bool) -> list[tuple[Range, float]]:
    """The published spread of added time, without noise, beside the measured one."""
    return [
        (power_cap.published_time(row.cap_w / row.uncapped_w), row.time_ratio)
        for row in rows
        if (row.board == board) == own
    ]


def _held(times: Sequence[tuple[Range, float]], noise: float) -> int:
    ranges = [(power_cap.of_one_trial(spread, noise), measured) for spread, measured in times]
    return sum(each.p10 <= measured <= each.p90 for each, measured in ranges)
