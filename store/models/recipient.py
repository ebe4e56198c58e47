"""Who gets mail: addresses and webhooks, each for the whole fleet or for what an owner pays for."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, text
from sqlalchemy.orm import Mapped

from core.outbox import Channel
from core.user_recipient import QuietWeek
from store.models.base import Base, SmallKey, one_of

_LIVE = text("ended_at IS NULL")


class RecipientRow(Base):
    """``core.user_recipient.Recipient`` as a row; empty ``team`` and ``project``: the whole fleet.

    One that was removed stays with its end, because messages in ``mail_log`` name it.
    """

    __tablename__ = "recipient"
    __table_args__ = (
        CheckConstraint(one_of("channel", Channel), name="channel"),
        CheckConstraint(one_of("quiet_week", QuietWeek), name="quiet_week"),
        CheckConstraint("project = '' OR team <> ''", name="project"),
        Index(None, "address", "team", "project", unique=True, sqlite_where=_LIVE, postgresql_where=_LIVE),
    )

    id: Mapped[SmallKey]
    channel: Mapped[str]
    address: Mapped[str]
    team: Mapped[str]
    project: Mapped[str]
    weekly: Mapped[bool]
    alerts: Mapped[bool]
    quiet_week: Mapped[str]
    paused_until: Mapped[datetime | None]
    note: Mapped[str]
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
