"""Tables that people keep as CSV: written for spreadsheets and read back exactly.

A text that a spreadsheet would run as a formula is written with an apostrophe in front, and read back without it.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

from core.errors import UsageError

MOST_ROWS: Final = 50_000
_RUNS: Final = re.compile(r"'*[=+\-@\t\r]")
_DEFUSED: Final = re.compile(r"'+[=+\-@\t\r]")
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?")
_OTHER_MARKS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}

Line = tuple[int, dict[str, str]]
"""Where a row starts in the file (the header is line 1), and its cells; empty ones are left out."""


def written(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows as CSV with a header."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([defused(cell) for cell in row] for row in rows)
    return out.getvalue()


def read(text: str, columns: Sequence[str] | None, required: Sequence[str]) -> list[Line]:
    """Rows of a CSV with a header.

    Args:
        text: of the file. columns: names that a header may have; None: any. required: names that it must have.

    Raises:
        UsageError: no CSV, a column nobody knows or one that is missing, a row of another length; says which line.
    """
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    found: list[Line] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        _check(header, columns, required)
        start = reader.line_num + 1
        for cells in reader:
            if len(cells) not in {0, len(header)}:
                raise UsageError(
                    f"line {start} has {len(cells)} cells and the header {len(header)}: give one for each"
                )
            if any(cells):
                row = {name: bare(cell) for name, cell in zip(header, cells, strict=True) if cell}
                found.append((start, row))
            start = reader.line_num + 1
            if len(found) > MOST_ROWS:
                raise UsageError(f"the file has more than {MOST_ROWS} rows: split it")
    except csv.Error as error:
        raise UsageError(f"line {reader.line_num} is no CSV ({error}): check its quotes") from error
    return found


def defused(text: str) -> str:
    """A cell that no spreadsheet runs."""
    return f"'{text}" if _RUNS.match(text) and not _NUMBER.fullmatch(text) else text


def bare(cell: str) -> str:
    """What a cell was before it was defused."""
    return cell[1:] if _DEFUSED.match(cell) else cell


def refused(count: int, sentences: Sequence[str]) -> UsageError:
    """The error for a table with bad rows: every one of them, and that nothing was kept."""
    which = "row is" if len(sentences) == 1 else "rows are"
    return UsageError(
        f"{len(sentences)} of {count} {which} refused, nothing was kept: {'; '.join(sentences)}"
    )


def _check(header: Sequence[str], columns: Sequence[str] | None, required: Sequence[str]) -> None:
    if not any(header):
        raise UsageError(f"the file is empty: give a header with {', '.join(required)}")
    for mark, marks in _OTHER_MARKS.items():
        if len(header) == 1 and mark in header[0]:
            raise UsageError(f"line 1 has {marks} and no commas between its names: save the file with commas")
    for name in header:
        if columns is not None and name not in columns:
            raise UsageError(f"column {name[:40]!r} is none of ours: use {', '.join(columns)}")
        if header.count(name) > 1:
            raise UsageError(f"column {name!r} is there twice: give it once")
    for name in required:
        if name not in header:
            raise UsageError(f"column {name!r} is missing: give {', '.join(required)}")
