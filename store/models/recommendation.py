"""Recommendations: findings followed over time."""

from datetime import datetime

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from core.finding import Status
from store.models.base import Base, SmallKey, one_of


class RecommendationRow(Base):
    """A finding by its fingerprint, as last found (``finding`` is JSON), with what people did about it.

    ``acted_finding`` is the finding as it was when somebody last took a step: what a return, and a verification, is
    measured against; NULL while nobody has.
    """

    __tablename__ = "recommendation"
    __table_args__ = (CheckConstraint(one_of("status", Status), name="status"),)

    id: Mapped[SmallKey]
    fingerprint: Mapped[str] = mapped_column(unique=True)
    rule_id: Mapped[str]
    subject_kind: Mapped[str]
    subject_id: Mapped[str]
    status: Mapped[str] = mapped_column(index=True)
    finding: Mapped[str]
    acted_finding: Mapped[str | None]
    opened_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    snoozed_until: Mapped[datetime | None]
    note: Mapped[str | None]
