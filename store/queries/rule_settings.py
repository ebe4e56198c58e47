"""Thresholds and exclusions that people keep: written, listed, ended. What is ended stays as history."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from core.clock import from_ms
from core.rule_settings import Selector
from store.models.rule_exclusion import RuleExclusionRow
from store.models.rule_threshold import RuleThresholdRow


@dataclass(frozen=True, slots=True)
class KeptThresholds:
    """Values of one rule for a part of the fleet; without selectors for all of it. ``ended_at`` None: in force."""

    id: int
    rule_id: str
    selectors: tuple[Selector, ...]
    values: Mapping[str, Any]
    note: str
    who: str | None
    created_at: datetime
    ended_at: datetime | None = None
    ended_by: str | None = None


@dataclass(frozen=True, slots=True)
class KeptExclusion:
    """A part of the fleet to leave alone from a time to a time; ``rule_id`` None: by every rule.

    ``ended_at``: when somebody ended it early; None: nobody did.
    """

    id: int
    selectors: tuple[Selector, ...]
    rule_id: str | None
    from_at: datetime
    until_at: datetime
    reason: str
    who: str | None
    created_at: datetime
    ended_at: datetime | None = None
    ended_by: str | None = None


def thresholds(session: Session, *, ended: bool = False) -> list[KeptThresholds]:
    """Those in force, the latest last; or also those that are ended."""
    table = RuleThresholdRow.__table__
    statement = select(table).order_by(table.c.id)
    if not ended:
        statement = statement.where(table.c.ended_at.is_(None))
    return [_thresholds(row) for row in session.execute(statement)]


def add_thresholds(
    session: Session,
    *,
    rule_id: str,
    selectors: Sequence[Selector],
    values: Mapping[str, Any],
    note: str,
    who: str | None,
    now_ms: int,
) -> KeptThresholds:
    """Keep values of a rule."""
    made = session.execute(
        insert(RuleThresholdRow)
        .values(
            rule_id=rule_id,
            selectors=_text(selectors),
            threshold_values=json.dumps(dict(values), separators=(",", ":")),
            note=note,
            who=who,
            created_at=from_ms(now_ms),
        )
        .returning(RuleThresholdRow.id)
    )
    return KeptThresholds(
        made.scalar_one(), rule_id, tuple(selectors), dict(values), note, who, from_ms(now_ms)
    )


def end_thresholds(session: Session, id_: int, now_ms: int, who: str | None) -> bool:
    """End them; False when there are none of that key in force."""
    row = RuleThresholdRow
    return _ended(session, update(row).where(row.id == id_).returning(row.id), row, now_ms, who)


def exclusions(session: Session, *, after: datetime | None = None) -> list[KeptExclusion]:
    """Every exclusion, by end; with ``after`` those alone that nobody ended and that end later than it."""
    table = RuleExclusionRow.__table__
    statement = select(table).order_by(table.c.until_at, table.c.id)
    if after is not None:
        statement = statement.where(table.c.ended_at.is_(None), table.c.until_at > after)
    return [_exclusion(row) for row in session.execute(statement)]


def exclusion(session: Session, id_: int) -> KeptExclusion | None:
    """One exclusion; None when there is none of that key."""
    table = RuleExclusionRow.__table__
    row = session.execute(select(table).where(table.c.id == id_)).one_or_none()
    return None if row is None else _exclusion(row)


def add_exclusion(
    session: Session,
    *,
    selectors: Sequence[Selector],
    rule_id: str | None,
    from_at: datetime,
    until_at: datetime,
    reason: str,
    who: str | None,
    now_ms: int,
) -> KeptExclusion:
    """Keep an exclusion."""
    values: dict[str, Any] = {
        "rule_id": rule_id,
        "from_at": from_at,
        "until_at": until_at,
        "reason": reason,
        "who": who,
        "created_at": from_ms(now_ms),
    }
    made = session.execute(
        insert(RuleExclusionRow).values(selectors=_text(selectors), **values).returning(RuleExclusionRow.id)
    )
    return KeptExclusion(id=made.scalar_one(), selectors=tuple(selectors), **values)


def end_exclusion(session: Session, id_: int, now_ms: int, who: str | None) -> bool:
    """End it before its time; False when there is none of that key that nobody ended."""
    row = RuleExclusionRow
    return _ended(session, update(row).where(row.id == id_).returning(row.id), row, now_ms, who)


def _ended(session: Session, statement: Any, row: Any, now_ms: int, who: str | None) -> bool:
    changed = statement.where(row.ended_at.is_(None)).values(ended_at=from_ms(now_ms), ended_by=who)
    return bool(session.execute(changed).all())


def _text(selectors: Sequence[Selector]) -> str:
    return json.dumps({one.kind: one.pattern for one in selectors}, separators=(",", ":"))


def _selectors(text: str) -> tuple[Selector, ...]:
    return tuple(Selector(kind, pattern) for kind, pattern in json.loads(text).items())


def _thresholds(row: Any) -> KeptThresholds:
    return KeptThresholds(
        id=row.id,
        rule_id=row.rule_id,
        selectors=_selectors(row.selectors),
        values=json.loads(row.threshold_values),
        note=row.note,
        who=row.who,
        created_at=row.created_at,
        ended_at=row.ended_at,
        ended_by=row.ended_by,
    )


def _exclusion(row: Any) -> KeptExclusion:
    return KeptExclusion(
        id=row.id,
        selectors=_selectors(row.selectors),
        rule_id=row.rule_id,
        from_at=row.from_at,
        until_at=row.until_at,
        reason=row.reason,
        who=row.who,
        created_at=row.created_at,
        ended_at=row.ended_at,
        ended_by=row.ended_by,
    )
