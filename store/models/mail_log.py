"""Mail that was sent, or tried."""

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, BigKey


class MailLogRow(Base):
    """One attempt. ``period`` keys a periodic mail (``2026-W47``), so that it goes out once."""

    __tablename__ = "mail_log"

    id: Mapped[BigKey]
    sent_at: Mapped[datetime]
    kind: Mapped[str]
    period: Mapped[str | None] = mapped_column(index=True)
    recipients: Mapped[str]
    subject: Mapped[str]
    ok: Mapped[bool]
    message: Mapped[str | None]
