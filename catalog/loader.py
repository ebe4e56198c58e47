"""Reads fact files (CSV) into typed rows and refuses a bad one by file, line and column.

What a cell means, in every file of ``catalog/data``:

- empty: nobody knows; becomes None, never 0;
- ``none``: the hardware does not have it; becomes 0.0, and only in columns that hold a rate;
- ``NA``: the text NA (Namibia's ISO code), never a null.

Numbers are plain: a point, no thousands separator, no unit, neither ``nan`` nor ``inf``. Dates are ISO 8601 and may
stop at the month or the year (reduced form), because that is all some sources give.
"""

import csv
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from importlib.resources import files
from importlib.resources.abc import Traversable
from math import isfinite
from pathlib import Path
from typing import Final, TypeVar

from core.errors import CatalogueError

T = TypeVar("T")

ABSENT_IN_HARDWARE: Final = "none"
_DATE: Final = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")


@dataclass(frozen=True, slots=True)
class Cells:
    """One row of a fact file: text by column, and where it stands for the sentence of an error."""

    file: str
    line: int
    values: Mapping[str, str]

    def bad(self, column: str, why: str, to_do: str) -> CatalogueError:
        """The error for one cell: what, where, what to do."""
        return CatalogueError(
            f"{self.file} line {self.line}, column {column}: {self.values[column]!r} {why}: {to_do}"
        )

    def text_or_none(self, column: str) -> str | None:
        """Text; None when empty."""
        return self.values[column] or None

    def text(self, column: str) -> str:
        """Text that must be there."""
        value = self.values[column]
        if not value:
            raise self.bad(column, "is empty", "give a value")
        return value

    def choice(self, column: str, allowed: Sequence[str]) -> str:
        """One of a few words."""
        value = self.values[column]
        if value not in allowed:
            raise self.bad(column, "is not a known word", f"use one of {', '.join(allowed)}")
        return value

    def words(self, column: str) -> tuple[str, ...]:
        """Words separated by semicolons; an empty cell has none."""
        return tuple(word.strip() for word in self.values[column].split(";") if word.strip())

    def number_or_none(self, column: str, *, low: float = 0.0, high: float = float("inf")) -> float | None:
        """A number within bounds; None when empty."""
        text = self.values[column]
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            raise self.bad(column, "is not a number", "give a plain number, or nothing for unknown") from None
        if not isfinite(value) or "_" in text:
            raise self.bad(column, "is not a plain number", "give digits and a point, or nothing for unknown")
        if not low <= value <= high:
            raise self.bad(column, "is out of bounds", f"give a value from {low:g} to {high:g}")
        return value

    def number(self, column: str, *, low: float = 0.0, high: float = float("inf")) -> float:
        """A number within bounds that must be there."""
        value = self.number_or_none(column, low=low, high=high)
        if value is None:
            raise self.bad(column, "is empty", "give a number")
        return value

    def rate_or_none(self, column: str) -> float | None:
        """A rate: ``none`` is 0.0 (not in the hardware), empty is None (unknown)."""
        return 0.0 if self.values[column] == ABSENT_IN_HARDWARE else self.number_or_none(column)

    def whole_or_none(self, column: str, *, low: int = 0) -> int | None:
        """A whole number; None when empty."""
        value = self.number_or_none(column, low=low)
        if value is None:
            return None
        if value != int(value):
            raise self.bad(column, "is not a whole number", "give a whole number")
        return int(value)

    def whole(self, column: str, *, low: int = 0) -> int:
        """A whole number that must be there."""
        value = self.whole_or_none(column, low=low)
        if value is None:
            raise self.bad(column, "is empty", "give a whole number")
        return value

    def money_or_none(self, column: str) -> Decimal | None:
        """Dollars, exactly as written; None when empty."""
        text = self.values[column]
        if not text:
            return None
        try:
            value = Decimal(text)
        except InvalidOperation:
            raise self.bad(column, "is not an amount", "give plain dollars, or nothing for unknown") from None
        if not value.is_finite() or value <= 0:
            raise self.bad(column, "is not a price", "give more than 0, or nothing for unknown")
        return value

    def day_text(self, column: str) -> str:
        """An ISO 8601 date, whole or reduced to month or year; kept as text with its precision."""
        text = self.values[column]
        try:
            first_day(text)
        except ValueError:
            raise self.bad(column, "is not an ISO date", "write 2026-11-09, 2026-11 or 2026") from None
        return text


def first_day(text: str) -> date:
    """First day of an ISO date of day, month or year precision: never claims to be fresher than it says.

    Raises ``ValueError`` for other text.
    """
    if not _DATE.fullmatch(text):
        raise ValueError(f"{text!r} is not an ISO date")
    return date.fromisoformat(text + "-01-01"[len(text) - 4 :] if len(text) < 10 else text)


def packaged(name: str) -> Traversable:
    """A fact file that ships with gpuwise."""
    return files("catalog").joinpath("data", name)


def read_rows(
    source: Traversable | Path,
    columns: Sequence[str],
    parse: Callable[[Cells], T],
    *,
    key: Callable[[T], Hashable] | None = None,
) -> tuple[T, ...]:
    """All rows of one CSV file, parsed.

    Args:
        source: the file; UTF-8, a header line, then rows.
        columns: columns the header must have; more are allowed and not looked at.
        parse: makes one value of one row; raises ``CatalogueError`` through ``Cells.bad``.
        key: identity of a value; two rows with the same one are refused.

    Raises:
        CatalogueError: file not readable, column missing, row too short or too long, bad cell, key twice.
    """
    table = _table(source)
    if not table:
        raise CatalogueError(f"{source.name} is empty: give a header line and rows")
    header = table[0][1]
    missing = [column for column in columns if column not in header]
    if missing:
        raise CatalogueError(f"{source.name} line 1: column {missing[0]} is missing: add it to the header")
    seen: dict[Hashable, int] = {}
    values: list[T] = []
    for line, raw in table[1:]:
        if len(raw) != len(header):
            raise CatalogueError(
                f"{source.name} line {line}, column {header[min(len(raw), len(header) - 1)]}: "
                f"{len(raw)} cells under {len(header)} headings: quote a comma or add the missing cell"
            )
        texts = (cell.strip() for cell in raw)
        value = parse(Cells(source.name, line, dict(zip(header, texts, strict=True))))
        identity = None if key is None else key(value)
        if identity is not None and identity in seen:
            raise CatalogueError(
                f"{source.name} line {line}: {identity!r} is on line {seen[identity]} already: keep one of them"
            )
        if identity is not None:
            seen[identity] = line
        values.append(value)
    return tuple(values)


def _table(source: Traversable | Path) -> list[tuple[int, list[str]]]:
    """Records with the line each starts on; blank lines are left out."""
    try:
        text = source.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise CatalogueError(f"{source.name} line {line}: not UTF-8: save the file as UTF-8") from error
    except OSError as error:
        raise CatalogueError(
            f"{source.name} cannot be read ({error.strerror}): check path and permissions"
        ) from error
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    records: list[tuple[int, list[str]]] = []
    start = 1
    try:
        for record in reader:
            if record:
                records.append((start, record))
            start = reader.line_num + 1
    except csv.Error as error:
        raise CatalogueError(f"{source.name} line {reader.line_num}: {error}: correct the quotes") from error
    return records
