"""The ledger's lines of weeks that are over, GPU by GPU and holder by holder: what pages of months of many GPUs read."""

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, BigKey, one_of
from store.models.ledger_amounts import LedgerAmounts
from store.models.ledger_day import LINE_KINDS


class LedgerWeekRow(LedgerAmounts, Base):
    """Sums of ``ledger_day`` of one accounting week (Monday to Sunday) over what has all else in common.

    Columns are named and mean as in ``ledger_total``; ``day_ms`` is the start of the week's Monday. A row holds only as
    long as its week is in ``ledger_week_span``.
    """

    __tablename__ = "ledger_week"
    __table_args__ = (
        CheckConstraint(one_of("kind", LINE_KINDS), name="kind"),
        Index(None, "day_ms", "gpu_id"),
    )

    id: Mapped[BigKey]
    day_ms: Mapped[int]
    gpu_id: Mapped[int] = mapped_column(Integer, ForeignKey("gpu.id"))
    kind: Mapped[str]
    workload_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("workload.id"))
    owner_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("owner.id"))
    rate_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("ledger_rate.id"))
    place_id: Mapped[int] = mapped_column(Integer, ForeignKey("ledger_place.id"))
    is_correction: Mapped[int] = mapped_column(Integer)
