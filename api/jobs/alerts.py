"""Tell people of silent agents, sick GPUs, stuck jobs, budgets at risk and large new recommendations, every five minutes."""

from typing import Final

from sqlalchemy import Engine

from api.alerts import send
from api.jobs.model import Job
from api.smtp import MailError
from core.settings import Settings


def run(engine: Engine, settings: Settings, now_ms: int) -> str:
    """Look, and tell what is news. Raises ``MailError`` where the mail server cannot be used, so that health says so."""
    said, done = send(engine, settings, now_ms)
    if done.server_problems:
        raise MailError(said)
    return said


ALERTS: Final = Job("alerts", "Tell people what is wrong.", lambda _settings: {"minute": "3-59/5"}, run)
