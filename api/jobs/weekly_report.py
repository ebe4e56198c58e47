"""Mail the weekly report at the hour the settings name; where that hour was missed, as soon as jobs run again."""

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
CATCH_UP_MS: Final = DAY_MS
"""How long after its hour a report is still made by itself; later the days in it would be others."""
LAST: Final = "weekly_report_hour"
"""Key in ``meta``: the set hour, in epoch milliseconds, whose report was made."""


def run(engine: Engine, settings: Settings, now_ms: int) -> str:
    """Send the report of the last seven days, once to everybody; without recipients it is a dry run that says so."""
    try:
        return send_weekly(engine, settings, now_ms)
    finally:
        # Made, whoever could not be reached: that is the business of the job ``mail``.
        with session_scope(engine) as session:
            meta.put(session, LAST, str(set_hour_ms(settings, now_ms)))


def missed(engine: Engine, settings: Settings, now_ms: int) -> bool:
    """Whether the last set hour went by, less than a day ago, without a report: no jobs process was there."""
    hour_ms = set_hour_ms(settings, now_ms)
    if now_ms - hour_ms > CATCH_UP_MS:
        return False
    with session_scope(engine) as session:
        last = meta.get(session, LAST)
    return last is None or int(last) < hour_ms


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
