"""Divides money so that the parts add up to the whole, to the micro-dollar.

A part is rounded down to whole micro-dollars; what rounding leaves over goes to the largest share (cost-model 5).
"""

from collections.abc import Hashable, Mapping
from decimal import Decimal
from math import fsum, isfinite
from typing import TypeVar

from core.money import MICRO, from_micro, to_micro

K = TypeVar("K", bound=Hashable)


def rounded(amount: Decimal) -> Decimal:
    """An amount in whole micro-dollars, half to even."""
    return from_micro(to_micro(amount))


def split_usd(total: Decimal, weights: Mapping[K, float]) -> dict[K, Decimal]:
    """``total`` in proportion to ``weights``; the parts add up to ``rounded(total)`` exactly.

    Raises:
        ValueError: a weight is negative or not finite, or there is money and no weight to share it by.
    """
    if any(weight < 0 or not isfinite(weight) for weight in weights.values()):
        raise ValueError("a share is negative or not finite: shares are seconds or ratios of 0 or more")
    whole = to_micro(total)
    sum_of_weights = fsum(weights.values())
    if sum_of_weights <= 0:
        if whole:
            raise ValueError(f"{total} USD and nothing to share it by: keep it as one line")
        return dict.fromkeys(weights, Decimal(0))
    sign = -1 if whole < 0 else 1
    # Rounded down, so that the residue is never negative and no part turns its sign.
    parts = {key: int(abs(whole) * (weight / sum_of_weights)) for key, weight in weights.items()}
    largest = max(weights, key=lambda key: weights[key])
    parts[largest] += abs(whole) - sum(parts.values())
    return {key: Decimal(sign * part) / MICRO for key, part in parts.items()}
