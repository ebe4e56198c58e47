"""``gpuwise rates``: exchange rates of the currencies that prices are in."""

from pathlib import Path
from typing import Any, Final

import click

from gpuwise.commands.display import Column, figure, print_json, print_rows
from gpuwise.commands.files import read_from, text_of, write
from gpuwise.commands.kept import changed, listed, removed
from gpuwise.commands.options import ListGroup, Source, database_options

RATES: Final = (
    Column("id", "ID", str, right=True),
    Column("currency", "CURRENCY"),
    Column("from_day", "FROM"),
    figure("usd_per_unit", "USD PER UNIT", str),
)
NONE: Final = "No exchange rates. Add one: gpuwise rates add EUR --from 2026-10-01 --usd-per-unit 1.08"


@click.group(cls=ListGroup)
def rates() -> None:
    """Exchange rates: what a unit of a currency is worth in dollars, from a UTC day until the next rate."""


@rates.command("list")
@database_options
def list_(source: Source) -> int:
    """Every rate, by currency and day."""
    return _print(source, _rows(source))


@rates.command()
@click.argument("currency")
@click.option("--from", "from_day", required=True, metavar="DAY", help="In force from this UTC day.")
@click.option("--usd-per-unit", required=True, metavar="X", help="Dollars of one unit.")
@click.option("--replace", is_flag=True, help="In the place of one of the same currency and day.")
@database_options
def add(source: Source, *, replace: bool, **body: str) -> int:
    """Add a rate."""
    from api.resources import exchange_rates as resource

    made = changed(
        source,
        _path("exchange-rates", replace),
        body,
        lambda session: resource.add(session, resource.parsed(body), replace_=replace),
    )
    if source.as_json:
        print_json(made)
        return 0
    return _print(source, [made])


@rates.command()
@click.argument("rate_id", metavar="ID", type=click.IntRange(1, 2**31 - 1))
@database_options
def remove(source: Source, rate_id: int) -> int:
    """Remove a rate; refused while a price starts with it."""
    from api.resources import exchange_rates as resource

    removed(source, "exchange-rates", rate_id, resource.remove)
    if source.as_json:
        print_json({"removed": rate_id})
    else:
        click.echo(f"Rate {rate_id} is removed.")
    return 0


@rates.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--replace", is_flag=True, help="In the place of rates of the same currency and day.")
@database_options
def import_(source: Source, file: Path, *, replace: bool) -> int:
    """Add the rates of a CSV file (currency, from_day, usd_per_unit): all or none."""
    from api.resources import exchange_rates as resource

    text = text_of(file)
    given = read_from(file, resource.bodies_of)
    made = changed(
        source,
        _path("exchange-rates/import", replace),
        {"csv": text},
        lambda session: resource.add_all(session, given, replace_=replace),
    )
    if source.as_json:
        print_json(made)
        return 0
    print_rows(made["rates"], RATES, empty="Nothing new.")
    counts = (made["added_count"], made["replaced_count"], made["unchanged_count"])
    click.echo("{} added, {} replaced, {} were there.".format(*counts), err=True)
    return 0


@rates.command()
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: stdout."
)
@database_options
def export(source: Source, out: Path | None) -> int:
    """Write every rate as the CSV that import reads back exactly; --json lists them instead."""
    from api.resources.exchange_rates import csv_of

    found = _rows(source)
    if source.as_json:
        return _print(source, found)
    write(csv_of(found), out, f"{len(found)} rates are")
    return 0


def _path(path: str, replace: bool) -> str:
    return f"{path}?replace=true" if replace else path


def _rows(source: Source) -> list[dict[str, Any]]:
    from api.resources import exchange_rates as resource

    return listed(source, "exchange-rates", resource.rows)


def _print(source: Source, found: list[dict[str, Any]]) -> int:
    if source.as_json:
        print_json(found)
    else:
        print_rows(found, RATES, empty=NONE)
    return 0
