"""Workloads: what held a GPU."""

from sqlalchemy import ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey


class WorkloadRow(Base):
    """One workload.

    ``natural_key`` is host, kind and key in one text: a unique constraint over a host that may be NULL would not hold.
    ``attributes`` is a JSON object of texts: what else is known of it (``core.readings.WorkloadKey``).
    """

    __tablename__ = "workload"

    id: Mapped[SmallKey]
    natural_key: Mapped[str] = mapped_column(unique=True)
    host_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("host.id"), index=True)
    kind: Mapped[str]
    key: Mapped[str]
    name: Mapped[str]
    user_name: Mapped[str | None]
    attributes: Mapped[str] = mapped_column(server_default="{}")
