"""Who was told of which fault, and how bad it was then."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class AlertToldRow(Base):
    """The last message of one fault to one recipient, from the moment that it is put in: no second one is made then.

    ``severity`` and ``figure`` are those of then: what "it grew" is measured against. ``refused_at``: that message was
    refused for good. One that was given up has no row: the fault is told anew.
    """

    __tablename__ = "alert_told"

    alert_id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"),
        ForeignKey("alert.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    )
    recipient_id: Mapped[int] = mapped_column(
        Integer, ForeignKey("recipient.id"), primary_key=True, autoincrement=False
    )
    message_id: Mapped[int | None] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), ForeignKey("mail_log.id"), index=True
    )
    told_at: Mapped[datetime]
    severity: Mapped[int] = mapped_column(Integer)
    figure: Mapped[float | None]
    refused_at: Mapped[datetime | None]
