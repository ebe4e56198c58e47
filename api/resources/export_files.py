"""Rows of exports as the text of a CSV file, a piece at a time."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final

from api.paging import FORMULA_STARTS, cell
from api.resources.export_lines import COLUMNS as LINE_COLUMNS
from api.resources.export_lines import line_cells
from api.resources.exports import Export, Progress
from core.errors import NotFoundError
from ledger.focus import Row
from ledger.focus_columns import COLUMNS, DEFAULT_VERSION, Kind, names

ROWS_AT_ONCE: Final = 250
"""Rows in one piece: some 200 KB."""
_TEXTS: Final = tuple(c.name for c in COLUMNS[DEFAULT_VERSION] if c.kind is Kind.TEXT)


def focus_file(export: Export, progress: Progress = lambda _done, _total: None) -> Iterator[str]:
    """A FOCUS file in pieces.

    Raises:
        NotFoundError: at once, when there is no row to write; says why.
    """
    rows = export.rows(progress)
    first = next(rows, None)
    if first is None:
        why = "; ".join(export.summary.notes) or "nothing was used or paid"
        raise NotFoundError(f"there is no row to export in these days: {why}")
    return _pieces(names(), map(_focus_cells, chain([first], rows)))


def line_file(export: Export) -> Iterator[str]:
    """The ledger's lines of the same days in pieces."""
    charges = (charge for day in export.charges.days for charge in export.charges.of_day(day))
    return _pieces(LINE_COLUMNS, ([cell(value) for value in row] for row in line_cells(charges)))


def _focus_cells(row: Row) -> Sequence[str | None]:
    for name in _TEXTS:
        value = row[name]
        if value is not None and value.startswith(FORMULA_STARTS):
            row[name] = f"'{value}"
    return tuple(row.values())


def _pieces(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(header)
    source = iter(rows)
    while batch := list(islice(source, ROWS_AT_ONCE)):
        writer.writerows(batch)
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    if out.tell():
        yield out.getvalue()
