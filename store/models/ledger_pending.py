"""Days of GPUs whose ledger lines no longer hold."""

from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class LedgerPendingRow(Base):
    """One UTC day of one GPU; set in the transaction that writes its hours, a price, a tariff, an owner rule."""

    __tablename__ = "ledger_pending"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    gpu_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    day_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    mark: Mapped[int]
