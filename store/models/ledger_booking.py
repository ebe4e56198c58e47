"""Corrections of closed months, as they were booked."""

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey


class LedgerBookingRow(Base):
    """One correction of a closed month; its lines in ``ledger_day`` are what it adds to the month."""

    __tablename__ = "ledger_booking"

    id: Mapped[SmallKey]
    month: Mapped[str] = mapped_column(ForeignKey("ledger_month.month"), index=True)
    booked_at: Mapped[datetime]
    reason: Mapped[str]
