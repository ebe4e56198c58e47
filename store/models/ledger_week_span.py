"""Accounting weeks whose sums hold."""

from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class LedgerWeekSpanRow(Base):
    """One accounting week: days that begin from ``day_ms`` and before ``to_ms``; removed with a change to any line of them."""

    __tablename__ = "ledger_week_span"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    day_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    to_ms: Mapped[int]
