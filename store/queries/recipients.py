"""Who gets mail: kept, listed, changed, ended."""

from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from core.clock import from_ms, to_ms
from core.ownership import Owner
from core.user_recipient import QuietWeek, Recipient
from store.models.recipient import RecipientRow


def listing(session: Session) -> list[Recipient]:
    """Every recipient that was not removed, those of the whole fleet first, then by owner and address."""
    table = RecipientRow.__table__
    statement = select(table).where(table.c.ended_at.is_(None))
    ordered = statement.order_by(table.c.team, table.c.project, table.c.channel, table.c.address, table.c.id)
    return [_recipient(row) for row in session.execute(ordered)]


def get(session: Session, recipient_id: int) -> Recipient | None:
    """One recipient; None when there is none of that key, or it was removed."""
    table = RecipientRow.__table__
    statement = select(table).where(table.c.id == recipient_id, table.c.ended_at.is_(None))
    row = session.execute(statement).one_or_none()
    return None if row is None else _recipient(row)


def add(session: Session, given: Recipient, now_ms: int) -> int:
    """Keep a recipient; its key."""
    values = _columns(given) | {"created_at": from_ms(now_ms)}
    return session.execute(insert(RecipientRow).values(**values).returning(RecipientRow.id)).scalar_one()


def change(session: Session, given: Recipient) -> None:
    """Replace what a stored recipient says."""
    session.execute(update(RecipientRow).where(RecipientRow.id == given.id).values(**_columns(given)))


def end(session: Session, recipient_id: int, now_ms: int) -> None:
    """Remove a recipient; its row stays for the messages that name it."""
    session.execute(
        update(RecipientRow).where(RecipientRow.id == recipient_id).values(ended_at=from_ms(now_ms))
    )


def _columns(given: Recipient) -> dict[str, Any]:
    owner = given.audience or Owner("")
    return {
        "channel": given.channel.value,
        "address": given.address,
        "team": owner.team,
        "project": owner.project,
        "weekly": given.weekly,
        "alerts": given.alerts,
        "quiet_week": given.quiet_week.value,
        "paused_until": None if given.paused_until_ms is None else from_ms(given.paused_until_ms),
        "note": given.note,
    }


def _recipient(row: Any) -> Recipient:
    return Recipient(
        id=row.id,
        address=row.address,
        audience=Owner(row.team, row.project) if row.team else None,
        weekly=row.weekly,
        alerts=row.alerts,
        quiet_week=QuietWeek(row.quiet_week),
        paused_until_ms=None if row.paused_until is None else to_ms(row.paused_until),
        note=row.note,
        created_at_ms=to_ms(row.created_at),
    )
