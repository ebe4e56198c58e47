"""Column types that keep our units: aware UTC times and whole micro-dollars."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect
from sqlalchemy.types import TypeDecorator

from core.money import from_micro, to_micro


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time. Refuses a naive one; SQLite, which has no zones, keeps UTC without saying so."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC on the way in; raises ``ValueError`` for a naive time."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} has no time zone: store aware times only")
        at = value.astimezone(UTC)
        return at.replace(tzinfo=None) if dialect.name == "sqlite" else at

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """Aware UTC on the way out."""
        del dialect
        if value is None:
            return None
        at: datetime = value
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


class Usd(TypeDecorator[Decimal]):
    """Dollars in code, whole micro-dollars in the database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> int | None:
        """Micro-dollars, half to even."""
        del dialect
        return None if value is None else to_micro(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Decimal | None:
        """Dollars."""
        del dialect
        return None if value is None else from_micro(value)
