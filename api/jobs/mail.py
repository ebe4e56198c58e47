"""Send what a mail server or webhook did not take, every five minutes; and a weekly report whose hour was missed."""

from typing import Final

from sqlalchemy import Engine

from api.jobs import weekly_report
from api.jobs.model import Job
from api.outgoing import deliver
from api.smtp import MailError
from core.settings import Settings


def run(engine: Engine, settings: Settings, now_ms: int) -> str:
    """Try again whatever is due. Raises ``MailError`` while the mail server cannot be used, so that health says so."""
    made_up = weekly_report.make_up(engine, settings, now_ms)
    if made_up is not None:
        return f"the weekly report's hour was missed: {made_up}"
    done = deliver(engine, settings, now_ms)
    if done.server_problems:
        raise MailError(str(done))
    return str(done)


MAIL: Final = Job("mail", "Try again what was not taken.", lambda _settings: {"minute": "4-59/5"}, run)
