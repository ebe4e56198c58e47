"""Owners: the teams that pay."""

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped

from store.models.base import Base, SmallKey


class OwnerRow(Base):
    """``core.ownership.Owner`` as a row; what is not said is empty, so that the unique constraint holds."""

    __tablename__ = "owner"
    __table_args__ = (UniqueConstraint("team", "project", "cost_centre"),)

    id: Mapped[SmallKey]
    team: Mapped[str]
    project: Mapped[str]
    cost_centre: Mapped[str]
