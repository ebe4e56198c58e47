"""Faults that people are told of: found, told, resolved."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import delete, select, text, update
from sqlalchemy.orm import Session

from core.clock import from_ms, to_ms
from core.fault import Fault
from core.units import DAY_MS
from store.engine import begin_write
from store.models.alert import AlertRow

KEPT_MS: Final = 90 * DAY_MS
"""How long a fault that is over is remembered: longer than any cool-down."""


@dataclass(frozen=True, slots=True)
class KnownAlert:
    """A fault as last found, and what people were told of it; ``sent_at_ms`` None: nothing yet."""

    key: str
    kind: str
    severity: int
    title: str
    detail: str
    figure: float | None
    first_at_ms: int
    last_at_ms: int
    resolved_at_ms: int | None
    sent_at_ms: int | None
    sent_severity: int | None
    sent_figure: float | None


def listing(session: Session) -> dict[str, KnownAlert]:
    """Every fault ever found, by key."""
    rows = session.scalars(select(AlertRow).order_by(AlertRow.key))
    return {row.key: _known(row) for row in rows}


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
    _each(session, keys, resolved_at=from_ms(now_ms))


def told(session: Session, found: Iterable[Fault], now_ms: int) -> None:
    """People are being told of these, as they are now."""
    for fault in found:
        _each(
            session,
            [fault.key],
            sent_at=from_ms(now_ms),
            sent_severity=int(fault.severity),
            sent_figure=fault.figure,
        )


def untold(session: Session, sent_at_ms: int) -> int:
    """The message of that moment reached nobody: tell of its faults again; how many."""
    row = AlertRow
    changed = session.execute(
        update(row)
        .where(row.sent_at == from_ms(sent_at_ms))
        .values(sent_at=None, sent_severity=None, sent_figure=None)
        .returning(row.id)
        .execution_options(synchronize_session=False)
    )
    return len(changed.all())


def _each(session: Session, keys: Collection[str], **values: object) -> None:
    if keys:
        session.execute(
            update(AlertRow)
            .where(AlertRow.key.in_(keys))
            .values(**values)
            .execution_options(synchronize_session=False)
        )


def _known(row: AlertRow) -> KnownAlert:
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
        None if row.sent_at is None else to_ms(row.sent_at),
        row.sent_severity,
        row.sent_figure,
    )
