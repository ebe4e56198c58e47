"""Rows for people: a table on a terminal, aligned plain text in a pipe."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from api import formats


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the row's field, its heading, how a known value reads, and whether it is a figure."""

    field: str
    title: str
    form: Callable[[Any], str] = str
    right: bool = False


def figure(field: str, title: str, form: Callable[[Any], str]) -> Column:
    """A column of figures."""
    return Column(field, title, form, right=True)


def dollars(text: str) -> str:
    """Money of the contract (a decimal string) for people."""
    return formats.money(float(text))


def hours(value: float) -> str:
    """GPU-hours without the unit: the heading has it."""
    return formats.short(value)


def print_json(value: Any) -> None:
    """The contract's JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], *, empty: str) -> None:
    """Rows as a table; ``empty`` is the sentence when there are none."""
    if not rows:
        click.echo(empty)
        return
    cells = [[_cell(row.get(column.field), column) for column in columns] for row in rows]
    if sys.stdout.isatty():
        _rich(cells, columns)
        return
    widths = [max(len(column.title), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)]
    for line in [[column.title for column in columns], *cells]:
        padded = [
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(line, widths, columns, strict=True)
        ]
        click.echo("  ".join(padded).rstrip())


def _cell(value: Any, column: Column) -> str:
    if value is None:
        return formats.UNKNOWN
    return column.form(value).replace(formats.NBSP, " ")


def _rich(cells: Sequence[Sequence[str]], columns: Sequence[Column]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left", overflow="fold")
    for line in cells:
        table.add_row(*(Text(text) for text in line))
    Console().print(table)


@contextmanager
def bar(verb: str, units: str) -> Iterator[Callable[[int, int], None]]:
    """A bar of how much is done, on a terminal; nothing in a pipe or a log. Told of done and total."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(verb), BarColumn(), MofNCompleteColumn(), TextColumn(units), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(verb, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
