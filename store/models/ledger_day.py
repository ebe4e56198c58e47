"""The ledger: usage of one GPU over one accounting day, priced, one line for each holder."""

from decimal import Decimal

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer, text
from sqlalchemy.orm import Mapped, mapped_column

from core.samples import EnergyMethod
from core.sharing import ShareMethod
from store.models.base import Base, BigKey, one_of

BOOKED = text("booking_id IS NOT NULL")
LINE_KINDS = ("workload", "unattributed", "idle", "gap")


class LedgerDayRow(Base):
    """``ledger.lines.Line`` as a row. Whole milliseconds, millijoules, micro-dollars: sums are exact in any order.

    ``day_ms`` is the start of the accounting day (local midnight), ``from_ms`` and ``to_ms`` the part of it that this
    line is for: one calendar month in UTC, one rate. ``kind``: ``workload`` (held by ``workload_id``), ``unattributed``
    (held, by whom is not known), ``idle`` (held by nobody), ``gap`` (no samples: neither idle nor free).
    ``booking_id`` names the correction that added the line to a closed month; NULL: the line itself.
    Amounts are NULL where unpriced or unknown, never 0. ``cost_usd`` is the GPU's price alone; ``billed_energy_usd`` is
    what power adds to the bill where the site pays for power, ``energy_usd`` what power costs anywhere.
    """

    __tablename__ = "ledger_day"
    __table_args__ = (
        CheckConstraint(one_of("kind", LINE_KINDS), name="kind"),
        CheckConstraint(one_of("share_method", ShareMethod), name="share_method"),
        CheckConstraint(one_of("energy_method", EnergyMethod), name="energy_method"),
        CheckConstraint("to_ms > from_ms", name="to_ms"),
        Index(None, "gpu_id", "day_ms"),
        Index(None, "day_ms", "owner_id"),
        Index(None, "booking_id", sqlite_where=BOOKED, postgresql_where=BOOKED),
    )

    id: Mapped[BigKey]
    day_ms: Mapped[int]
    from_ms: Mapped[int]
    to_ms: Mapped[int]
    gpu_id: Mapped[int] = mapped_column(Integer, ForeignKey("gpu.id"))
    kind: Mapped[str]
    workload_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("workload.id"))
    owner_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("owner.id"))
    rate_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("ledger_rate.id"))
    place_id: Mapped[int] = mapped_column(Integer, ForeignKey("ledger_place.id"))
    booking_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("ledger_booking.id"))
    share_method: Mapped[str]
    known_ms: Mapped[int]
    covered_ms: Mapped[int]
    allocated_ms: Mapped[int]
    active_ms: Mapped[int]
    effective_ms: Mapped[int]
    effective_unknown_ms: Mapped[int]
    memory_byte_s: Mapped[float | None]
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
