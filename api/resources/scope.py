"""What every table is asked for: a session, the settings, now, and a window of whole clock hours."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from sqlalchemy.orm import Session

from core.clock import to_ms
from core.errors import UsageError
from core.evidence import Window
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from store.queries.hours import bounds

DEFAULT_SPAN_MS: Final = 30 * DAY_MS
UNIT_MS: Final = {"m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
LATEST_MS: Final = to_ms(datetime(9999, 1, 1, tzinfo=UTC))
"""Later times cannot be written as ISO 8601 with four digits."""
_RELATIVE: Final = re.compile(r"(?P<count>\d{1,6})(?P<unit>[mhdw])")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Scope:
    """One question: where to read, under which settings, as of when, over which window.

    ``asked`` is the window as it was asked for, before it moved out to clock hours; None: nobody asked.
    """

    session: Session
    settings: Settings
    now_ms: int
    window: Window
    asked: Window | None = None


def parse_time(text: str, *, back_from_ms: int, flag: str) -> int:
    """A point in time as epoch milliseconds, from 1970 to 9999.

    Args:
        text: ISO 8601 with a zone, a UTC day (``2026-10-05``), or an age (``90m``, ``24h``, ``7d``, ``2w``).
        back_from_ms: what an age counts back from.
        flag: name of the flag or parameter, for the sentence.

    Raises:
        UsageError: none of these; names the flag and what to write.
    """
    relative = _RELATIVE.fullmatch(text.strip())
    if relative is not None:
        return _clamped(back_from_ms - int(relative["count"]) * UNIT_MS[relative["unit"]])
    try:
        if _DAY.fullmatch(text.strip()):
            day = date.fromisoformat(text.strip())
            return _clamped(to_ms(datetime(day.year, day.month, day.day, tzinfo=UTC)))
        at = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{flag} is {text!r}: give a time such as 2026-10-05T14:00:00Z, a day such as 2026-10-05, "
            "or an age such as 7d, 24h, 90m"
        ) from error
    if at.tzinfo is None:
        raise UsageError(
            f"{flag} is {text!r}, which names no time zone: append Z or an offset such as +02:00"
        )
    return _clamped(to_ms(at))


def _clamped(at_ms: int) -> int:
    return min(max(at_ms, 0), LATEST_MS)


def default_window(
    session: Session, now_ms: int, since: str | None = None, until: str | None = None
) -> Window | None:
    """The window asked for, clipped to the data; without ``since`` the last 30 days *of data*.

    An import of last month's captures answers without flags because the window ends at the newest data, not
    now. Where both are ages, both count back from now; else ``since`` as an age counts back from the window's
    end. The borders move out to whole clock hours, because figures come from hours; then the window shrinks to
    the data.

    Returns:
        None when there is no data at all and nothing was asked for.

    Raises:
        UsageError: a time that cannot be read, or ``since`` not before ``until``.
    """
    data = bounds(session)
    if data is None and since is None and until is None:
        return None
    return in_hours(_asked(data, now_ms, since, until), data)


def _asked(data: Window | None, now_ms: int, since: str | None, until: str | None) -> Window:
    """The window to the millisecond, before it moves out to clock hours."""
    # A host whose clock is ahead must not push everybody's figures out of the window.
    end = now_ms if data is None or data.from_ms < now_ms < data.to_ms else data.to_ms
    asked_to = end if until is None else parse_time(until, back_from_ms=now_ms, flag="until")
    asked_from = (
        asked_to - DEFAULT_SPAN_MS
        if since is None
        else parse_time(since, back_from_ms=now_ms if _is_age(until) else asked_to, flag="since")
    )
    if asked_from >= asked_to:
        raise UsageError(f"since ({since or '30 days'}) is not before until ({until or 'the newest data'})")
    return Window(asked_from, asked_to)


def _is_age(text: str | None) -> bool:
    return text is not None and _RELATIVE.fullmatch(text.strip()) is not None


def in_hours(asked: Window, data: Window | None) -> Window:
    """The window of figures that come from hours: out to whole clock hours, then clipped to the data."""
    from_ms = asked.from_ms - asked.from_ms % HOUR_MS
    to_ms_ = asked.to_ms + -asked.to_ms % HOUR_MS
    if data is None or data.to_ms <= from_ms or data.from_ms >= to_ms_:
        return Window(from_ms, to_ms_)
    return Window(max(from_ms, data.from_ms), min(to_ms_, data.to_ms))


def scope_of(
    session: Session, settings: Settings, now_ms: int, since: str | None = None, until: str | None = None
) -> Scope:
    """A scope over ``default_window``; an empty store gets the last 30 days, in which there is nothing."""
    window = default_window(session, now_ms, since, until)
    if window is None:
        window = Window(now_ms - DEFAULT_SPAN_MS, now_ms)
    is_asked = since is not None or until is not None
    asked = _asked(bounds(session), now_ms, since, until) if is_asked else None
    return Scope(session, settings, now_ms, window, asked)
