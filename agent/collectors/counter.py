"""A rate out of a counter that only grows."""

from __future__ import annotations

NS = 1_000_000_000
LONGEST_NS = 60 * NS
"""A mean over a longer pause says nothing about now."""


class Rate:
    """Increase per second between two looks; a counter that fell (reset, wrap, another set of links) starts anew."""

    __slots__ = ("_at_ns", "_total")

    def __init__(self) -> None:
        self._total: float | None = None
        self._at_ns = 0

    def per_s(self, total: float | None, now_ns: int) -> float | None:
        """The rate since the last look; None the first time, after a fall or a long pause, and when the total is unknown.

        Args:
            total: the counter now; None when the driver does not say.
            now_ns: monotonic time of the look.
        """
        before, span_ns = self._total, now_ns - self._at_ns
        self._total, self._at_ns = total, now_ns
        if total is None or before is None or total < before or not 0 < span_ns <= LONGEST_NS:
            return None
        return (total - before) * NS / span_ns
