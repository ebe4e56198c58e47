"""Check every day whether savings came true, of everything that people said was done."""

from typing import Final

from sqlalchemy import Engine

from api.jobs.model import Job
from api.resources import verifications
from core.settings import Settings
from store.engine import session_scope


def run(engine: Engine, settings: Settings, now_ms: int) -> str:
    """Compare before and after; each recommendation in a transaction of its own, so that none waits for all."""
    with session_scope(engine) as session:
        due = verifications.due(session)
    ended = {"verified": 0, "reopened": 0, "waiting": 0}
    for recommendation_id, acted_ms in due:
        with session_scope(engine) as session:
            ended[verifications.check(session, settings, now_ms, recommendation_id, acted_ms)] += 1
    return ", ".join(f"{count} {what}" for what, count in ended.items())


VERIFICATION: Final = Job(
    "verification",
    "Compare before and after of what was done.",
    lambda _settings: {"hour": "4", "minute": "37"},
    run,
)
