"""Every job there is, and when each runs next. A new job is a file in ``api/jobs`` and a line here."""

from datetime import UTC
from typing import Final

from apscheduler.triggers.cron import CronTrigger

from api.jobs.advice import ADVICE
from api.jobs.alerts import ALERTS
from api.jobs.ledger import LEDGER
from api.jobs.mail import MAIL
from api.jobs.model import Job
from api.jobs.retention import RETENTION
from api.jobs.roll_up import ROLL_UP
from api.jobs.verification import VERIFICATION
from api.jobs.weekly_report import WEEKLY_REPORT
from core.clock import from_ms, to_ms
from core.settings import Settings

JOBS: Final[tuple[Job, ...]] = (ROLL_UP, LEDGER, ADVICE, VERIFICATION, RETENTION, WEEKLY_REPORT, ALERTS, MAIL)


def trigger(job: Job, settings: Settings) -> CronTrigger:
    """When the scheduler starts a job; UTC."""
    return CronTrigger(**job.cron(settings), timezone="UTC")


def next_run_ms(job: Job, settings: Settings, now_ms: int) -> int | None:
    """When a running jobs process starts it next; None: never again."""
    at = trigger(job, settings).get_next_fire_time(None, from_ms(now_ms))
    return None if at is None else to_ms(at.astimezone(UTC))
