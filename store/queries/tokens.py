"""Tokens of the REST API: made, found by their hash, listed, revoked. The tokens themselves are never stored."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.errors import StoreError
from core.units import MINUTE_MS
from store.models.api_token import ApiTokenRow

TOUCH_EVERY_MS: Final = MINUTE_MS
"""``last_used_ms`` is written at most this often: a token is used every few seconds."""


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A token.

    Attributes:
        id: its key. name: the user's own words.
        host_name: the host it may speak for; None: any.
        scope: what it opens: ``ingest``.
        prefix: its first characters, for people to tell tokens apart.
        created_ms, expires_ms, last_used_ms, revoked_ms: None: never.
    """

    id: int
    name: str
    host_name: str | None
    scope: str
    prefix: str
    created_ms: int
    expires_ms: int | None
    last_used_ms: int | None
    revoked_ms: int | None

    def valid_at(self, now_ms: int) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_ms is None and (self.expires_ms is None or now_ms < self.expires_ms)


def create(
    session: Session,
    *,
    name: str,
    token_hash: str,
    prefix: str,
    created_ms: int,
    host_name: str | None = None,
    scope: str = "ingest",
    expires_ms: int | None = None,
) -> TokenRecord:
    """Keep a token by its hash.

    Raises:
        StoreError: the hash is there already, or the scope is not known.
    """
    row = ApiTokenRow(
        name=name,
        host_name=host_name,
        scope=scope,
        token_hash=token_hash,
        prefix=prefix,
        created_ms=created_ms,
        expires_ms=expires_ms,
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        raise StoreError(f"token {name!r} cannot be kept: {error.orig}") from error
    return _record(row)


def by_hash(session: Session, token_hash: str) -> TokenRecord | None:
    """The token of a hash, valid or not; None when there is none."""
    row = session.scalars(select(ApiTokenRow).where(ApiTokenRow.token_hash == token_hash)).first()
    return None if row is None else _record(row)


def listing(session: Session) -> list[TokenRecord]:
    """Every token, revoked ones too, in the order they were made."""
    return [_record(row) for row in session.scalars(select(ApiTokenRow).order_by(ApiTokenRow.id))]


def revoke(session: Session, token_id: int, now_ms: int) -> TokenRecord:
    """Refuse a token from now on; one that is revoked already keeps its time.

    Raises:
        StoreError: there is no such token.
    """
    row = session.get(ApiTokenRow, token_id)
    if row is None:
        raise StoreError(f"there is no token {token_id}: see gpuwise token list")
    if row.revoked_ms is None:
        row.revoked_ms = now_ms
        session.flush()
    return _record(row)


def touch(session: Session, token_id: int, now_ms: int) -> bool:
    """Note that a token was used, at most once a minute; whether it was noted.

    It looks before it writes: on SQLite even an update of no row takes the write lock.
    """
    row = ApiTokenRow
    stale = or_(row.last_used_ms.is_(None), row.last_used_ms <= now_ms - TOUCH_EVERY_MS)
    if session.execute(select(row.id).where(row.id == token_id, stale)).first() is None:
        return False
    session.execute(update(row).where(row.id == token_id, stale).values(last_used_ms=now_ms))
    return True


def _record(row: ApiTokenRow) -> TokenRecord:
    return TokenRecord(
        row.id,
        row.name,
        row.host_name,
        row.scope,
        row.prefix,
        row.created_ms,
        row.expires_ms,
        row.last_used_ms,
        row.revoked_ms,
    )
