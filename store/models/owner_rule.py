"""Owner rules: which GPU time belongs to whom."""

from sqlalchemy import CheckConstraint, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey


class OwnerRuleRow(Base):
    """``core.ownership.OwnerRule`` as a row; the first by ``position`` that fits wins.

    A condition that is NULL is not asked; ``labels`` and ``host_labels`` are JSON objects of patterns.
    """

    __tablename__ = "owner_rule"
    __table_args__ = (
        CheckConstraint("valid_to_ms > valid_from_ms", name="valid_to_ms"),
        CheckConstraint("team <> ''", name="team"),
    )

    id: Mapped[SmallKey]
    position: Mapped[int] = mapped_column(Integer, index=True)
    user_name: Mapped[str | None]
    namespace: Mapped[str | None]
    slurm_account: Mapped[str | None]
    unit: Mapped[str | None]
    image: Mapped[str | None]
    kind: Mapped[str | None]
    labels: Mapped[str]
    host: Mapped[str | None]
    host_labels: Mapped[str]
    team: Mapped[str]
    project: Mapped[str]
    cost_centre: Mapped[str]
    valid_from_ms: Mapped[int]
    valid_to_ms: Mapped[int | None]
    note: Mapped[str]
