"""Tariffs: what electricity costs, as the user gave it."""

from decimal import Decimal

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey


class TariffRow(Base):
    """``ledger.tariff.Tariff`` as a row; tariffs of one name follow each other in time.

    ``periods`` is JSON (``store.queries.tariffs``), NULL where ``usd_per_kwh`` is the one price; exactly one is given.
    """

    __tablename__ = "tariff"
    __table_args__ = (
        CheckConstraint("(usd_per_kwh IS NULL) <> (periods IS NULL)", name="usd_per_kwh"),
        CheckConstraint("periods IS NULL OR time_zone IS NOT NULL", name="time_zone"),
        CheckConstraint("valid_to_ms IS NULL OR valid_to_ms > valid_from_ms", name="valid_to_ms"),
    )

    id: Mapped[SmallKey]
    name: Mapped[str] = mapped_column(index=True)
    time_zone: Mapped[str | None]
    usd_per_kwh: Mapped[Decimal | None]
    periods: Mapped[str | None]
    valid_from_ms: Mapped[int]
    valid_to_ms: Mapped[int | None]
    note: Mapped[str | None]
