"""Hosts: the machines GPUs sit in."""

from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey


class HostRow(Base):
    """One machine, by the name its agent or exporter gives."""

    __tablename__ = "host"

    id: Mapped[SmallKey]
    name: Mapped[str] = mapped_column(unique=True)
