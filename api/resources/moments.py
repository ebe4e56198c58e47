"""When something that people keep begins or ends: a time, an age, or a day, which begins at its zone's midnight."""

import re
from datetime import date
from typing import Final

from api.resources.scope import LATEST_MS, parse_time
from core.errors import UsageError
from ledger.tariff import local_day_ms

FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 9998
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_YEAR: Final = re.compile(r"\d{4}(?=-)")


def moment(text: str, time_zone: str, now_ms: int, flag: str) -> int:
    """Epoch milliseconds of a time; a day begins at midnight of ``time_zone``.

    A window may ask for more than there is, and is cut to the data. What is kept is not: a year out of bounds is refused.

    Raises:
        UsageError: neither time, day nor age, or a year out of bounds; names the flag. ValueError: there is no such zone.
    """
    given = text.strip()
    at_ms = parse_time(text, back_from_ms=now_ms, flag=flag)
    check_year(text, flag)
    if _DAY.fullmatch(given):
        at_ms = local_day_ms(date.fromisoformat(given), time_zone)
    return min(max(at_ms, 0), LATEST_MS)


def check_year(text: str, flag: str) -> None:
    """Refuse a year that would silently become another one. Raises ``UsageError``."""
    year = _YEAR.match(text.strip())
    if year is not None and not FIRST_YEAR <= int(year[0]) <= LAST_YEAR:
        raise UsageError(
            f"{flag} is {text!r}: give a year from {FIRST_YEAR} to {LAST_YEAR}, or leave it out where nothing begins or ends"
        )
