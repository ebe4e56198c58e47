"""The ledger's lines added up over GPUs and workloads: what reports by owner and time read."""

from decimal import Decimal

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, BigKey, one_of
from store.models.ledger_day import LINE_KINDS


class LedgerTotalRow(Base):
    """Sums of ``ledger_day`` of one accounting day over what has kind, owner, rate, place in common.

    Columns are named and mean as there, ``is_correction`` says that the lines were booked after a month was closed.
    A row holds only as long as its day is in ``ledger_total_day``. Sums are of whole numbers: what they say is what the
    lines say.
    """

    __tablename__ = "ledger_total"
    __table_args__ = (
        CheckConstraint(one_of("kind", LINE_KINDS), name="kind"),
        Index(None, "day_ms"),
    )

    id: Mapped[BigKey]
    day_ms: Mapped[int]
    kind: Mapped[str]
    owner_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("owner.id"))
    rate_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("ledger_rate.id"))
    place_id: Mapped[int] = mapped_column(Integer, ForeignKey("ledger_place.id"))
    is_correction: Mapped[int] = mapped_column(Integer)
    known_ms: Mapped[int]
    covered_ms: Mapped[int]
    allocated_ms: Mapped[int]
    active_ms: Mapped[int]
    effective_ms: Mapped[int]
    effective_unknown_ms: Mapped[int]
    energy_mj: Mapped[int | None]
    energy_covered_ms: Mapped[int]
    energy_method: Mapped[str | None]
    site_energy_mj: Mapped[int | None]
    cost_usd: Mapped[Decimal | None]
    idle_cost_usd: Mapped[Decimal | None]
    energy_usd: Mapped[Decimal | None]
    billed_energy_usd: Mapped[Decimal | None]
    carbon_ug: Mapped[int | None]
    empty_ms: Mapped[int]
    parked_ms: Mapped[int]
    starved_ms: Mapped[int]
    spinning_ms: Mapped[int]
    memory_bound_ms: Mapped[int]
    compute_bound_ms: Mapped[int]
    mixed_ms: Mapped[int]
    busy_ms: Mapped[int]
    unknown_ms: Mapped[int]
    empty_usd: Mapped[Decimal | None]
    parked_usd: Mapped[Decimal | None]
    starved_usd: Mapped[Decimal | None]
    spinning_usd: Mapped[Decimal | None]
    memory_bound_usd: Mapped[Decimal | None]
    compute_bound_usd: Mapped[Decimal | None]
    mixed_usd: Mapped[Decimal | None]
    busy_usd: Mapped[Decimal | None]
    unknown_usd: Mapped[Decimal | None]
