"""Mail the weekly report at the hour the settings name; where that hour was missed, as soon as jobs run again.

A report that is late is of the days that it was to be of. A new installation, or one whose day or hour were set anew, has
missed nothing: its first report comes at the next hour.
"""

from datetime import timedelta
from typing import Final

from sqlalchemy import Engine

from api.jobs.model import Job
from api.mailing import send_weekly
from core.clock import from_ms, to_ms
from core.settings import Settings
from core.units import DAY_MS
from store.engine import session_scope
from store.queries import meta

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
CATCH_UP_MS: Final = 3 * DAY_MS
"""How long after its hour a report is still made by itself; later the next one is nearer than the last."""
LAST: Final = "weekly_report_hour"
"""Key in ``meta``: the set hour, in epoch milliseconds, whose report was made or is none that was missed."""


def run(engine: Engine, settings: Settings, now_ms: int) -> str:
    """Send the report of the last seven days, once to everybody; without recipients it is a dry run that says so."""
    try:
        return send_weekly(engine, settings, now_ms)
    finally:
        # Made, whoever could not be reached: that is the business of the job ``mail``.
        _keep(engine, set_hour_ms(settings, now_ms))


def make_up(engine: Engine, settings: Settings, now_ms: int) -> str | None:
    """Send the report whose hour went by unheeded, of the days before that hour; None: none is due.

    Safe to run twice, and beside another process: it is the message of that period, which there is once.
    """
    hour_ms = set_hour_ms(settings, now_ms)
    with session_scope(engine) as session:
        kept = meta.get(session, LAST)
    last = None if kept is None else int(kept)
    if last is None or not _is_set_hour(settings, last):
        _keep(engine, hour_ms)
        return None
    if last >= hour_ms or now_ms - hour_ms > CATCH_UP_MS:
        return None
    try:
        return send_weekly(engine, settings, now_ms, until_ms=hour_ms)
    finally:
        _keep(engine, hour_ms)


def _keep(engine: Engine, hour_ms: int) -> None:
    with session_scope(engine) as session:
        meta.put(session, LAST, str(hour_ms))


def _is_set_hour(settings: Settings, at_ms: int) -> bool:
    """Whether reports are still made on that day of the week at that hour."""
    at = from_ms(at_ms)
    return (at.weekday(), at.hour) == (settings.report_weekday, settings.report_hour_utc)


def set_hour_ms(settings: Settings, now_ms: int) -> int:
    """The last time at which a report was to be made, as the settings are now."""
    now = from_ms(now_ms)
    at = now.replace(hour=settings.report_hour_utc, minute=0, second=0, microsecond=0)
    at -= timedelta(days=(now.weekday() - settings.report_weekday) % 7)
    return to_ms(at if at <= now else at - timedelta(days=7))


def _cron(settings: Settings) -> dict[str, str]:
    return {
        "day_of_week": WEEKDAYS[settings.report_weekday],
        "hour": str(settings.report_hour_utc),
        "minute": "0",
    }


WEEKLY_REPORT: Final = Job("weekly-report", "Mail the weekly report.", _cron, run)
