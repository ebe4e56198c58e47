"""Owner rules: kept in their order. What a rule claims is the ledger's to say."""

from dataclasses import replace
from typing import Any

from sqlalchemy import delete, func, select, text, update
from sqlalchemy import insert as insert_row
from sqlalchemy.orm import Session

from core.ownership import Owner, OwnerConditions, OwnerRule
from store.engine import begin_write
from store.keys import attributes_of, attributes_text
from store.models.owner_rule import OwnerRuleRow


def listing(session: Session) -> list[OwnerRule]:
    """Every rule in its order, ended ones too."""
    table = OwnerRuleRow.__table__
    statement = select(table).order_by(table.c.position, table.c.id)
    return [_rule(row) for row in session.execute(statement)]


def lock(session: Session) -> None:
    """Let nobody else write rules until this transaction ends: whoever looks before it writes calls it first."""
    connection = session.connection()
    begin_write(connection)
    if connection.dialect.name == "postgresql":
        session.execute(text("LOCK TABLE owner_rule IN SHARE ROW EXCLUSIVE MODE"))


def insert(session: Session, rule: OwnerRule, position: int | None = None) -> OwnerRule:
    """Keep a rule at a place (1 is first); None or beyond the end: last. Those from there on move one down."""
    place = _place(session, position)
    _shift(session, OwnerRuleRow.position >= place, 1)
    made = session.execute(
        insert_row(OwnerRuleRow).values(position=place, **_columns(rule)).returning(OwnerRuleRow.id)
    )
    return replace(rule, id=made.scalar_one())


def change(session: Session, rule: OwnerRule) -> OwnerRule:
    """Replace what a stored rule says; its place stays."""
    session.execute(update(OwnerRuleRow).where(OwnerRuleRow.id == rule.id).values(**_columns(rule)))
    return rule


def move(session: Session, rule_id: int, position: int) -> None:
    """Put a stored rule at a place (1 is first); beyond the end: last."""
    old = _position(session, rule_id)
    _shift(session, OwnerRuleRow.position > old, -1)
    session.execute(update(OwnerRuleRow).where(OwnerRuleRow.id == rule_id).values(position=0))
    place = min(_place(session, position), _last(session) + 1)
    _shift(session, OwnerRuleRow.position >= place, 1)
    session.execute(update(OwnerRuleRow).where(OwnerRuleRow.id == rule_id).values(position=place))


def remove(session: Session, rule_id: int) -> None:
    """Remove a rule, as if it had never been; later ones move up."""
    old = _position(session, rule_id)
    session.execute(delete(OwnerRuleRow).where(OwnerRuleRow.id == rule_id))
    _shift(session, OwnerRuleRow.position > old, -1)


def remove_all(session: Session) -> None:
    """Remove every rule."""
    session.execute(delete(OwnerRuleRow))


def _last(session: Session) -> int:
    return session.execute(select(func.max(OwnerRuleRow.position))).scalar() or 0


def _place(session: Session, position: int | None) -> int:
    end = _last(session) + 1
    return end if position is None else max(1, min(position, end))


def _position(session: Session, rule_id: int) -> int:
    return session.execute(select(OwnerRuleRow.position).where(OwnerRuleRow.id == rule_id)).scalar_one()


def _shift(session: Session, where: Any, by: int) -> None:
    session.execute(update(OwnerRuleRow).where(where).values(position=OwnerRuleRow.position + by))


def _columns(rule: OwnerRule) -> dict[str, Any]:
    conditions = rule.conditions
    return {
        "user_name": conditions.user,
        "namespace": conditions.namespace,
        "slurm_account": conditions.slurm_account,
        "unit": conditions.unit,
        "image": conditions.image,
        "kind": conditions.kind,
        "labels": attributes_text(dict(conditions.labels)),
        "host": conditions.host,
        "host_labels": attributes_text(dict(conditions.host_labels)),
        "team": rule.owner.team,
        "project": rule.owner.project,
        "cost_centre": rule.owner.cost_centre,
        "valid_from_ms": rule.valid_from_ms,
        "valid_to_ms": rule.valid_to_ms,
        "note": rule.note,
    }


def _rule(row: Any) -> OwnerRule:
    return OwnerRule(
        id=row.id,
        owner=Owner(row.team, row.project, row.cost_centre),
        conditions=OwnerConditions(
            user=row.user_name,
            namespace=row.namespace,
            slurm_account=row.slurm_account,
            unit=row.unit,
            image=row.image,
            kind=row.kind,
            labels=attributes_of(row.labels),
            host=row.host,
            host_labels=attributes_of(row.host_labels),
        ),
        valid_from_ms=row.valid_from_ms,
        valid_to_ms=row.valid_to_ms,
        note=row.note,
    )
