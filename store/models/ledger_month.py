"""Closed months: their lines are frozen, later changes become corrections."""

from datetime import datetime
from decimal import Decimal

from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class LedgerMonthRow(Base):
    """A month of the accounting time zone (``2026-10``) that was closed for chargeback, by whom, at which totals."""

    __tablename__ = "ledger_month"

    month: Mapped[str] = mapped_column(primary_key=True)
    from_ms: Mapped[int]
    to_ms: Mapped[int]
    closed_at: Mapped[datetime]
    closed_by: Mapped[str | None]
    lines: Mapped[int] = mapped_column(Integer)
    cost_usd: Mapped[Decimal]
    note: Mapped[str | None]
