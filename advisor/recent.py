"""Is it still so? Advice on an engine holds only when the engine is still seen and its recent work shows the same."""

from collections.abc import Sequence
from math import ceil
from typing import Final

from advisor.confidence import duration
from core.evidence import EngineEvidence, Window
from core.hours import EngineHour
from core.series import HourSeries, hours_since
from core.units import HOUR_MS

MAX_SILENCE_H: Final = 3.0
"""Without samples for longer, nobody knows what the engine is doing now."""
RECENT_BUSY_HOURS: Final = 24
"""A day of work, so that day and night are both in it; of shorter data the last quarter."""
MIN_RECENT_S: Final = 300.0
"""Less busy time than this shows how a load ends, not what it is."""


def silence(engine: EngineEvidence, window: Window) -> tuple[tuple[str, ...], str] | None:
    """What is missing and why that matters when the engine was not seen up to now; None when it was."""
    last_ms = _last_seen_ms(engine)
    if last_ms is None:
        return None
    silence_h = (window.to_ms - last_ms - HOUR_MS) / HOUR_MS
    if silence_h <= MAX_SILENCE_H:
        return None
    why = f"It was last seen {duration(silence_h)} before the end of the data: what it does now is not known."
    return ("recent samples",), why


def _last_seen_ms(engine: EngineEvidence) -> int | None:
    """When its newest hour with samples begins; None without any."""
    hours = engine.hours
    if isinstance(hours, HourSeries):
        return hours.last_with("covered_s")
    return max(engine.seen_hours, default=None)


def recent_hours(engine: EngineEvidence) -> Sequence[EngineHour]:
    """Its last 24 hours with work; of shorter data the last quarter, but no less than five minutes of work."""
    busy = engine.busy_hours
    count = min(RECENT_BUSY_HOURS, ceil(len(busy) / 4))
    if not count:
        return ()
    lately = _busy_since(engine, busy[-count])
    while count < len(busy) and sum(hour.busy_s for hour in lately) < MIN_RECENT_S:
        count += 1
        lately = _busy_since(engine, busy[-count])
    return lately


def _busy_since(engine: EngineEvidence, from_ms: int) -> Sequence[EngineHour]:
    return [hour for hour in hours_since(engine.hours, from_ms) if hour.busy_s > 0]
