"""What a million tokens cost, and how much of it is prefill (cost-model 4). Pure.

Say with every figure which tokens are meant: prefill is bound by compute, decode by memory bandwidth, and a price over
both hides both.

No engine publishes how much of its time is prefill. Its hours tell where their mix of prompts and answers varies:

    busy time of an hour = a × decode steps + b × generated tokens + c × prompt tokens that were computed

fitted by least squares; ``c × prompt tokens`` is prefill. The same with energy. Where c is not
certain to a fifth of itself (prompts always in step with answers), or the law does not hold, there is no split.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import sqrt
from typing import Final, NamedTuple

from core.money import usd
from core.percent import percent

MILLION: Final = 1_000_000
MIN_HOURS: Final = 24
"""Fewest busy hours behind a split: a day."""
MAX_ERROR_RATIO: Final = 0.2
"""Standard error of prefill's share, over it: as wide as energy and price are known at best."""
MIN_EXPLAINED_RATIO: Final = 0.9
"""Share of the variance between hours that the law explains (R²)."""
MIN_RATIO: Final = 0.001
_TINY: Final = 1e-12


def usd_per_million_tokens(
    usd_per_hour: Decimal, tokens_per_s: float, use_ratio: float = 1.0
) -> Decimal | None:
    """Dollars for a million tokens.

    Args:
        usd_per_hour: of all GPUs that make them.
        tokens_per_s: while they work.
        use_ratio: share of the paid time in which they do; 1 for the time in use alone.

    Returns:
        None when no tokens are made.
    """
    if tokens_per_s <= 0 or use_ratio <= 0:
        return None
    return MILLION * usd_per_hour / (3600 * usd(tokens_per_s) * usd(use_ratio))


class WorkHour(NamedTuple):
    """What an engine did in the busy part of one hour.

    Attributes:
        amount: seconds or joules it took. steps: decode steps (generated tokens over batch size).
        generated: tokens. prompt: tokens that were computed, not taken from a cache.
    """

    amount: float
    steps: float
    generated: float
    prompt: float


@dataclass(frozen=True, slots=True)
class PrefillShare:
    """Share of busy time or energy that prefill takes, 0–1, and its standard error."""

    ratio: float
    error: float
    hours: int


def prefill_share(hours: Sequence[WorkHour]) -> PrefillShare | str:
    """Fit of the law to an engine's hours, or why there is none, in a few words."""
    known = [hour for hour in hours if hour.amount > 0 and hour.generated > 0]
    if len(known) < MIN_HOURS:
        return f"{len(known)} busy hours with both kinds of tokens, {MIN_HOURS} needed"
    if not any(hour.prompt > 0 for hour in known):
        return "no prompt tokens were computed"
    columns = [[getattr(hour, name) for hour in known] for name in ("steps", "generated", "prompt")]
    fit = _least_squares(columns, [hour.amount for hour in known])
    if fit is None:
        return "prompts and answers keep step: nothing tells them apart"
    # All three terms stay in: a fit without one would give its time to the others.
    if any(value < -2 * wide for value, wide in zip(fit.coefficients, fit.errors, strict=True)):
        return "more tokens went with less time: something else decides it"
    cost, error = fit.coefficients[-1], fit.errors[-1]
    if fit.explained_ratio < MIN_EXPLAINED_RATIO:
        return f"tokens explain {percent(fit.explained_ratio)} of the differences between hours, {percent(MIN_EXPLAINED_RATIO)} needed"
    if error > MAX_ERROR_RATIO * cost > 0:
        return (
            f"prompts and answers keep step: the share of prompts is only known to ±{percent(error / cost)}"
        )
    whole = sum(hour.amount for hour in known)
    prompts = sum(hour.prompt for hour in known)
    ratio = cost * prompts / whole
    if ratio < MIN_RATIO:
        return "prompts took no time that could be told from none"
    if ratio >= 1:
        return "prompts would take all of the time"
    return PrefillShare(ratio, error * prompts / whole, len(known))


class _Fit(NamedTuple):
    coefficients: tuple[float, ...]
    errors: tuple[float, ...]
    explained_ratio: float


def _least_squares(columns: Sequence[Sequence[float]], amounts: Sequence[float]) -> _Fit | None:
    """By the normal equations, columns scaled to 1; None where columns are multiples of each other."""
    scales = [max(column) for column in columns]
    if min(scales) <= 0:
        return None
    scaled = [[value / scale for value in column] for column, scale in zip(columns, scales, strict=True)]
    squares = [[_dot(one, other) for other in scaled] for one in scaled]
    inverse = _inverse(squares)
    if inverse is None:
        return None
    right = [_dot(column, amounts) for column in scaled]
    found = [_dot(row, right) for row in inverse]
    said = [_dot(found, row) for row in zip(*scaled, strict=True)]
    left = sum((amount - one) ** 2 for amount, one in zip(amounts, said, strict=True))
    mean = sum(amounts) / len(amounts)
    whole = sum((amount - mean) ** 2 for amount in amounts)
    spread = left / (len(amounts) - len(columns))
    return _Fit(
        tuple(value / scale for value, scale in zip(found, scales, strict=True)),
        tuple(sqrt(max(0.0, spread * inverse[at][at])) / scale for at, scale in enumerate(scales)),
        1.0 - left / whole if whole > 0 else 0.0,
    )


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _inverse(matrix: Sequence[Sequence[float]]) -> list[list[float]] | None:
    """By Gauss and Jordan; None where there is none."""
    size = len(matrix)
    rows = [[*row, *_unit(at, size)] for at, row in enumerate(matrix)]
    for at in range(size):
        pivot = max(range(at, size), key=lambda row: abs(rows[row][at]))
        if abs(rows[pivot][at]) < _TINY * max(1.0, abs(matrix[at][at])):
            return None
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [value / rows[at][at] for value in rows[at]]
        for other in range(size):
            if other != at:
                times = rows[other][at]
                rows[other] = [a - times * b for a, b in zip(rows[other], rows[at], strict=True)]
    return [row[size:] for row in rows]


def _unit(at: int, size: int) -> Iterator[float]:
    return (1.0 if column == at else 0.0 for column in range(size))


def per_million(amount: Decimal | None, tokens: float | None) -> Decimal | None:
    """Money for a million tokens; None where either is unknown or no token was made."""
    if amount is None or not tokens or tokens <= 0:
        return None
    return MILLION * amount / usd(tokens)


def usd_per_useful_gpu_h(cost_usd: Decimal | None, allocated_h: float, idle_h: float) -> Decimal | None:
    """Cost over GPU-hours that were held and did something; None where there were none, or no price."""
    useful_h = allocated_h - idle_h
    if cost_usd is None or useful_h <= 0:
        return None
    return cost_usd / usd(useful_h)
