"""Site profiles: energy terms of hosts, clusters or everything, as the user gave them."""

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped

from store.models.base import Base, SmallKey, one_of

SCOPES = ("host", "cluster", "all")


class SiteRow(Base):
    """``ledger.place.Profile`` as a row; what it leaves open is NULL. ``tariff`` is the name of one, over all its prices."""

    __tablename__ = "site"
    __table_args__ = (
        CheckConstraint(one_of("scope_kind", SCOPES), name="scope_kind"),
        CheckConstraint("(scope_kind = 'all') = (scope_value IS NULL)", name="scope_value"),
        CheckConstraint("pue >= 1", name="pue"),
        CheckConstraint("host_share_ratio >= 0", name="host_share_ratio"),
        CheckConstraint("host_rest_ratio >= 0", name="host_rest_ratio"),
        CheckConstraint("carbon_g_per_kwh >= 0", name="carbon_g_per_kwh"),
        CheckConstraint("valid_to_ms IS NULL OR valid_to_ms > valid_from_ms", name="valid_to_ms"),
    )

    id: Mapped[SmallKey]
    name: Mapped[str]
    scope_kind: Mapped[str]
    scope_value: Mapped[str | None]
    tariff: Mapped[str | None]
    pue: Mapped[float | None]
    host_share_ratio: Mapped[float | None]
    host_share_measured: Mapped[bool]
    host_rest_ratio: Mapped[float | None]
    grid_code: Mapped[str | None]
    carbon_g_per_kwh: Mapped[float | None]
    pays_for_power: Mapped[bool | None]
    valid_from_ms: Mapped[int]
    valid_to_ms: Mapped[int | None]
    note: Mapped[str | None]
