"""Weeks of GPUs that serve, told apart by the engines seen in each hour: what pages by engine over months read."""

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, BigKey, one_of
from store.models.ledger_amounts import LedgerAmounts
from store.models.ledger_day import LINE_KINDS


class LedgerEngineWeekRow(LedgerAmounts, Base):
    """Sums of one GPU's accounting week over what has all else in common, where an engine was seen in the week.

    Days with an engine are those of ``ledger_engine_day``, the others of ``ledger_day``; columns are named and mean as in
    ``ledger_week``, and a row holds as long as its week is in ``ledger_week_span``.
    """

    __tablename__ = "ledger_engine_week"
    __table_args__ = (
        CheckConstraint(one_of("kind", LINE_KINDS), name="kind"),
        Index(None, "day_ms", "gpu_id"),
    )

    id: Mapped[BigKey]
    day_ms: Mapped[int]
    gpu_id: Mapped[int] = mapped_column(Integer, ForeignKey("gpu.id"))
    engine_set_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("ledger_engine_set.id"))
    kind: Mapped[str]
    workload_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("workload.id"))
    owner_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("owner.id"))
    rate_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("ledger_rate.id"))
    place_id: Mapped[int] = mapped_column(Integer, ForeignKey("ledger_place.id"))
    is_correction: Mapped[int] = mapped_column(Integer)
