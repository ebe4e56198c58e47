"""What a page was asked for: its address, from which links to its variants are made, and the scope of its figures.

An address holds filters, order and period, so that a link to it is a link to what its sender sees.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from sqlalchemy.orm import Session

from api.deps import NowDep, SessionDep, SettingsDep
from api.resources.ledger_anew import in_stored_zone, show_stored
from api.resources.scope import LATEST_MS, Scope, in_hours, parse_time, scope_of
from core.clock import iso
from core.errors import UsageError
from core.evidence import Window
from core.units import DAY_MS
from ledger.calendar import Calendar, Span
from store.queries.hours import bounds

PERIOD_NAMES: Final = ("since", "until", "through", "month")
"""Parameters of a period; links to other pages carry these."""
MOST_PARAMETERS: Final = 60
MOST_LETTERS: Final = 300
"""Of one parameter; longer ones are not repeated in links."""
DEFAULT_SINCE: Final = "30d"
LEAST_DAYS: Final = 2
"""A shorter period is one of hours: it begins where it was asked to."""
_DAYS: Final = re.compile(r"(?P<count>\d{1,4})(?P<unit>[dw])")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
Text = str | Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Address:
    """Path and parameters of a page, in the order in which they came."""

    path: str
    query: tuple[tuple[str, str], ...] = ()

    def get(self, name: str, default: str = "") -> str:
        """The parameter, the last one where there are several."""
        return next((value for key, value in reversed(self.query) if key == name), default)

    def every(self, name: str) -> tuple[str, ...]:
        """All values of a parameter that are not empty."""
        return tuple(dict.fromkeys(value for key, value in self.query if key == name and value))

    def href(self, **changes: Text) -> str:
        """The same page with some parameters changed; None or empty takes one away."""
        kept = [(key, value) for key, value in self.query if key not in changes and value]
        for key, value in changes.items():
            kept += [(key, one) for one in ([value] if isinstance(value, str) else value or ()) if one]
        return f"{self.path}?{urlencode(kept)}" if kept else self.path

    def without(self, *names: str) -> str:
        """The same page without some parameters."""
        return self.href(**dict.fromkeys(names))

    def hidden(self, *names: str) -> tuple[tuple[str, str], ...]:
        """Parameters that a form must send along: all but those it has fields for."""
        return tuple((key, value) for key, value in self.query if key not in names and value)

    @property
    def period(self) -> tuple[tuple[str, str], ...]:
        """The parameters of the period alone."""
        return tuple((key, value) for key, value in self.query if key in PERIOD_NAMES and value)

    def link(self, path: str, **more: Text) -> str:
        """Another page over the same period."""
        return Address(path, self.period).href(**more)


@dataclass(frozen=True, slots=True)
class View:
    """A page as asked for: its address and the scope of its figures."""

    scope: Scope
    address: Address

    def over(self, window: Window) -> "View":
        """The same over another window."""
        return replace(self, scope=replace(self.scope, window=window))


def address_of(request: Request) -> Address:
    """The address of a request; what is too long to repeat is left out of links."""
    items = [(key, value) for key, value in request.query_params.multi_items() if len(value) <= MOST_LETTERS]
    return Address(request.url.path, tuple(items[:MOST_PARAMETERS]))


Time = Annotated[str | None, Query(max_length=40)]


def view(  # noqa: PLR0917 - one parameter of the address each
    request: Request,
    opened: SessionDep,
    given: SettingsDep,
    now: NowDep,
    since: Time = None,
    until: Time = None,
    through: Time = None,
    month: Time = None,
) -> View:
    """The page that was asked for.

    Args:
        since, until: as over REST: a time, a day, an age.
        through: last day of the period, that day included, as people say it; wins over ``until``. Days are accounting
            days then, ``since`` too, so that the first to the last of a month are that month.
            A period of days begins where its first accounting day does: see ``whole_days``.
        month: a month of the accounting time zone (``2026-10``); wins over the others.

    Raises:
        UsageError: a time that cannot be read.
    """
    address = address_of(request)
    show_stored(opened)  # the frame of every page tells it
    given = in_stored_zone(opened, given)
    if month:
        return View(_month(scope_of(opened, given, now), month), address)
    if not until and not through:
        since = whole_days(since or DEFAULT_SINCE, given.accounting_time_zone, newest_ms(opened, now))
    if through:
        calendar = Calendar(given.accounting_time_zone)
        until = iso(_day(through, calendar, now, "through").to_ms)
        if since and _DATE.fullmatch(since.strip()):
            since = iso(_day(since, calendar, now, "since").from_ms)
    return View(scope_of(opened, given, now, since or None, until or None), address)


def _day(text: str, calendar: Calendar, now_ms: int, flag: str) -> Span:
    """The accounting day that is named, or that a time or an age falls in. Raises ``UsageError``."""
    at_ms = parse_time(text, back_from_ms=now_ms, flag=flag)
    is_date = (
        _DATE.fullmatch(text.strip()) is not None and 0 < at_ms < LATEST_MS
    )  # the ends of the clock have no zone
    return calendar.day(text.strip()) if is_date else calendar.day_at(at_ms)


def newest_ms(session: Session, now_ms: int) -> int:
    """The end that an age counts back from: now, or the newest data where they are old."""
    data = bounds(session)
    return now_ms if data is None else min(now_ms, data.to_ms)


def whole_days(since: str, zone: str, end_ms: int) -> str:
    """An age of two days or more as so many accounting days, the running one included; anything else as it is.

    A page over days then has a whole first bar, and reads it from the ledger's days instead of pricing half of one anew. Over
    REST an age is exact.
    """
    found = _DAYS.fullmatch(since.strip())
    if found is None:
        return since
    days = int(found["count"]) * (7 if found["unit"] == "w" else 1)
    start_ms = end_ms - (days - 1) * DAY_MS
    if days < LEAST_DAYS or start_ms < 0:
        return since
    return iso(Calendar(zone).day_at(start_ms).from_ms) or since


def _month(scope: Scope, key: str) -> Scope:
    try:
        span = Calendar(scope.settings.accounting_time_zone).month(key)
    except ValueError as error:
        raise UsageError(f"month: {error}") from error
    if not 0 < span.to_ms <= LATEST_MS:
        raise UsageError(f"month is {key!r}: give one from 1970-01 to 9998-12")
    asked = Window(span.from_ms, span.to_ms)
    return replace(scope, window=in_hours(asked, bounds(scope.session)), asked=asked)


ViewDep = Annotated[View, Depends(view, scope="function")]
