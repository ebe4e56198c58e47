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
    if len(rows) == 1:
        return tuple(map(rows[0].get, names)) if weights[0] else (None,) * len(names)
    return tuple([_mean(name, rows, weights) for name in names])


def _mean(name: str, rows: Sequence[Mapping[str, float]], weights: Sequence[float]) -> float | None:
    column = [values[name] for values in rows if name in values]
    if not column:
        return None
    if len(column) < len(rows):
        weights = [weight for values, weight in zip(rows, weights, strict=True) if name in values]
    whole = sum(weights)
    return sum(map(mul, column, weights)) / whole if whole else None
