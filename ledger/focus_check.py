"""Whether a file keeps to FOCUS 1.2: columns, empty values, formats, values that go together, products. Pure.

The FinOps Foundation's focus-validator knows its rules as data; what it lets through is held here too: that price ×
quantity is the cost, how times and numbers are written, that key-value columns are flat, that no charge crosses its
billing period. Source: FOCUS 1.2; cost-model 6.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from catalog.currencies import CURRENCIES
from ledger.focus_check_rows import row_problems
from ledger.focus_columns import COLUMNS, DEFAULT_VERSION, NOT_WRITTEN, Column, Kind, Need
from ledger.focus_pairs import flat_pairs

PLACEHOLDERS: Final = frozenset({"null", "none", "n/a", "na", "nan", "not applicable", "-"})
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)\.\d+")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Problem(NamedTuple):
    """Where a file departs from the specification: line (the header is 1), column, what is wrong there."""

    line: int
    column: str
    what: str

    def __str__(self) -> str:
        """One sentence."""
        return f"line {self.line}, {self.column}: {self.what}"


def check(text: Iterable[str], version: str = DEFAULT_VERSION) -> Iterator[Problem]:
    """Everything that is wrong with a file, line by line; nothing where it is sound.

    Args:
        text: lines of the file. version: of the specification.
    """
    columns = {column.name: column for column in COLUMNS[version]}
    reader = csv.reader(text, strict=True)
    try:
        header = next(reader, [])
        yield from _header(header, columns)
        for cells in reader:
            line = reader.line_num
            if len(cells) != len(header):
                yield Problem(line, "row", f"has {len(cells)} cells, the header {len(header)}")
                continue
            yield from _row(line, dict(zip(header, cells, strict=True)), columns)
    except csv.Error as error:
        yield Problem(reader.line_num, "row", f"is no CSV ({error})")


def _header(header: list[str], columns: Mapping[str, Column]) -> Iterator[Problem]:
    for column in columns.values():
        if column.need is Need.MANDATORY and column.name not in header:
            yield Problem(1, column.name, "is missing, and every file must have it")
    custom = False
    for name in header:
        custom |= name.startswith("x_")
        if header.count(name) > 1:
            yield Problem(1, name, "is there twice")
        if not name.startswith("x_"):
            if name not in columns and name not in NOT_WRITTEN:
                yield Problem(1, name, "is no column that we know: begin columns of your own with x_")
            if custom:
                yield Problem(1, name, "stands behind columns of your own, which come last")


def _row(line: int, row: Mapping[str, str], columns: Mapping[str, Column]) -> Iterator[Problem]:
    sound = True
    for name, text in row.items():
        column = columns.get(name)
        what = None if column is None else _wrong(text, column)
        if what is not None:
            sound = False
            yield Problem(line, name, what)
    if sound:
        for name, what in row_problems(row):
            yield Problem(line, name, what)


def _wrong(text: str, column: Column) -> str | None:
    """What is wrong with one value."""
    if not text:
        return None if column.nullable else "is empty, and must not be"
    if text.strip().casefold() in PLACEHOLDERS:
        return f"is {text!r}: leave it empty where there is no value"
    if column.allowed and text not in column.allowed:
        return f"is {text!r}: one of {', '.join(column.allowed)} is allowed"
    match column.kind:
        case Kind.NUMBER:
            fits = _NUMBER.fullmatch(text) is not None
            return None if fits else f"is {text!r}: write a plain decimal with a point, such as 1.0"
        case Kind.TIME:
            return None if _is_time(text) else f"is {text!r}: write a time such as 2026-10-05T00:00:00Z"
        case Kind.CURRENCY:
            return None if text in CURRENCIES else f"is {text!r}: write a code of ISO 4217, such as USD"
        case Kind.PAIRS:
            return None if flat_pairs(text) is not None else "is no JSON object of plain values"
        case Kind.TEXT:
            return "is nothing but spaces" if not text.strip() else None


def _is_time(text: str) -> bool:
    try:
        return _TIME.fullmatch(text) is not None and bool(datetime.fromisoformat(text))
    except ValueError:
        return False
