"""Whole numbers divided so that the parts add up: milliseconds, millijoules, micro-dollars. Pure.

What rounding down leaves over goes to the largest share (cost-model 5).
"""

from collections.abc import Sequence


def rounded_ratio(numerator: int, denominator: int) -> int:
    """``numerator / denominator`` (above 0) as a whole number, half to even, without the noise of floats."""
    whole, rest = divmod(numerator, denominator)
    twice = 2 * rest
    return whole + (twice > denominator or (twice == denominator and whole % 2 == 1))


def split_whole(total: int, weights: Sequence[int]) -> list[int]:
    """``total`` (0 or more) in proportion to ``weights``, of which one at least is above 0."""
    if len(weights) == 2:  # by far the most: a holder that works and rests, a holder and a gap
        first, second = weights
        part = total * first // (first + second)
        other = total * second // (first + second)
        return [total - other, other] if first >= second else [part, total - part]
    whole = sum(weights)
    parts = [total * weight // whole for weight in weights]
    left = total - sum(parts)
    if left:
        parts[weights.index(max(weights))] += left
    return parts


def portions(amount: int, capacities: Sequence[int]) -> list[int]:
    """At most ``amount``, taken in proportion to ``capacities`` and of none more than it has."""
    whole = sum(capacities)
    if amount >= whole:
        return list(capacities)
    parts = [amount * capacity // whole for capacity in capacities]
    left = amount - sum(parts)
    if left:
        for at in sorted(range(len(parts)), key=lambda at: -capacities[at]):
            more = min(left, capacities[at] - parts[at])
            parts[at] += more
            left -= more
            if not left:
                break
    return parts
