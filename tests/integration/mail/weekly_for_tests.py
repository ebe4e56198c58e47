"""Who gets the weekly mail in its tests, and what was kept of sending it."""

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from core.user_recipient import Recipient
from store.engine import session_scope
from store.models.mail_log import MailLogRow
from store.queries import recipients
from tests.integration.api.fleet_for_tests import NOW

HEAD, FINANCE = "head@example.org", "finance@example.org"


def rows(engine: Engine) -> dict[str, tuple[str, int, str | None]]:
    """State, tries and last sentence by recipient."""
    with Session(engine) as session:
        return {
            row.recipient: (row.state, row.attempts, row.message)
            for row in session.scalars(select(MailLogRow))
        }


def states(engine: Engine) -> dict[str, str]:
    return {recipient: state for recipient, (state, _, _) in rows(engine).items()}


def add(engine: Engine, given: Recipient) -> int:
    with session_scope(engine) as session:
        return recipients.add(session, given, NOW)
