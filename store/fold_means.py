"""Means of samples by the time they vouch for: a column at once, because the roll-up does this for every hour. Pure."""

from collections.abc import Mapping, Sequence
from operator import mul


def means(
    names: Sequence[str], rows: Sequence[Mapping[str, float]], weights: Sequence[float]
) -> tuple[float | None, ...]:
    """Mean of each metric over the time that has it; None where none has.

    Args:
        names: metrics.
        rows: values of the samples by metric; an absent key is unknown.
        weights: of each sample the time it vouches for.
    """
    whole = sum(weights)
    return tuple(_mean([values.get(name) for values in rows], weights, whole) for name in names)


def _mean(column: Sequence[float | None], weights: Sequence[float], whole: float) -> float | None:
    if None not in column:
        return sum(map(mul, column, weights)) / whole if whole else None
    known = [(value, weight) for value, weight in zip(column, weights, strict=True) if value is not None]
    seen = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / seen if seen else None
