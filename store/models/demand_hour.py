"""How many GPUs of a model were wanted in an hour, and what they drew."""

from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class DemandHourRow(Base):
    """Sums of ``gpu_hour`` over the GPUs of one model (empty: not known); a row holds only while its UTC day is in ``demand_day``.

    ``known_s``: covered, and the activity could be named. ``empty_s`` to ``working_j``: of GPUs whose energy is known for
    all of the hour alone; ``working``: any activity but empty, parked and unknown.
    """

    __tablename__ = "demand_hour"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    hour_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    model: Mapped[str] = mapped_column(primary_key=True)
    known_s: Mapped[float]
    allocated_s: Mapped[float]
    active_s: Mapped[float]
    empty_s: Mapped[float]
    empty_j: Mapped[float]
    parked_s: Mapped[float]
    parked_j: Mapped[float]
    working_s: Mapped[float]
    working_j: Mapped[float]
