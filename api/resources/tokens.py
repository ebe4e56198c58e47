"""Tokens of agents: made once and shown once, kept as a hash, looked up for every delivery and remembered for seconds.

A token has 256 random bits, so a plain SHA-256 is as good as any slow hash, and finding it by its hash tells nobody
who measures time anything that helps.
"""

import hashlib
import logging
import secrets
import threading
import time
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from core.errors import NotFoundError, StoreError, UsageError
from core.units import DAY_MS
from store.engine import session_scope
from store.queries import tokens
from store.queries.tokens import TokenRecord

log = logging.getLogger(__name__)

START: Final = "gw_"
"""Secret scanners and people tell by it what they found."""
SCOPE: Final = "ingest"
REMEMBERED_S: Final = 10.0
"""How long a revoked token may still deliver."""
MOST_REMEMBERED: Final = 10_000
MOST_DAYS: Final = 36_500
PREFIX_LENGTH: Final = 8
"""Characters that are kept and shown: the start and 30 bits."""


def hash_of(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def create(
    session: Session, *, host: str | None, name: str, expires_days: int | None, now_ms: int
) -> tuple[str, TokenRecord]:
    """A new token and its record; the token itself is nowhere else.

    Args:
        session: on the database. now_ms: creation.
        host: the only host it may deliver for; None: any.
        name: for people. expires_days: None: never.

    Raises:
        UsageError: a name that no delivery could carry, or days out of bounds.
    """
    if host is not None and (not 0 < len(host) <= 255 or not host.isprintable()):
        raise UsageError(f"host {host!r} is no name of a host: give 1 to 255 printable characters")
    if len(name) > 255 or not name.isprintable():
        raise UsageError("the name of a token has at most 255 printable characters: shorten it")
    if expires_days is not None and not 1 <= expires_days <= MOST_DAYS:
        raise UsageError(f"a token lasts 1 to {MOST_DAYS:,} days, not {expires_days}: correct --expires-days")
    token = START + secrets.token_urlsafe(32)
    record = tokens.create(
        session,
        name=name,
        host_name=host,
        scope=SCOPE,
        token_hash=hash_of(token),
        prefix=token[:PREFIX_LENGTH],
        created_ms=now_ms,
        expires_ms=None if expires_days is None else now_ms + expires_days * DAY_MS,
    )
    return token, record


def revoke(session: Session, which: str, *, now_ms: int) -> TokenRecord:
    """Refuse a token from now on.

    Args:
        session: on the database. now_ms: now.
        which: its number, its first characters as they are listed, or all of it.

    Raises:
        NotFoundError: there is none. UsageError: several begin so.
    """
    whole = tokens.by_hash(session, hash_of(which))
    found = [one for one in tokens.listing(session) if which in {str(one.id), one.prefix}]
    if whole is not None:
        found = [whole]
    if not found:
        raise NotFoundError(f"there is no token {shown_part(which)}: see gpuwise token list")
    if len(found) > 1:
        numbers = ", ".join(str(one.id) for one in found)
        raise UsageError(f"several tokens begin with {shown_part(which)}: give the number of one ({numbers})")
    return tokens.revoke(session, found[0].id, now_ms)


def shown_part(text: str) -> str:
    """What may be printed of something that may be a token."""
    return repr(text if len(text) <= PREFIX_LENGTH else f"{text[:PREFIX_LENGTH]}…")


@dataclass(slots=True)
class _Remembered:
    record: TokenRecord
    until_s: float
    used_ms: int | None


class Gate:
    """Who may deliver: tokens by their hash, remembered for a few seconds so that no delivery waits for a query."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._remembered: dict[str, _Remembered] = {}
        self._lock = threading.Lock()

    def remembered(self, token: str) -> TokenRecord | None:
        """The record of a token seen within the last seconds; never waits."""
        with self._lock:
            found = self._remembered.get(hash_of(token))
        return None if found is None or found.until_s < time.monotonic() else found.record

    def look_up(self, token: str) -> TokenRecord | None:
        """The record of a token from the database; None when there is none.

        Raises:
            StoreError: the database does not answer.
        """
        key = hash_of(token)
        try:
            with session_scope(self._engine) as session:
                record = tokens.by_hash(session, key)
        except SQLAlchemyError as error:
            raise StoreError(f"the token cannot be looked up ({error}): check the database") from error
        with self._lock:
            if record is None:
                self._remembered.pop(key, None)
            else:
                if len(self._remembered) >= MOST_REMEMBERED:
                    self._remembered.clear()
                self._remembered[key] = _Remembered(
                    record, time.monotonic() + REMEMBERED_S, record.last_used_ms
                )
        return record

    def use(self, token: str, now_ms: int) -> bool:
        """Whether the use of a token is due to be noted; it is then taken for noted."""
        with self._lock:
            found = self._remembered.get(hash_of(token))
            if found is None or (
                found.used_ms is not None and now_ms - found.used_ms < tokens.TOUCH_EVERY_MS
            ):
                return False
            found.used_ms = now_ms
            return True

    def note(self, record: TokenRecord, now_ms: int) -> None:
        """Keep when a token was last used; it is for people, so a database that is busy is let be."""
        try:
            with session_scope(self._engine) as session:
                tokens.touch(session, record.id, now_ms)
        except SQLAlchemyError as error:
            log.info("use of a token not noted", extra={"reason": str(error)})
