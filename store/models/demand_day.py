"""UTC days whose hours are added up by model."""

from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class DemandDayRow(Base):
    """One day, by its start; removed in the transaction that folds a day of any GPU of it anew."""

    __tablename__ = "demand_day"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    day_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
