"""Accounting days whose totals hold."""

from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class LedgerTotalDayRow(Base):
    """One accounting day, by its start; removed in the transaction that changes a line of it."""

    __tablename__ = "ledger_total_day"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    day_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
