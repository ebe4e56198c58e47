"""History of recommendations: every change of status."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from core.finding import Status
from store.models.base import Base, BigKey, one_of


class RecommendationEventRow(Base):
    """One change; ``status_from`` NULL is the first time the finding was found, ``who`` NULL the rules."""

    __tablename__ = "recommendation_event"
    __table_args__ = (
        CheckConstraint(one_of("status_from", Status), name="status_from"),
        CheckConstraint(one_of("status_to", Status), name="status_to"),
    )

    id: Mapped[BigKey]
    recommendation_id: Mapped[int] = mapped_column(Integer, ForeignKey("recommendation.id"), index=True)
    at: Mapped[datetime]
    status_from: Mapped[str | None]
    status_to: Mapped[str]
    note: Mapped[str | None]
    who: Mapped[str | None]
