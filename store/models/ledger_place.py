"""Where the ledger took energy terms from: kept, so that a line can say which tariff, PUE and grid figure it used."""

from decimal import Decimal

from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey


class LedgerPlaceRow(Base):
    """``core.place.Place`` without the price of one hour; ``usd_per_kwh`` NULL: no tariff, or one by time of use."""

    __tablename__ = "ledger_place"

    id: Mapped[SmallKey]
    digest: Mapped[str] = mapped_column(unique=True)
    site: Mapped[str]
    tariff: Mapped[str | None]
    usd_per_kwh: Mapped[Decimal | None]
    pue: Mapped[float]
    host_share_ratio: Mapped[float]
    host_share_method: Mapped[str]
    carbon_g_per_kwh: Mapped[float | None]
    carbon_code: Mapped[str | None]
    carbon_year: Mapped[int | None] = mapped_column(Integer)
    carbon_method: Mapped[str | None]
    pays_for_power: Mapped[bool]
