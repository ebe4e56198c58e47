"""Verifications: what became of savings after somebody acted."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Integer, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from core.verification import Ledger, Verdict
from store.models.base import Base, SmallKey, one_of


class VerificationRow(Base):
    """The newest comparison for one action; ``report`` is JSON. Figures are per month, in the ledger's unit."""

    __tablename__ = "verification"
    __table_args__ = (
        UniqueConstraint("recommendation_id", "acted_at"),
        CheckConstraint(one_of("verdict", Verdict), name="verdict"),
        CheckConstraint(one_of("ledger", Ledger), name="ledger"),
    )

    id: Mapped[SmallKey]
    recommendation_id: Mapped[int] = mapped_column(Integer, ForeignKey("recommendation.id"))
    rule_id: Mapped[str] = mapped_column(index=True)
    acted_at: Mapped[datetime]
    checked_at: Mapped[datetime]
    verdict: Mapped[str]
    sentence: Mapped[str]
    ledger: Mapped[str | None]
    saving_p10: Mapped[float | None]
    saving_p50: Mapped[float | None]
    saving_p90: Mapped[float | None]
    predicted_p50: Mapped[float | None]
    report: Mapped[str]
