"""Messages on their way out: put in once, claimed by one process, ended. Every step is one short transaction."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite
from sqlalchemy.orm import Session

from core.clock import from_ms, to_ms
from core.outbox import STALE_CLAIM_MS, Channel, MessageKind, MessageState
from core.ownership import Owner
from core.user_recipient import Recipient
from core.verification import Ledger
from store.models.mail_log import MailLogRow
from store.queries.report_told import Told

_KEY: Final = ("kind", "period", "team", "project", "recipient")
_OPEN: Final = (MessageState.WAITING.value, MessageState.CLAIMED.value)


@dataclass(frozen=True, slots=True)
class Draft:
    """A message for one recipient.

    ``body``: a mail as RFC 5322 in ASCII, or a webhook's JSON. ``told``: actions that count as told once it is sent.
    """

    kind: MessageKind
    period: str
    recipient: Recipient
    subject: str
    body: str
    told: tuple[Told, ...] = ()


@dataclass(frozen=True, slots=True)
class Claimed:
    """A message that this process, and no other, is to send; ``attempts`` counts this one."""

    id: int
    kind: MessageKind
    period: str
    audience: Owner | None
    channel: Channel
    recipient: str
    shown: str
    recipient_id: int | None
    subject: str
    body: str
    attempts: int
    told: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Logged:
    """A message as the log has it. ``audience`` None: the whole fleet."""

    id: int
    kind: MessageKind
    period: str
    audience: Owner | None
    channel: Channel
    shown: str
    recipient_id: int | None
    subject: str
    state: MessageState
    attempts: int
    created_at_ms: int
    next_try_at_ms: int | None
    ended_at_ms: int | None
    message: str | None


def put(session: Session, draft: Draft, now_ms: int, *, again: bool = False) -> int | None:
    """Put a message in; its key, None where there is one of that kind, period, audience and recipient already.

    ``again``: one that has an end is sent once more.
    """
    owner = draft.recipient.audience or Owner("")
    values: dict[str, Any] = {
        "kind": draft.kind.value,
        "period": draft.period,
        "team": owner.team,
        "project": owner.project,
        "recipient": draft.recipient.key,
        "channel": draft.recipient.channel.value,
        "shown": draft.recipient.shown,
        "recipient_id": draft.recipient.id,
        "subject": draft.subject,
        "body": draft.body,
        "told": _told_json(draft.told),
        "state": MessageState.WAITING.value,
        "attempts": 0,
        "created_at": from_ms(now_ms),
        "next_try_at": from_ms(now_ms),
        "claimed_at": None,
        "ended_at": None,
        "message": None,
    }
    is_sqlite = session.connection().dialect.name == "sqlite"
    insert: Any = (insert_sqlite if is_sqlite else insert_postgresql)(MailLogRow).values(**values)
    if again:
        fresh = {name: value for name, value in values.items() if name not in _KEY}
        insert = insert.on_conflict_do_update(
            index_elements=_KEY, set_=fresh, where=MailLogRow.state.not_in(_OPEN)
        )
    else:
        insert = insert.on_conflict_do_nothing(index_elements=_KEY)
    return session.execute(insert.returning(MailLogRow.id)).scalar_one_or_none()


def known(session: Session, kind: MessageKind, period: str) -> set[tuple[Owner | None, str]]:
    """Audience and recipient of every message of a period, whatever became of it."""
    row = MailLogRow
    statement = select(row.team, row.project, row.recipient).where(
        row.kind == kind.value, row.period == period
    )
    return {(_owner(team, project), recipient) for team, project, recipient in session.execute(statement)}


def due(session: Session, now_ms: int, only: Collection[int] | None = None) -> list[int]:
    """Keys of messages to send now, the longest waiting first."""
    row = MailLogRow
    statement = (
        select(row.id)
        .where(row.state == MessageState.WAITING.value, row.next_try_at <= from_ms(now_ms))
        .order_by(row.next_try_at, row.id)
    )
    if only is not None:
        statement = statement.where(row.id.in_(only))
    return list(session.scalars(statement))


def claim(session: Session, message_id: int, now_ms: int) -> Claimed | None:
    """Take a message; None where another process did, or it is not due any more. Commit before sending."""
    row = MailLogRow
    statement = (
        update(row)
        .where(
            row.id == message_id,
            row.state == MessageState.WAITING.value,
            row.next_try_at <= from_ms(now_ms),
        )
        .values(
            state=MessageState.CLAIMED.value,
            claimed_at=from_ms(now_ms),
            next_try_at=None,
            attempts=row.attempts + 1,
        )
        .returning(
            row.id,
            row.kind,
            row.period,
            row.team,
            row.project,
            row.channel,
            row.recipient,
            row.shown,
            row.recipient_id,
            row.subject,
            row.body,
            row.attempts,
            row.told,
        )
        .execution_options(synchronize_session=False)
    )
    found = session.execute(statement).one_or_none()
    if found is None:
        return None
    return Claimed(
        found.id,
        MessageKind(found.kind),
        found.period,
        _owner(found.team, found.project),
        Channel(found.channel),
        found.recipient,
        found.shown,
        found.recipient_id,
        found.subject,
        found.body or "",
        found.attempts,
        _told_of(found.told),
    )


def end(
    session: Session, message_id: int, state: MessageState, now_ms: int, message: str | None = None
) -> None:
    """A claimed message has an end, which ``message`` explains; what it said is forgotten."""
    ended = from_ms(now_ms)
    _settle(session, message_id, state=state.value, ended_at=ended, message=message, body=None, told=None)


def postpone(session: Session, message_id: int, until_ms: int, message: str) -> None:
    """A claimed message waits for another try."""
    _settle(
        session,
        message_id,
        state=MessageState.WAITING.value,
        next_try_at=from_ms(until_ms),
        message=message,
    )


def _settle(session: Session, message_id: int, **values: Any) -> None:
    row = MailLogRow
    session.execute(
        update(row)
        .where(row.id == message_id, row.state == MessageState.CLAIMED.value)
        .values(**values)
        .execution_options(synchronize_session=False)
    )


def stale_claims(session: Session, now_ms: int) -> list[tuple[int, MessageKind, int]]:
    """Key, kind and tries of messages that were claimed long ago and have no end: their process died."""
    row = MailLogRow
    statement = (
        select(row.id, row.kind, row.attempts)
        .where(row.state == MessageState.CLAIMED.value, row.claimed_at <= from_ms(now_ms - STALE_CLAIM_MS))
        .order_by(row.id)
    )
    return [(key, MessageKind(kind), attempts) for key, kind, attempts in session.execute(statement)]


def newest(session: Session, limit: int) -> list[Logged]:
    """The last messages, newest first."""
    rows = session.scalars(
        select(MailLogRow).order_by(MailLogRow.created_at.desc(), MailLogRow.id.desc()).limit(limit)
    )
    return [_logged(row) for row in rows]


def last_by_recipient(session: Session) -> dict[tuple[str, Owner | None], Logged]:
    """The newest message to each recipient and audience."""
    row = MailLogRow
    last = (
        select(row.recipient, row.team, row.project, func.max(row.id).label("id"))
        .group_by(row.recipient, row.team, row.project)
        .subquery()
    )
    found = session.scalars(select(row).join(last, row.id == last.c.id))
    return {(one.recipient, _owner(one.team, one.project)): _logged(one) for one in found}


def open_count(session: Session) -> int:
    """Messages that wait, or are being sent."""
    return session.execute(select(func.count()).where(MailLogRow.state.in_(_OPEN))).scalar_one()


def drop_waiting(session: Session, recipient_id: int, now_ms: int) -> int:
    """End what waits for a recipient that was removed; how many."""
    row = MailLogRow
    ended = session.execute(
        update(row)
        .where(row.recipient_id == recipient_id, row.state == MessageState.WAITING.value)
        .values(
            state=MessageState.REFUSED.value,
            ended_at=from_ms(now_ms),
            next_try_at=None,
            body=None,
            told=None,
            message="the recipient was removed",
        )
        .returning(row.id)
        .execution_options(synchronize_session=False)
    )
    return len(ended.all())


def _told_json(told: Collection[Told]) -> str | None:
    return json.dumps([(one.fingerprint, one.ledger, one.figure) for one in told]) if told else None


def _told_of(text: str | None) -> tuple[Told, ...]:
    return tuple(
        Told(fingerprint, None if ledger is None else Ledger(ledger), figure)
        for fingerprint, ledger, figure in json.loads(text or "[]")
    )


def _owner(team: str, project: str) -> Owner | None:
    return Owner(team, project) if team else None


def _logged(row: MailLogRow) -> Logged:
    return Logged(
        id=row.id,
        kind=MessageKind(row.kind),
        period=row.period,
        audience=_owner(row.team, row.project),
        channel=Channel(row.channel),
        shown=row.shown,
        recipient_id=row.recipient_id,
        subject=row.subject,
        state=MessageState(row.state),
        attempts=row.attempts,
        created_at_ms=to_ms(row.created_at),
        next_try_at_ms=None if row.next_try_at is None else to_ms(row.next_try_at),
        ended_at_ms=None if row.ended_at is None else to_ms(row.ended_at),
        message=row.message,
    )
