"""Mail the weekly report at the hour the settings name."""

from typing import Final

from sqlalchemy import Engine

from api.jobs.model import Job
from api.mail import send_weekly
from core.settings import Settings
from store.engine import session_scope

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def run(engine: Engine, settings: Settings, now_ms: int) -> str:
    """Send the report of the last seven days once; without recipients it is a dry run that says so."""
    with session_scope(engine) as session:
        return send_weekly(session, settings, now_ms)


def _cron(settings: Settings) -> dict[str, str]:
    return {
        "day_of_week": WEEKDAYS[settings.report_weekday],
        "hour": str(settings.report_hour_utc),
        "minute": "0",
    }


WEEKLY_REPORT: Final = Job("weekly-report", "Mail the weekly report.", _cron, run)
