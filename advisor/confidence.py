"""How sure a finding is, in a letter and in words (advisor-rules 7.3 and the minimum data of section 4)."""

from typing import Final

from core.finding import GRADED_DOWN, Grade, Range

FLOOR_DAYS: Final = 14.0
FLOOR_COVERED_H: Final = 30.0
"""Spending advice wants 14 days and at least 30 h of samples (AWS Compute Optimizer's floor)."""

HALF_WIDTH: Final = {Grade.A: 0.05, Grade.B: 0.10, Grade.C: 0.20, Grade.D: 0.50}
"""Relative half-widths by grade; literature figures bring their own range."""

_DOWN: Final = {Grade.A: Grade.B, Grade.B: Grade.C, Grade.C: Grade.D, Grade.D: Grade.D}
_WORDS: Final = {
    Grade.A: "High: measured here",
    Grade.B: "Good: a model fitted on this site's data, or a short measurement",
    Grade.C: "Moderate: a formula, or a short fit",
    Grade.D: "Low: a formula on little data, or literature",
}


def duration(hours: float) -> str:
    """A length of time for people: ``10 minutes``, ``6.5 hours``, ``3.2 days``."""
    if hours < 2:
        minutes = round(hours * 60)
        return f"{minutes} minute{'' if minutes == 1 else 's'}"
    return f"{hours:.3g} hours" if hours < 48 else f"{hours / 24:.3g} days"


def is_short(span_h: float, covered_h: float) -> bool:
    """Below the floor for spending advice."""
    return span_h < FLOOR_DAYS * 24 * 0.99 or covered_h < FLOOR_COVERED_H


def graded(grade: Grade, basis: str, *, span_h: float, covered_h: float) -> tuple[Grade, str]:
    """The grade after the data's length, and the sentence that explains it.

    Args:
        grade: by method. basis: where the figure comes from, a clause without a full stop.
        span_h: hours from first to last sample. covered_h: hours for which samples vouch.
    """
    if not is_short(span_h, covered_h):
        return grade, f"{_WORDS[grade]}. {basis}."
    lower = _DOWN[grade]
    return lower, (
        f"{_WORDS[lower]}. {basis}. {GRADED_DOWN} from {grade}: {duration(covered_h)} of data,"
        f" 14 days are the floor for spending advice."
    )


def seen_share(window_h: float) -> float:
    """Share of the 14-day floor that the window shows; a month made of less is extrapolated beyond that."""
    return min(1.0, window_h / (FLOOR_DAYS * 24))


def widened(value: float, grade: Grade, most: float | None = None, seen: float = 1.0) -> Range:
    """``value`` with the grade's half-width, p10 no more than the share that was ``seen``, cut at ``most``."""
    around = Range.around(value, HALF_WIDTH[grade])
    low = min(around.p10, value * seen) if value > 0 else around.p10
    if most is None:
        return Range(low, around.p50, around.p90)
    return Range(min(low, most), min(around.p50, most), min(around.p90, most))
