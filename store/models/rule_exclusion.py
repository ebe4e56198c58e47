"""What people told the rules to leave alone, and until when."""

from datetime import datetime

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped

from store.models.base import Base, SmallKey


class RuleExclusionRow(Base):
    """``core.rule_settings.Exclusion`` as a row; ``selectors`` is a JSON object of patterns, ``rule_id`` NULL is every rule.

    ``ended_at`` is when somebody ended it before ``until_at``; NULL: nobody did. ``who`` NULL: not told.
    """

    __tablename__ = "rule_exclusion"
    __table_args__ = (
        CheckConstraint("until_at > from_at", name="until_at"),
        CheckConstraint("reason <> ''", name="reason"),
    )

    id: Mapped[SmallKey]
    selectors: Mapped[str]
    rule_id: Mapped[str | None]
    from_at: Mapped[datetime]
    until_at: Mapped[datetime]
    reason: Mapped[str]
    who: Mapped[str | None]
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    ended_by: Mapped[str | None]
