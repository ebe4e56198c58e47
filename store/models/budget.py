"""Budgets: how much a part of the fleet may cost a month, as the user gave them."""

from decimal import Decimal

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped

from core.user_budget import BudgetScope
from store.models.base import Base, SmallKey, one_of


class BudgetRow(Base):
    """``core.user_budget.Budget`` as a row; ``scope_value``, ``to_month`` and ``note`` are NULL where not said."""

    __tablename__ = "budget"
    __table_args__ = (
        CheckConstraint(one_of("scope_kind", BudgetScope), name="scope_kind"),
        CheckConstraint("(scope_kind = 'all') = (scope_value IS NULL)", name="scope_value"),
        CheckConstraint("amount_usd >= 0", name="amount_usd"),
        CheckConstraint("to_month IS NULL OR to_month >= from_month", name="to_month"),
    )

    id: Mapped[SmallKey]
    name: Mapped[str]
    scope_kind: Mapped[str]
    scope_value: Mapped[str | None]
    amount_usd: Mapped[Decimal]
    from_month: Mapped[str]
    to_month: Mapped[str | None]
    note: Mapped[str | None]
