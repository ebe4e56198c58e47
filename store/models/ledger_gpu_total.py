"""The ledger's lines of each GPU added up over workloads: what pages of many GPUs read."""

from decimal import Decimal

from sqlalchemy import ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class LedgerGpuTotalRow(Base):
    """Sums of ``ledger_day`` of one GPU and accounting day over what has an owner in common; ``owner_id`` 0: nobody's.

    Columns are named and mean as there. ``paid_usd`` is ``billed_energy_usd`` of priced lines alone. A row holds only as long as its day is in ``ledger_total_day``. The key begins with the GPU: a span of days
    is then one walk through each, which takes half the time of a walk day by day.
    """

    __tablename__ = "ledger_gpu_total"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    gpu_id: Mapped[int] = mapped_column(Integer, ForeignKey("gpu.id"), primary_key=True, autoincrement=False)
    day_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, index=True)
    owner_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    known_ms: Mapped[int]
    covered_ms: Mapped[int]
    cost_usd: Mapped[Decimal | None]
    idle_cost_usd: Mapped[Decimal | None]
    paid_usd: Mapped[Decimal | None]
    energy_mj: Mapped[int | None]
    active_ms: Mapped[int]
    empty_ms: Mapped[int]
    parked_ms: Mapped[int]
