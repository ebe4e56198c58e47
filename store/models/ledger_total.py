"""The ledger's lines added up over GPUs and workloads: what reports by owner and time read."""

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, BigKey, one_of
from store.models.ledger_amounts import LedgerAmounts
from store.models.ledger_day import LINE_KINDS


class LedgerTotalRow(LedgerAmounts, Base):
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
