"""Thresholds of rules that people set, as they gave them."""

from datetime import datetime

from sqlalchemy.orm import Mapped

from store.models.base import Base, SmallKey


class RuleThresholdRow(Base):
    """Values of one rule for the fleet (``selectors`` an empty JSON object) or a part of it (``{"host": "dev-*"}``).

    ``threshold_values`` is a JSON object by threshold. ``ended_at`` NULL: in force. A change ends the row and makes another,
    so that the history stays; ``who`` NULL: not told.
    """

    __tablename__ = "rule_threshold"

    id: Mapped[SmallKey]
    rule_id: Mapped[str]
    selectors: Mapped[str]
    threshold_values: Mapped[str]
    note: Mapped[str]
    who: Mapped[str | None]
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    ended_by: Mapped[str | None]
