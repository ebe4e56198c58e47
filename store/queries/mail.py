"""Mail that was sent, or tried."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.clock import from_ms
from store.models.mail_log import MailLogRow


def record(
    session: Session,
    *,
    sent_at_ms: int,
    kind: str,
    period: str | None,
    recipients: str,
    subject: str,
    ok: bool,
    message: str | None = None,
) -> None:
    """Keep one attempt; ``message`` says what went wrong, or whom the server refused."""
    session.add(
        MailLogRow(
            sent_at=from_ms(sent_at_ms),
            kind=kind,
            period=period,
            recipients=recipients,
            subject=subject,
            ok=ok,
            message=message,
        )
    )
    session.flush()


def was_sent(session: Session, kind: str, period: str) -> bool:
    """Whether the mail of that kind for that period went out already."""
    row = MailLogRow
    statement = select(row.id).where(row.kind == kind, row.period == period, row.ok).limit(1)
    return session.execute(statement).first() is not None
