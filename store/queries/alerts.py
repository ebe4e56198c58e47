"""Faults that people are told of: found, told, resolved."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import delete, select, text, update
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite
from sqlalchemy.orm import Session

from core.clock import from_ms, to_ms
from core.fault import Fault
from core.outbox import MessageState
from core.units import DAY_MS
from store.engine import begin_write
from store.models.alert import AlertRow
from store.models.alert_told import AlertToldRow
from store.models.mail_log import MailLogRow

KEPT_MS: Final = 90 * DAY_MS
"""How long a fault that is over is remembered: longer than any cool-down."""


@dataclass(frozen=True, slots=True)
class ToldAlert:
    """What one recipient was last told of a fault, or is being told.

    Attributes:
        told_at_ms: when that message was made. severity, figure: as they were then.
        refused_at_ms: it was refused for good; None: it was not.
        state: of the message; None: of one before messages were told apart.
    """

    told_at_ms: int
    severity: int
    figure: float | None
    refused_at_ms: int | None = None
    state: MessageState | None = None


@dataclass(frozen=True, slots=True)
class KnownAlert:
    """A fault as last found, and what people were told of it, by the key of the recipient."""

    key: str
    kind: str
    severity: int
    title: str
    detail: str
    figure: float | None
    first_at_ms: int
    last_at_ms: int
    resolved_at_ms: int | None
    told: Mapping[int, ToldAlert] = field(default_factory=dict)


def listing(session: Session) -> dict[str, KnownAlert]:
    """Every fault ever found, by key."""
    told: dict[int, dict[int, ToldAlert]] = {}
    statement = select(AlertToldRow, MailLogRow.state).outerjoin(
        MailLogRow, MailLogRow.id == AlertToldRow.message_id
    )
    for row, state in session.execute(statement):
        told.setdefault(row.alert_id, {})[row.recipient_id] = _told(row, state)
    rows = session.scalars(select(AlertRow).order_by(AlertRow.key))
    return {row.key: _known(row, told.get(row.id, {})) for row in rows}


def lock(session: Session) -> None:
    """Let nobody else look and tell until this transaction ends: two at once would tell people twice."""
    connection = session.connection()
    begin_write(connection)
    if connection.dialect.name == "postgresql":
        session.execute(text("LOCK TABLE alert IN SHARE ROW EXCLUSIVE MODE"))


def record(session: Session, found: Iterable[Fault], now_ms: int) -> None:
    """Take over what is there now; one that had gone begins anew, but what people were told of it stays known."""
    now = from_ms(now_ms)
    session.execute(delete(AlertRow).where(AlertRow.resolved_at < from_ms(now_ms - KEPT_MS)))
    rows = {row.key: row for row in session.scalars(select(AlertRow))}
    for fault in found:
        row = rows.get(fault.key)
        if row is None:
            row = AlertRow(key=fault.key, first_at=now)
            session.add(row)
        elif row.resolved_at is not None:
            row.first_at = now
        row.kind, row.severity, row.title = fault.kind.value, int(fault.severity), fault.title
        row.detail, row.figure = fault.detail, fault.figure
        row.last_at, row.resolved_at = now, None
    session.flush()


def resolve(session: Session, keys: Collection[str], now_ms: int) -> None:
    """These are over."""
    if keys:
        session.execute(
            update(AlertRow)
            .where(AlertRow.key.in_(keys))
            .values(resolved_at=from_ms(now_ms))
            .execution_options(synchronize_session=False)
        )


def tell(session: Session, recipient_id: int, message_id: int, found: Collection[Fault], now_ms: int) -> None:
    """A message is on its way that tells a recipient of these faults, which are recorded, as they are now."""
    if not found:
        return
    keys = select(AlertRow.key, AlertRow.id).where(AlertRow.key.in_([one.key for one in found]))
    ids = {row.key: row.id for row in session.execute(keys)}
    rows = [
        {
            "alert_id": ids[one.key],
            "recipient_id": recipient_id,
            "message_id": message_id,
            "told_at": from_ms(now_ms),
            "severity": int(one.severity),
            "figure": one.figure,
            "refused_at": None,
        }
        for one in found
    ]
    is_sqlite = session.connection().dialect.name == "sqlite"
    insert: Any = (insert_sqlite if is_sqlite else insert_postgresql)(AlertToldRow).values(rows)
    fresh = {
        name: insert.excluded[name] for name in ("message_id", "told_at", "severity", "figure", "refused_at")
    }
    session.execute(insert.on_conflict_do_update(index_elements=("alert_id", "recipient_id"), set_=fresh))


def untold(session: Session, message_id: int) -> None:
    """That message did not arrive: its recipient is told of its faults anew while they last."""
    session.execute(
        delete(AlertToldRow)
        .where(AlertToldRow.message_id == message_id)
        .execution_options(synchronize_session=False)
    )


def refused(session: Session, message_id: int, now_ms: int) -> None:
    """That message was refused for good: its recipient knows nothing of its faults."""
    session.execute(
        update(AlertToldRow)
        .where(AlertToldRow.message_id == message_id)
        .values(refused_at=from_ms(now_ms))
        .execution_options(synchronize_session=False)
    )


def forgive(session: Session, recipient_id: int) -> None:
    """A recipient takes messages: what it refused is told anew while it lasts."""
    session.execute(
        delete(AlertToldRow)
        .where(AlertToldRow.recipient_id == recipient_id, AlertToldRow.refused_at.is_not(None))
        .execution_options(synchronize_session=False)
    )


def _told(row: AlertToldRow, state: str | None) -> ToldAlert:
    return ToldAlert(
        to_ms(row.told_at),
        row.severity,
        row.figure,
        None if row.refused_at is None else to_ms(row.refused_at),
        None if state is None else MessageState(state),
    )


def _known(row: AlertRow, told: Mapping[int, ToldAlert]) -> KnownAlert:
    return KnownAlert(
        row.key,
        row.kind,
        row.severity,
        row.title,
        row.detail,
        row.figure,
        to_ms(row.first_at),
        to_ms(row.last_at),
        None if row.resolved_at is None else to_ms(row.resolved_at),
        told,
    )
