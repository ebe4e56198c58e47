"""Fold new and late samples into hours, every minute."""

from typing import Final

from sqlalchemy import Engine

from api.jobs.model import Job
from core.settings import Settings
from core.sharing import ShareMethod
from store.rollup import roll_up


def run(engine: Engine, settings: Settings, now_ms: int) -> str:
    """Recompute every hour that samples touched since the last run."""
    result = roll_up(engine, now_ms=now_ms, share_method=ShareMethod(settings.usage_share_method))
    said = (
        f"{result.gpu_hours} GPU hours, {result.engine_hours} engine hours, {result.usage_hours} usage hours"
    )
    return (
        f"{said}; {result.partial_hours} came late in part and stay incomplete"
        if result.partial_hours
        else said
    )


ROLL_UP: Final = Job(
    "roll-up", "Fold new and late samples into hours.", lambda _settings: {"minute": "*"}, run
)
