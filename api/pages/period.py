"""The period of a page: links to the usual ones, months with data, and a form for any other."""

from dataclasses import dataclass
from typing import Final

from api.pages.view import PERIOD_NAMES, Address, View
from core.clock import from_ms
from core.units import DAY_MS
from ledger.calendar import Calendar
from store.queries.hours import bounds

PERIODS: Final = (("24h", "24 h"), ("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days"))
DEFAULT_PERIOD: Final = "30d"
MOST_MONTHS: Final = 6


@dataclass(frozen=True, slots=True)
class PeriodLink:
    """One choice of several, as a link; ``current`` is the one that is shown."""

    name: str
    href: str
    current: bool


@dataclass(frozen=True, slots=True)
class PeriodBar:
    """Periods to choose from.

    Attributes:
        links: the usual ones. months: with data, the newest first; empty: no other period can be asked for.
        action, hidden: where the form of an own period goes, and what it sends along.
        first_day, last_day: what the form holds: the accounting days that are shown, ISO, both included.
        own: the period shown is none of the links.
    """

    links: tuple[PeriodLink, ...]
    months: tuple[PeriodLink, ...] = ()
    action: str = ""
    hidden: tuple[tuple[str, str], ...] = ()
    first_day: str = ""
    last_day: str = ""
    own: bool = False


def links_of(address: Address, periods: tuple[tuple[str, str], ...], chosen: str) -> tuple[PeriodLink, ...]:
    """The same page over other periods; everything else in its address stays."""
    gone = dict.fromkeys(PERIOD_NAMES)
    return tuple(
        PeriodLink(name, address.href(**{**gone, "since": key}), key == chosen) for key, name in periods
    )


def period_bar(view: View, periods: tuple[tuple[str, str], ...] = PERIODS) -> PeriodBar:
    """The periods of a page."""
    address, scope = view.address, view.scope
    asked = dict(address.period)
    chosen = asked.get("since", DEFAULT_PERIOD) if set(asked) <= {"since"} else ""
    links = links_of(address, periods, chosen)
    gone = dict.fromkeys(PERIOD_NAMES)
    data = bounds(scope.session)
    spans = []
    calendar = Calendar(scope.settings.accounting_time_zone)
    if data is not None:
        spans = calendar.months(data.from_ms, data.to_ms)
    months = tuple(
        PeriodLink(
            f"{from_ms(span.start_ms + DAY_MS):%B %Y}",
            address.href(**{**gone, "month": span.key}),
            span.key == asked.get("month"),
        )
        for span in reversed(spans[-MOST_MONTHS:])
    )
    return PeriodBar(
        links=links,
        months=months,
        action=address.path,
        hidden=address.hidden(*PERIOD_NAMES),
        first_day=calendar.day_at(scope.window.from_ms).key,
        last_day=calendar.day_at(max(scope.window.to_ms - 1, 0)).key,
        own=not any(link.current for link in links),
    )
