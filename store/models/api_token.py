"""Tokens of the REST API: what an agent shows to deliver."""

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, SmallKey, one_of

SCOPES = ("ingest",)


class ApiTokenRow(Base):
    """One token, of which only the hash is kept; ``prefix`` is its beginning, for people to tell tokens apart.

    ``host_name`` NULL: for any host. ``expires_ms`` NULL: never. ``revoked_ms`` set: refused from then on.
    """

    __tablename__ = "api_token"
    __table_args__ = (CheckConstraint(one_of("scope", SCOPES), name="scope"),)

    id: Mapped[SmallKey]
    name: Mapped[str]
    host_name: Mapped[str | None]
    scope: Mapped[str]
    token_hash: Mapped[str] = mapped_column(unique=True)
    prefix: Mapped[str]
    created_ms: Mapped[int]
    expires_ms: Mapped[int | None]
    last_used_ms: Mapped[int | None]
    revoked_ms: Mapped[int | None]
