"""The one place that reads a clock. Everything below the edge takes ``now`` as an argument."""

import time
from datetime import UTC, datetime


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
