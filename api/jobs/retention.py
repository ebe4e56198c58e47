"""Drop raw samples and hours past their age, every night."""

from typing import Final

from sqlalchemy import Engine

from api.jobs.model import Job
from core.settings import Settings
from store.retention import purge


def run(engine: Engine, settings: Settings, now_ms: int) -> str:
    """Keep ``raw_days`` of samples and ``hour_days`` of hours."""
    result = purge(engine, now_ms=now_ms, raw_days=settings.raw_days, hour_days=settings.hour_days)
    return str(result)


RETENTION: Final = Job(
    "retention",
    "Drop samples and hours past their age.",
    lambda _settings: {"hour": "3", "minute": "17"},
    run,
)
