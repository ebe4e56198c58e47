"""The declarative base: constraint names, and what each Python type is in both databases."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Final

from sqlalchemy import BigInteger, Double, Integer, MetaData, Text
from sqlalchemy.orm import DeclarativeBase, mapped_column

from store.types import Usd, UtcDateTime

NAMES: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

SmallKey = Annotated[int, mapped_column(Integer, primary_key=True)]
"""Key of a thing there are few of (hosts, GPUs): four bytes in every sample row."""
BigKey = Annotated[int, mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)]
"""Key of rows that grow with time. SQLite counts up only columns that are declared exactly INTEGER."""


class Base(DeclarativeBase):
    """Parent of every table."""

    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: UtcDateTime,
        Decimal: Usd,
        int: BigInteger,
        float: Double,
        str: Text,
    }


def one_of(column: str, values: Any) -> str:
    """Check of a text column that holds an enumeration."""
    return f"{column} IN ({', '.join(repr(str(value)) for value in values)})"
