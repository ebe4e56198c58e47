"""LLM engines: scrape targets that serve a model."""

from sqlalchemy import ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey


class EngineRow(Base):
    """One engine. ``settings``, ``gpu_uuids`` and ``joined_gpu_ids`` are JSON text.

    ``gpu_uuids`` is what its processes were seen to hold; ``joined_gpu_ids`` the GPUs its hours were last rolled
    up with: when the join changes, those hours are rolled up again. ``reachable_tokens_per_s`` is what the advice job
    fitted on its own hours (``advisor.reach``); NULL: not known.
    """

    __tablename__ = "engine"

    id: Mapped[SmallKey]
    engine: Mapped[str] = mapped_column(unique=True)
    host_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("host.id"), index=True)
    kind: Mapped[str]
    model: Mapped[str | None]
    settings: Mapped[str]
    gpu_uuids: Mapped[str]
    first_sample_ms: Mapped[int | None]
    last_sample_ms: Mapped[int | None]
    seen_until_ms: Mapped[int | None]
    joined_gpu_ids: Mapped[str | None]
    reachable_tokens_per_s: Mapped[float | None]
