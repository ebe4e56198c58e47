"""The ledger's lines of GPUs that serve, told apart by the engines seen in each hour: what reports by engine read."""

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, BigKey, one_of
from store.models.ledger_amounts import LedgerAmounts
from store.models.ledger_day import LINE_KINDS


class LedgerEngineDayRow(LedgerAmounts, Base):
    """All lines of one GPU's accounting day on which an engine was seen; of a day without one there is no row.

    Columns are named and mean as in ``ledger_day``; ``engine_set_id`` NULL: hours in which no engine was seen. A row says
    what pricing gives: of a closed month, lines and corrections together.
    """

    __tablename__ = "ledger_engine_day"
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
