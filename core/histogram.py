"""Time spent at each level of a gauge, small enough to keep in an hour row and exact enough to merge.

Levels are rounded to two significant digits (integers below 100 stay exact), so that a quantile is at
most 5 % off and an hour's histogram is a few dozen numbers however long the hour was sampled.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import floor, log10
from typing import Self


def level(value: float) -> float:
    """``value`` rounded to two significant digits."""
    if value == 0:
        return 0.0
    digits = 1 - floor(log10(abs(value)))
    return round(value, digits)


@dataclass(slots=True)
class Histogram:
    """Seconds by level. Merging, means and quantiles are weighted by time."""

    seconds: dict[float, float] = field(default_factory=dict)

    def add(self, value: float, seconds: float) -> None:
        """Count ``seconds`` at ``value``."""
        key = level(value)
        self.seconds[key] = self.seconds.get(key, 0.0) + seconds

    def merge(self, other: Self) -> None:
        """Add another histogram's time to this one."""
        mine = self.seconds
        for key, seconds in other.seconds.items():
            mine[key] = mine.get(key, 0.0) + seconds

    @property
    def total_s(self) -> float:
        """Time counted."""
        return sum(self.seconds.values())

    def quantile(self, share: float) -> float | None:
        """Smallest level at or below which ``share`` of the time was spent; None without time."""
        total = self.total_s
        if total <= 0:
            return None
        reached = 0.0
        for key in sorted(self.seconds):
            reached += self.seconds[key]
            if reached >= share * total - 1e-9:
                return key
        return max(self.seconds)

    def mean(self) -> float | None:
        """Mean over time; None without time."""
        total = self.total_s
        return None if total <= 0 else sum(key * s for key, s in self.seconds.items()) / total

    def max(self) -> float | None:
        """Highest level seen; None without time."""
        return max(self.seconds) if self.seconds else None

    def share_at_least(self, threshold: float) -> float | None:
        """Share of the time at or above ``threshold``; None without time."""
        total = self.total_s
        return None if total <= 0 else sum(s for key, s in self.seconds.items() if key >= threshold) / total

    def to_json(self) -> str:
        """Compact text for a database column."""
        return json.dumps(
            {f"{key:g}": round(s, 3) for key, s in sorted(self.seconds.items())}, separators=(",", ":")
        )

    @classmethod
    def from_json(cls, text: str | None) -> Self:
        """Read what ``to_json`` wrote; None or empty text is an empty histogram."""
        raw: Mapping[str, float] = json.loads(text) if text else {}
        return cls({float(key): float(s) for key, s in raw.items()})

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        """All of ``parts`` together."""
        whole = cls()
        for part in parts:
            whole.merge(part)
        return whole
