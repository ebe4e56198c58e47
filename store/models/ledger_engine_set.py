"""Engines that were seen on one GPU in one hour, as sets: each kept once and for good."""

from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey


class LedgerEngineSetRow(Base):
    """Keys of the engines, ascending, as JSON text."""

    __tablename__ = "ledger_engine_set"

    id: Mapped[SmallKey]
    engine_ids: Mapped[str] = mapped_column(unique=True)
