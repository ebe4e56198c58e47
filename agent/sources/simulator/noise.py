"""Noise that is a function of place and time, so that any instant can be computed without its history.

A generator that is advanced would make a reading depend on how many were drawn before it. Here a fixed table
of normal draws is read at a position mixed from a seed and the time: the same seed and instant give the same
figure, whoever asks and in whatever order.
"""

from random import Random
from typing import Final

TABLE_BITS: Final = 12
_SIZE: Final = 1 << TABLE_BITS
_MIX: Final = 0x9E3779B97F4A7C15
"""Fibonacci hashing: 2^64 over the golden ratio, odd; high bits of the product are well mixed (Knuth, TAOCP 6.4)."""
_WORD: Final = (1 << 64) - 1


def _table() -> tuple[float, ...]:
    """Near-normal draws: sums of twelve uniforms, because only ``random()`` is stable over Python versions."""
    draw = Random(20_261_121).random  # noqa: S311 - noise, not a secret
    return tuple(sum(draw() for _ in range(12)) - 6.0 for _ in range(_SIZE))


_NORMAL: Final = _table()


def normal(seed: int, step: int) -> float:
    """A draw with mean 0 and standard deviation 1, always within ±6, for one seed and step."""
    mixed = (step * 0x2545F4914F6CDD1D + seed * _MIX) & _WORD
    return _NORMAL[((mixed ^ (mixed >> 29)) * _MIX & _WORD) >> (64 - TABLE_BITS)]


def normal_pair(seed: int, step: int) -> tuple[float, float]:
    """Two draws as ``normal`` gives them, from one mixing."""
    mixed = (step * 0x2545F4914F6CDD1D + seed * _MIX) & _WORD
    mixed = (mixed ^ (mixed >> 29)) * _MIX & _WORD
    return _NORMAL[mixed >> (64 - TABLE_BITS)], _NORMAL[(mixed >> (64 - 2 * TABLE_BITS)) & (_SIZE - 1)]


def drift(seed: int, ts_ms: int, period_ms: int) -> float:
    """Slow noise: draws ``period_ms`` apart joined by straight lines. Mean 0, standard deviation near 0.8."""
    step, within = divmod(ts_ms, period_ms)
    before = normal(seed, step)
    return before + (normal(seed, step + 1) - before) * within / period_ms
