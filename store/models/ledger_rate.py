"""Rates the ledger priced with: kept, so that a line can always say which price it used."""

from decimal import Decimal

from sqlalchemy import CheckConstraint, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey, one_of

BILLINGS = ("on_demand", "reserved", "spot", "committed", "owned")


class LedgerRateRow(Base):
    """``core.evidence.Price`` as it was; ``digest`` tells one from another.

    ``price_id`` is the user's price, NULL for the catalogue's; without a foreign key: a price may be removed, what it
    priced in a closed month stays. ``list_usd_per_gpu_hour`` is the catalogue's price beside it.
    """

    __tablename__ = "ledger_rate"
    __table_args__ = (CheckConstraint(one_of("billing", BILLINGS), name="billing"),)

    id: Mapped[SmallKey]
    digest: Mapped[str] = mapped_column(unique=True)
    usd_per_gpu_hour: Mapped[Decimal]
    list_usd_per_gpu_hour: Mapped[Decimal | None]
    billing: Mapped[str]
    basis: Mapped[str]
    as_of: Mapped[str]
    from_user: Mapped[bool]
    gpus_per_unit: Mapped[int] = mapped_column(Integer)
    price_id: Mapped[int | None] = mapped_column(Integer)
    commitment: Mapped[str | None]
