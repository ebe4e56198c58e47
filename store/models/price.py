"""Prices the user gives; the catalogue's stand in where there is none."""

from decimal import Decimal

from sqlalchemy import CheckConstraint, Integer
from sqlalchemy.orm import Mapped, mapped_column

from core.user_price import BILLINGS, Scope
from store.models.base import Base, SmallKey, one_of


class PriceRow(Base):
    """``core.user_price.UserPrice`` as a row: price of one GPU-hour for a scope and a span of time.

    ``amount_per_gpu_hour`` and ``upfront`` are whole micro-units of ``currency``. ``valid_to_ms`` NULL is "until
    further notice", ``gpus_per_unit`` NULL "all of a host". ``inputs`` is a JSON object.
    """

    __tablename__ = "price"
    __table_args__ = (
        CheckConstraint(one_of("scope_kind", Scope), name="scope_kind"),
        CheckConstraint("(scope_kind = 'all') = (scope_value IS NULL)", name="scope_value"),
        CheckConstraint(one_of("billing", BILLINGS), name="billing"),
        CheckConstraint("amount_per_gpu_hour >= 0", name="amount_per_gpu_hour"),
        CheckConstraint("gpus_per_unit >= 1", name="gpus_per_unit"),
        CheckConstraint("valid_to_ms IS NULL OR valid_to_ms > valid_from_ms", name="valid_to_ms"),
        CheckConstraint("committed_gpus >= 1", name="committed_gpus"),
        CheckConstraint("upfront >= 0", name="upfront"),
    )

    id: Mapped[SmallKey]
    scope_kind: Mapped[str]
    scope_value: Mapped[str | None]
    amount_per_gpu_hour: Mapped[Decimal]
    currency: Mapped[str]
    billing: Mapped[str]
    gpus_per_unit: Mapped[int | None] = mapped_column(Integer)
    valid_from_ms: Mapped[int]
    valid_to_ms: Mapped[int | None]
    commitment: Mapped[str | None]
    committed_gpus: Mapped[int | None] = mapped_column(Integer)
    upfront: Mapped[Decimal | None]
    inputs: Mapped[str | None]
    note: Mapped[str | None]
