"""How right the estimators are: error, interval coverage and sign errors on public measurements (``python -m bench.advice``).

A *case* is a prediction as the advisor would make it (p10, p50, p90) beside what was measured. Scores by group:

- error: mean of |p50 ÷ measured − 1|; of shares (added time, energy) mean of |p50 − measured| in points.
- coverage: share of cases with p10 ≤ measured ≤ p90. An 80 % interval should hold 75 to 90 % of them; more means that it
  is wider than it has to be, fewer that it promises too much. Where all cases are of one model or card nothing is said of it.
- held out: the same of models and cards that were left out when widths were fitted (``bench/advice_held_out.py``).
- wrong signs: the whole range on one side of no effect, the measurement on the other. Counted twice: all of them, and
  those beyond the noise of the measurements. None beyond the noise is allowed.

The noise is that of the power rows: where the cap is out of the work's reach (above 1.3 of its power) energy still
differs by −7 to +5 % between two runs (advisor-rules R22).
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from bench.advice_cases import Case, Measurements, cases, measurements
from bench.advice_held_out import (
    HeldOut,
    coverage,
    fitted_widths,
    held_out_cards,
    held_out_models,
    mixture_terms,
    once,
)
from bench.advice_rows import data_folder
from bench.measure import Figure, shown
from core.percent import percent

ALL: Final = "all intervals"
NOISE: Final = 0.05
"""A measurement this close to no effect may be none."""
BAND: Final = (0.75, 0.90)
"""Share of cases that an 80 % interval should hold."""


@dataclass(frozen=True, slots=True)
class Score:
    """Of one group of cases; ``subjects`` are the models or cards behind them."""

    group: str
    count: int
    subjects: int
    error: float
    coverage: float
    wrong_signs: int
    beyond_noise: int

    @property
    def verdict(self) -> str:
        """Whether the interval is what it says."""
        low, high = BAND
        if self.subjects < 2:
            return "of one only: too few to say"
        return "too narrow" if self.coverage < low else "too wide" if self.coverage > high else "as it says"


def score(group: str, found: Sequence[Case]) -> Score:
    """Of cases of one kind."""
    return Score(
        group,
        len(found),
        len({case.subject for case in found}),
        fmean(case.error for case in found),
        fmean(case.is_covered for case in found),
        sum(case.has_wrong_sign() for case in found),
        sum(case.has_wrong_sign(NOISE) for case in found),
    )


def scores(found: Sequence[Case]) -> dict[str, Score]:
    """By group, and by group and part where a group has several."""
    groups: dict[str, list[Case]] = {}
    for case in found:
        groups.setdefault(case.group, []).append(case)
        groups.setdefault(ALL, []).append(case)
    for group, own in [(group, own) for group, own in groups.items() if group != ALL]:
        parts = sorted({case.part for case in own})
        for part in parts if len(parts) > 1 else ():
            groups[f"{group}: {part}"] = [case for case in own if case.part == part]
    return {group: score(group, own) for group, own in sorted(groups.items())}


def held_out(found: Measurements) -> dict[str, list[HeldOut]]:
    """By group, each model or card left out once."""
    by_group: dict[str, list[HeldOut]] = {}
    for fold in (*held_out_models(found.series), *held_out_cards(found.caps)):
        by_group.setdefault(fold.group, []).append(fold)
    return by_group


def table(found: Sequence[Case], folds: dict[str, list[HeldOut]]) -> str:
    """The scoreboard as a Markdown table."""
    lines = [
        "| estimate | cases | of models or cards | mean error | in the 80 % interval | the interval is | held out | wrong signs | beyond noise |",
        "|---|---:|---:|---:|---:|---|---:|---:|---:|",
    ]
    points = {case.group for case in found if case.is_share}
    for group, own in scores(found).items():
        unit = "points" if group.split(":")[0] in points else "%"
        error = "" if group == ALL else f"{own.error * 100:.1f} {unit}"
        left_out = f"{percent(coverage(folds[group]))}" if group in folds else ""
        lines.append(
            f"| {group} | {own.count} | {own.subjects} | {error} | {percent(own.coverage)} | {own.verdict} | {left_out} |"
            f" {own.wrong_signs} | {own.beyond_noise} |"
        )
    return "\n".join(lines)


def calibration(found: Measurements, folds: dict[str, list[HeldOut]]) -> str:
    """What the fits give, on all and with each subject left out."""
    layer_s, sequence_s = mixture_terms(once(found.series))
    lines = [
        f"Mixtures, per doubling of ranks: {layer_s * 1e6:.0f} µs a layer, {sequence_s * 1e6:.0f} µs a sequence.",
        *(f"Half-width, {group}: {width:.3f}." for group, width in fitted_widths(found.series).items()),
    ]
    for group, own in folds.items():
        each = ", ".join(f"{fold.subject} {fold.held}/{fold.count} (±{fold.fitted:.3f})" for fold in own)
        lines.append(f"Held out, {group}: {percent(coverage(own))}: {each}.")
    return "\n".join(lines)


def run() -> Iterator[Figure]:
    """The scoreboard as figures of the benchmark; ``runs`` is how many cases are behind each."""
    at_hand = measurements(data_folder())
    for note in at_hand.notes:
        print(f"advice: {note}", file=sys.stderr)
    for group, own in scores(cases(at_hand)).items():
        if group != ALL:
            yield Figure("advice", f"{group}: mean error", own.error * 100, "%", own.count)
        yield Figure("advice", f"{group}: in the 80 % interval", own.coverage * 100, "%", own.count)
        yield Figure("advice", f"{group}: wrong signs beyond noise", own.beyond_noise, "cases", own.count)
    for group, folds in held_out(at_hand).items():
        count = sum(fold.count for fold in folds)
        yield Figure("advice", f"{group}: held out, in the interval", coverage(folds) * 100, "%", count)


def main() -> int:
    """Print the scoreboard, its calibration, what is not in it, and the worst cases."""
    at_hand = measurements(data_folder())
    found, folds = cases(at_hand), held_out(at_hand)
    print(table(found, folds))
    print("\n" + calibration(at_hand, folds))
    print("\n" + "\n".join(at_hand.notes))
    print("\nLargest errors:")
    for case in sorted(found, key=lambda case: -case.error)[:10]:
        print(
            f"{case.error * 100:5.1f}  {case.group}: {case.name}: {shown(case.predicted.p50)}, measured {shown(case.measured)}"
        )
    for case in found:
        if case.has_wrong_sign():
            print(f"wrong sign  {case.group}: {case.name}: {case.predicted}, measured {case.measured:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
