"""The user's budgets: written, listed, changed, removed. What was spent of one is the ledger's to say."""

from dataclasses import fields, replace
from typing import Any, Final

from sqlalchemy import delete as delete_rows
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from core.user_budget import Budget
from store.models.budget import BudgetRow

_FIELDS: Final = tuple(field.name for field in fields(Budget))
_EMPTY_IS_NULL: Final = ("scope_value", "note")


def listing(session: Session) -> list[Budget]:
    """Every budget, ended ones too, by first month."""
    table = BudgetRow.__table__
    return [_budget(row) for row in session.execute(select(table).order_by(table.c.from_month, table.c.id))]


def get(session: Session, budget_id: int) -> Budget | None:
    """One budget; None when there is none of that key."""
    table = BudgetRow.__table__
    row = session.execute(select(table).where(table.c.id == budget_id)).one_or_none()
    return None if row is None else _budget(row)


def add(session: Session, given: Budget) -> Budget:
    """Keep a budget; its ``id`` is new."""
    made = session.execute(insert(BudgetRow).values(**_columns(given)).returning(BudgetRow.id))
    return replace(given, id=made.scalar_one())


def change(session: Session, given: Budget) -> Budget:
    """Replace what a stored budget says."""
    session.execute(update(BudgetRow).where(BudgetRow.id == given.id).values(**_columns(given)))
    return given


def delete(session: Session, budget_id: int) -> bool:
    """Remove a budget, as if it had never been given; False when there is none of that key."""
    return bool(
        session.execute(delete_rows(BudgetRow).where(BudgetRow.id == budget_id).returning(BudgetRow.id)).all()
    )


def _columns(given: Budget) -> dict[str, Any]:
    values = {name: getattr(given, name) for name in _FIELDS if name != "id"}
    return values | {name: values[name] or None for name in _EMPTY_IS_NULL}


def _budget(row: Any) -> Budget:
    values = {name: getattr(row, name) for name in _FIELDS}
    return Budget(**values | {name: values[name] or "" for name in _EMPTY_IS_NULL})
