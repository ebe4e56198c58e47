"""Prices the user gives; the catalogue's stand in where there is none."""

from decimal import Decimal

from sqlalchemy import CheckConstraint, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey, one_of

SCOPES = ("gpu_uuid", "host", "model", "all")
BILLINGS = ("on_demand", "reserved", "spot", "owned")


class PriceRow(Base):
    """Price of one GPU-hour for a scope and a span of time.

    ``valid_to_ms`` NULL is "until further notice", ``gpus_per_unit`` NULL "all of a host".
    """

    __tablename__ = "price"
    __table_args__ = (
        CheckConstraint(one_of("scope_kind", SCOPES), name="scope_kind"),
        CheckConstraint("(scope_kind = 'all') = (scope_value IS NULL)", name="scope_value"),
        CheckConstraint(one_of("billing", BILLINGS), name="billing"),
        CheckConstraint("usd_per_gpu_hour >= 0", name="usd_per_gpu_hour"),
        CheckConstraint("gpus_per_unit >= 1", name="gpus_per_unit"),
        CheckConstraint("valid_to_ms IS NULL OR valid_to_ms > valid_from_ms", name="valid_to_ms"),
    )

    id: Mapped[SmallKey]
    scope_kind: Mapped[str]
    scope_value: Mapped[str | None]
    usd_per_gpu_hour: Mapped[Decimal]
    billing: Mapped[str]
    gpus_per_unit: Mapped[int | None] = mapped_column(Integer)
    valid_from_ms: Mapped[int]
    valid_to_ms: Mapped[int | None]
    note: Mapped[str | None]
