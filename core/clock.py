"""The one place that reads a clock. Everything below the edge takes ``now`` as an argument."""

import time
from datetime import UTC, datetime
from typing import Final


def now_ms() -> int:
    """UTC epoch milliseconds."""
    return time.time_ns() // 1_000_000


def now() -> datetime:
    """Aware UTC time."""
    return datetime.now(UTC)  # noqa: TID251 - the edge itself


def from_ms(ts_ms: int) -> datetime:
    """Epoch milliseconds as an aware UTC time."""
    return datetime.fromtimestamp(ts_ms / 1000, UTC)


def to_ms(at: datetime) -> int:
    """Aware time as epoch milliseconds. Raises ``ValueError`` for a naive one."""
    if at.tzinfo is None:
        raise ValueError(f"{at.isoformat()} has no time zone: append Z or an offset such as +02:00")
    return round(at.timestamp() * 1000)


def iso(ts_ms: int | None) -> str | None:
    """Epoch milliseconds as ISO 8601 UTC with ``Z``; None stays None."""
    if ts_ms is None:
        return None
    return from_ms(ts_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


STEP_NS: Final = 1_000_000_000
"""The wall clock against the monotonic one: a difference beyond a second is a step, below it is drift."""
SLEW: Final = 0.1
"""Share of a drift that one look takes over: time never stands still or jumps for a correction by NTP."""


class SteadyClock:
    """Wall time that runs evenly: the monotonic clock, kept near the wall clock.

    Readings carry monotonic instants. Energy, means and coverage come from their distances, so a wall clock that is
    set forward or back must not reach them; only where a step was made does a new series begin.
    """

    __slots__ = ("_offset_ns",)

    def __init__(self) -> None:
        self._offset_ns = _offset_ns()

    def ms(self, mono_ns: int) -> int:
        """UTC epoch milliseconds of a monotonic instant."""
        return (mono_ns + self._offset_ns) // 1_000_000

    def now_ns(self) -> int:
        """Monotonic nanoseconds now."""
        return time.monotonic_ns()

    def ms_now(self) -> int:
        """UTC epoch milliseconds now."""
        return self.ms(time.monotonic_ns())

    def look(self) -> int:
        """Follow the wall clock; milliseconds of a step that was made (ahead is positive), 0 without one."""
        difference = _offset_ns() - self._offset_ns
        if abs(difference) <= STEP_NS:
            self._offset_ns += int(difference * SLEW)
            return 0
        self._offset_ns += difference
        return difference // 1_000_000


def _offset_ns() -> int:
    return time.time_ns() - time.monotonic_ns()
