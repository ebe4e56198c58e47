"""Rows as the driver gives them: for hot paths over columns that need no conversion (numbers, text, bytes)."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select
from sqlalchemy.orm import Session


def plain_rows(session: Session, statement: Select[*tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """All rows of a query as tuples, without a wrapper for each."""
    cursor = session.connection().execute(statement).cursor
    return [] if cursor is None else cursor.fetchall()
