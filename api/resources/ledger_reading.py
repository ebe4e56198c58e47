"""How a window of the ledger is read: stored lines of whole accounting days, the rest priced on the fly.

The rest: parts of days at the window's edges, GPU-days that wait to be written, and everything where stored days rest on
other settings than these. Both add up to the same micro-dollar, so an answer is never stale and never depends on how
it was had. The one exception is a page while much is priced anew, which says so: see ``ledger_anew``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy.orm import Session

from api.resources.ledger_anew import anew
from api.resources.ledger_basis import is_current
from api.resources.ledger_book import LedgerBook
from api.resources.ledger_hours import PricedLine, priced_lines
from api.resources.scope import Scope
from core.evidence import Window
from core.units import DAY_MS, HOUR_MS
from ledger.calendar import Calendar, Span
from store.ledger_reader import engines_by_hour
from store.queries import ledger_pending
from store.queries.ledger_lines import span_of_samples


@dataclass(frozen=True, slots=True)
class Reading:
    """What to read where.

    Attributes:
        stored: the accounting days whose lines are stored, by their starts: read
            ``ledger_day`` where ``stored[0] <= day_ms < stored[1]``; None: none are.
        without: GPU and ``day_ms`` of those among them that wait to be written; leave their rows out.
        on_the_fly: spans of hours to price instead, of these GPUs (their keys; None: all).
    """

    stored: tuple[int, int] | None
    without: frozenset[tuple[int, int]]
    on_the_fly: tuple[tuple[int, int, frozenset[int] | None], ...]


def reading(scope: Scope, window: Window | None = None, *, by_engine: bool = False) -> Reading:
    """How to read a window (default the scope's); ``by_engine``: lines are to be told apart by engines."""
    asked = scope.window if window is None else window
    from_ms, to_ms = asked.from_ms - asked.from_ms % HOUR_MS, asked.to_ms + -asked.to_ms % HOUR_MS
    data = span_of_samples(scope.session)
    old = anew(scope.session, scope.settings, scope.now_ms)
    takes_old = old is not None and not old.is_exact
    if data is None or not (takes_old or is_current(scope.session, scope.settings)):
        return Reading(None, frozenset(), ((from_ms, to_ms, None),))
    calendar = Calendar(scope.settings.accounting_time_zone)
    # A day is whole too when nothing of it lies outside the window.
    days = [
        day
        for day in calendar.days(from_ms, to_ms)
        if (day.from_ms >= from_ms or from_ms <= data[0]) and (day.to_ms <= to_ms or to_ms >= data[1])
    ]
    if not days:
        return Reading(None, frozenset(), ((from_ms, to_ms, None),))
    first, last = days[0], days[-1]
    edges = [(from_ms, first.from_ms, None), (last.to_ms, to_ms, None)]
    waiting = _waiting(scope.session, calendar, days)
    if takes_old:
        never = _never_stored(scope.session, waiting)
        waiting = _with(never, _never_told_apart(scope.session, waiting)) if by_engine else never
    spans = [(start, end, frozenset(ids)) for (start, end), ids in _runs(waiting).items()]
    return Reading(
        (first.start_ms, calendar.day_at(last.to_ms).start_ms),
        frozenset((gpu_id, day.start_ms) for gpu_id, of in waiting.items() for day in of.values()),
        (*(edge for edge in edges if edge[0] < edge[1]), *spans),
    )


def lines_on_the_fly(scope: Scope, found: Reading, book: LedgerBook | None = None) -> Iterator[PricedLine]:
    """Lines of everything that ``found`` does not read from ``ledger_day``."""
    for start_ms, end_ms, gpu_ids in found.on_the_fly:
        yield from priced_lines(scope, start_ms, end_ms, gpu_ids=gpu_ids, book=book)


def _waiting(session: Session, calendar: Calendar, days: list[Span]) -> dict[int, dict[int, Span]]:
    """Accounting days that wait to be written, by GPU and start."""
    inside = {day.start_ms for day in days}
    found: dict[int, dict[int, Span]] = {}
    touched: dict[int, list[Span]] = {}
    for gpu_id, utc_day_ms in ledger_pending.days(session, days[0].from_ms, days[-1].to_ms):
        if utc_day_ms not in touched:
            touched[utc_day_ms] = [
                day for day in calendar.days(utc_day_ms, utc_day_ms + DAY_MS) if day.start_ms in inside
            ]
        for day in touched[utc_day_ms]:
            found.setdefault(gpu_id, {})[day.start_ms] = day
    return found


def _never_stored(session: Session, waiting: Mapping[int, Mapping[int, Span]]) -> dict[int, dict[int, Span]]:
    """Those of them that have no lines at all: days after the last one that each GPU has."""
    last = ledger_pending.last_stored(session) if waiting else {}
    return {
        gpu_id: {start: day for start, day in of.items() if start > last.get(gpu_id, -1)}
        for gpu_id, of in waiting.items()
    }


def _never_told_apart(
    session: Session, waiting: Mapping[int, Mapping[int, Span]]
) -> dict[int, dict[int, Span]]:
    """Those of them on which an engine was seen and whose lines say nothing of it: from before they were told apart."""
    every = {start: day for of in waiting.values() for start, day in of.items()}
    if not every:
        return {}
    told = ledger_pending.told_apart(session, min(every), max(every) + 1)
    silent = {
        gpu_id: {start: day for start, day in of.items() if (gpu_id, start) not in told}
        for gpu_id, of in waiting.items()
    }
    from_ms, to_ms = min(day.from_ms for day in every.values()), max(day.to_ms for day in every.values())
    ids = [gpu_id for gpu_id, of in silent.items() if of]
    seen = engines_by_hour(session.connection(), ids, from_ms, to_ms)
    return {
        gpu_id: {
            start: day
            for start, day in silent[gpu_id].items()
            if any(hour_ms in hours for hour_ms in range(day.from_ms, day.to_ms, HOUR_MS))
        }
        for gpu_id, hours in seen.items()
    }


def _with(
    one: Mapping[int, dict[int, Span]], other: Mapping[int, Mapping[int, Span]]
) -> dict[int, dict[int, Span]]:
    return {gpu_id: {**one.get(gpu_id, {}), **other.get(gpu_id, {})} for gpu_id in {*one, *other}}


def _runs(waiting: Mapping[int, Mapping[int, Span]]) -> dict[tuple[int, int], list[int]]:
    """GPUs by the spans of their consecutive days."""
    found: dict[tuple[int, int], list[int]] = {}
    for gpu_id, of in waiting.items():
        runs: list[list[int]] = []
        for start in sorted(of):
            day = of[start]
            if runs and runs[-1][1] == day.from_ms:
                runs[-1][1] = day.to_ms
            else:
                runs.append([day.from_ms, day.to_ms])
        for from_ms, to_ms in runs:
            found.setdefault((from_ms, to_ms), []).append(gpu_id)
    return found
