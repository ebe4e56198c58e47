"""What a unit of a currency is worth in dollars, from a day on."""

from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Dialect, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from core.user_price import RATE_PLACES
from store.models.base import Base, SmallKey


class UsdPerUnit(TypeDecorator[Decimal]):
    """Dollars of a unit of a currency in code, whole 10⁻¹² dollars in the database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> int | None:
        """Whole 10⁻¹² dollars; exact, because a rate has no more decimals."""
        del dialect
        return None if value is None else int(value.scaleb(RATE_PLACES))

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Decimal | None:
        """Dollars, without trailing zeros."""
        del dialect
        return None if value is None else Decimal(value).scaleb(-RATE_PLACES).normalize()


class ExchangeRateRow(Base):
    """``core.user_price.ExchangeRate`` as a row; in force from a UTC day until the next of its currency."""

    __tablename__ = "exchange_rate"
    __table_args__ = (
        UniqueConstraint("currency", "from_ms"),
        CheckConstraint("usd_per_unit > 0", name="usd_per_unit"),
    )

    id: Mapped[SmallKey]
    currency: Mapped[str]
    from_ms: Mapped[int]
    usd_per_unit: Mapped[Decimal] = mapped_column(UsdPerUnit)
