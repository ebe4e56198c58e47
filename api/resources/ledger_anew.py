"""When much of the ledger waits to be priced anew: how far that is, and who may be shown what is stored until then.

After a change of prices, settings or shipped facts every question would price its window as it is asked: a minute and more for
a thousand GPUs. A page is shown the stored figures instead and says so; REST, the command line, exports and mail stay exact.
Where the accounting time zone changed, a page keeps to days of the one before until the job cuts them anew.
"""

from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy.orm import Session

from api.resources.ledger_basis import is_current
from core.clock import from_ms
from core.settings import Settings
from core.units import DAY_MS
from store.ledger_weeks import ZONE_KEY
from store.queries import ledger_months, ledger_pending, meta

MOST_AT_ONCE: Final = 3_000
"""GPU-days that are priced while somebody waits: a few seconds."""
LIVE_MS: Final = 2 * DAY_MS
"""Newer days wait to be priced all the time, because samples arrive."""
KEY: Final = "ledger_anew"
"""Key in ``meta``: when pricing anew began, in epoch milliseconds, and GPU-days then."""
_SHOWN: Final = "shows_stored_figures"
_FOUND: Final = "ledger_anew"
_ASKED_ZONE: Final = "accounting_time_zone_asked"


@dataclass(frozen=True, slots=True)
class Anew:
    """How far pricing anew is.

    Attributes:
        since_ms: when the job began; None: it has not yet.
        left, of: GPU-days that wait, of those that waited then; None: not counted yet.
        zones: the time zone whose days are shown, and the one that is set; None: the same.
        is_exact: figures are as of now, only their days are of another zone. is_closed: months are closed in it, so they stay.
    """

    since_ms: int | None
    left: int | None
    of: int | None
    zones: tuple[str, str] | None = None
    is_exact: bool = False
    is_closed: bool = False

    def __str__(self) -> str:
        """A notice for people."""
        if self.zones is not None and self.is_closed:
            return (
                f"accounting_time_zone is {self.zones[1]}, but months are closed with days of {self.zones[0]}: set it back. "
                f"Days, weeks and months stay those of {self.zones[0]}."
            )
        began = (
            "begins within five minutes (job ledger)"
            if self.since_ms is None
            else f"goes on since {from_ms(self.since_ms):%H:%M} UTC"
        )
        done = ""
        if self.since_ms is not None and self.left is not None and self.of is not None:
            done = f": {max(0, self.of - self.left):,} of {self.of:,} GPU-days are done"
        days = (
            "" if self.zones is None else f"Until then days, weeks and months are those of {self.zones[0]}."
        )
        old = "Days that wait are shown as they were priced before; days never priced are priced while the page loads."
        what = "The accounting time zone" if self.is_exact else "Prices or settings"
        shown = " ".join(part for part in (days, "" if self.is_exact else old) if part)
        return f"{what} changed. Pricing anew {began}{done}. {shown}"


def show_stored(session: Session) -> None:
    """Whoever reads with this session is told by ``anew``: while much waits, what is stored may be shown."""
    session.info[_SHOWN] = True


def in_stored_zone(session: Session, settings: Settings) -> Settings:
    """Settings for a page: where much is stored in days of the time zone before, with that one."""
    stored = meta.get(session, ZONE_KEY)
    if stored is None or stored == settings.accounting_time_zone:
        return settings
    if ledger_pending.known_days(session) < MOST_AT_ONCE:
        return settings
    session.info[_ASKED_ZONE] = settings.accounting_time_zone
    return replace(settings, accounting_time_zone=stored)


def as_set(session: Session, settings: Settings) -> Settings:
    """What ``in_stored_zone`` was given."""
    return replace(
        settings, accounting_time_zone=session.info.get(_ASKED_ZONE, settings.accounting_time_zone)
    )


def anew(session: Session, settings: Settings, now_ms: int) -> Anew | None:
    """How far pricing anew is, where stored figures are shown for it; None: everything is exact. Found once a session."""
    if not session.info.get(_SHOWN):
        return None
    if _FOUND not in session.info:
        session.info[_FOUND] = _find(session, settings, now_ms)
    found: Anew | None = session.info[_FOUND]
    return found


def _find(session: Session, settings: Settings, now_ms: int) -> Anew | None:
    asked = session.info.get(_ASKED_ZONE)
    if asked is not None:
        zones = (settings.accounting_time_zone, asked)
        is_closed = bool(ledger_months.listing(session))
        return Anew(None, None, None, zones, is_current(session, settings), is_closed)
    if not is_current(session, settings):
        if ledger_pending.known_days(session) < MOST_AT_ONCE:
            return None
        return Anew(None, None, None)
    left = ledger_pending.count(session, before_ms=now_ms - LIVE_MS)
    begun = meta.get(session, KEY)
    # The last of many is quickly priced: then there is nothing to say any more.
    if left < MOST_AT_ONCE:
        return None
    if begun is None:
        return Anew(None, left, None)
    since_ms, of = (int(part) for part in begun.split())
    return Anew(since_ms, left, max(of, left))


def begin(session: Session, now_ms: int) -> None:
    """The job begins; where an earlier run was ended in the middle, it goes on."""
    left = ledger_pending.count(session, before_ms=now_ms - LIVE_MS)
    if left < MOST_AT_ONCE:
        meta.drop(session, KEY)
    elif meta.get(session, KEY) is None:
        meta.put(session, KEY, f"{now_ms} {left}")


def end(session: Session) -> None:
    """The job has done what there was."""
    meta.drop(session, KEY)
