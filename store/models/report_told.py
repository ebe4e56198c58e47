"""Actions that weekly reports told and that arrived, so that the next one does not tell them as new."""

from datetime import datetime

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from core.verification import Ledger
from store.models.base import Base, one_of


class ReportToldRow(Base):
    """One action in one report that reached somebody. ``team`` and ``project``: of whom; empty for the whole fleet.

    ``period`` is that of the report. ``ledger`` and ``figure``: its saving as it was told; NULL where it has none.
    """

    __tablename__ = "report_told"
    __table_args__ = (CheckConstraint(f"ledger IS NULL OR {one_of('ledger', Ledger)}", name="ledger"),)

    team: Mapped[str] = mapped_column(primary_key=True)
    project: Mapped[str] = mapped_column(primary_key=True)
    fingerprint: Mapped[str] = mapped_column(primary_key=True)
    period: Mapped[str] = mapped_column(primary_key=True)
    ledger: Mapped[str | None]
    figure: Mapped[float | None]
    told_at: Mapped[datetime]
