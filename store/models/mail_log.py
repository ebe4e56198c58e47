"""Messages that go out: one row per message and recipient, which is also the claim to send it."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from core.outbox import Channel, MessageKind, MessageState
from store.models.base import Base, BigKey, one_of


class MailLogRow(Base):
    """One message to one recipient. The unique key makes it one, however many processes want to send it.

    ``period`` keys it within its kind: the days of a weekly report, the moment of alerts. ``team`` and ``project``:
    whose figures it holds; empty for the whole fleet. ``recipient`` is the mail address, or of a webhook a digest of
    its URL, which is a secret; ``shown`` is what people see of it. ``recipient_id`` is NULL for one of gpuwise.toml.
    ``body`` is the whole message (a mail as RFC 5322, a webhook's JSON) until it has an end; ``told`` the actions of a
    weekly report in it, as JSON: they count as told once it is sent.
    """

    __tablename__ = "mail_log"
    __table_args__ = (
        CheckConstraint(one_of("kind", MessageKind), name="kind"),
        CheckConstraint(one_of("channel", Channel), name="channel"),
        CheckConstraint(one_of("state", MessageState), name="state"),
        UniqueConstraint("kind", "period", "team", "project", "recipient"),
        Index(None, "state", "next_try_at"),
    )

    id: Mapped[BigKey]
    kind: Mapped[str]
    period: Mapped[str]
    team: Mapped[str]
    project: Mapped[str]
    channel: Mapped[str]
    recipient: Mapped[str]
    shown: Mapped[str]
    recipient_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("recipient.id"))
    subject: Mapped[str]
    body: Mapped[str | None]
    told: Mapped[str | None]
    state: Mapped[str]
    attempts: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[datetime]
    claimed_at: Mapped[datetime | None]
    next_try_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    message: Mapped[str | None]
