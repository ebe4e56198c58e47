"""Hosts: the machines GPUs sit in, and the agent that speaks for each."""

from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey


class HostRow(Base):
    """One machine, by the name its agent or exporter gives.

    ``agent_id`` and ``agent_sequence`` name the last delivery that was stored, ``agent_seen_ms`` when it came.
    ``first_sample_ms`` … ``seen_until_ms`` are those of its host samples, kept as in ``gpu``.
    ``cluster`` … ``labels`` (a JSON object of texts) are what the user says of it (``core.ownership.HostFacts``).
    """

    __tablename__ = "host"

    id: Mapped[SmallKey]
    name: Mapped[str] = mapped_column(unique=True)
    cpu_count: Mapped[int | None] = mapped_column(Integer)
    memory_total_bytes: Mapped[int | None]
    agent_version: Mapped[str | None]
    agent_id: Mapped[str | None]
    agent_sequence: Mapped[int | None]
    agent_seen_ms: Mapped[int | None]
    first_sample_ms: Mapped[int | None]
    last_sample_ms: Mapped[int | None]
    seen_until_ms: Mapped[int | None]
    cluster: Mapped[str | None]
    instance_type: Mapped[str | None]
    region: Mapped[str | None]
    labels: Mapped[str] = mapped_column(server_default="{}")
