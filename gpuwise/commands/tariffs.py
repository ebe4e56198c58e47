"""``gpuwise tariffs``: what electricity costs: one price, or a price by weekday and hour of the local clock."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from core.clock import now_ms
from core.errors import UsageError
from gpuwise.commands.display import Column, figure, print_json, print_rows
from gpuwise.commands.files import read_from, write
from gpuwise.commands.kept import added, changed, ended, listed, removed
from gpuwise.commands.options import DATABASE_URL_HELP, ListGroup, Source, database_options, open_session

TARIFFS: Final = (
    Column("id", "ID", str, right=True),
    Column("name", "NAME"),
    Column("kind", "KIND", lambda kind: kind.replace("_", " ")),
    Column("time_zone", "TIME ZONE"),
    figure("lowest_usd_per_kwh", "USD/KWH FROM", str),
    figure("highest_usd_per_kwh", "TO", str),
    Column("valid_from", "FROM", lambda at: "ever" if at.startswith("1970-01-01") else at[:16]),
    Column("valid_to", "UNTIL", lambda at: at[:16]),
    Column("note", "NOTE"),
)
NO_TARIFFS: Final = "No tariffs: energy has no cost, unless a setting gives one. Add one: gpuwise tariffs add --name NAME --usd-per-kwh PRICE"
ID: Final = click.argument("tariff_id", metavar="ID", type=click.IntRange(1, 2**31 - 1))
FORMAT: Final = click.Choice(["csv", "toml"])
_PERIOD: Final = re.compile(
    r"(?P<weekdays>.*\S)\s+(?P<from_hour>[^\s-]+)-(?P<to_hour>[^\s-]+)\s+(?P<usd_per_kwh>\S+)"
)


@click.group(cls=ListGroup)
def tariffs() -> None:
    """What electricity costs, and when: list, add, end, remove, import, export."""


@tariffs.command("list")
@database_options
def list_(source: Source) -> int:
    """List tariffs, by name and start; a site profile says for which hosts one holds."""
    return _print(source, _rows(source))


@tariffs.command()
@click.option("--name", required=True, metavar="NAME", help="What site profiles call it.")
@click.option("--usd-per-kwh", metavar="PRICE", help="One price for all hours.")
@click.option(
    "--period",
    "periods",
    multiple=True,
    metavar='"DAYS FROM-TO PRICE"',
    help='A price by local hours, such as "mon-fri 6-22 0.31" or "all 22-6 0.18"; each hour of the week once. Repeat it.',
)
@click.option(
    "--time-zone", metavar="ZONE", help="Of the local clock, such as Europe/Berlin; needed with --period."
)
@click.option(
    "--from",
    "valid_from",
    metavar="T",
    help="In force from a day of its time zone, or a time; default: ever.",
)
@click.option("--to", "valid_to", metavar="T", help="In force until; default: still.")
@click.option("--note", default="", metavar="TEXT", help="In your own words.")
@database_options
def add(source: Source, periods: tuple[str, ...], **given: Any) -> int:
    """Add a tariff. A later price of the same name follows where the one before ends."""
    from api.resources import tariffs as resource
    from api.resources.tariff_specs import parsed

    values = {name: value for name, value in given.items() if value is not None}
    body = parsed({**values, "periods": [_period(text) for text in periods]})
    return _print(source, [added(source, "tariffs", body, resource.add)])


@tariffs.command()
@ID
@click.option(
    "--at", required=True, metavar="T", help="A time, or a day of the tariff's time zone; exclusive."
)
@database_options
def end(source: Source, tariff_id: int, at: str) -> int:
    """Let a tariff end; what it priced before stays priced."""
    from api.resources import tariffs as resource

    return _print(source, [ended(source, "tariffs", tariff_id, at, resource.end)])


@tariffs.command()
@ID
@database_options
def remove(source: Source, tariff_id: int) -> int:
    """Remove a tariff, as if it had never been given."""
    from api.resources import tariffs as resource

    removed(source, "tariffs", tariff_id, resource.remove)
    return _print(source, _rows(source))


@tariffs.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--format", "form", type=FORMAT, help="Default: by the file's ending.")
@database_options
def import_(source: Source, file: Path, form: str | None) -> int:
    """Add tariffs from a CSV or TOML file as export writes it: all or none. What is there already stays."""
    from api.resources import tariffs as resource
    from api.resources.tariff_specs import bodies_of, parsed

    given = read_from(file, lambda text: bodies_of(text, is_toml=_form(form, file) == "toml"))
    bodies = []
    for where, values in given:
        try:
            bodies.append((f"{file}, {where}", parsed(values)))
        except UsageError as error:
            raise UsageError(f"{file}, {where}: {error}; nothing was kept") from error
    found = changed(
        source,
        "tariffs/import",
        {"tariffs": [body.model_dump(mode="json") for _, body in bodies]},
        lambda session: resource.add_all(session, source.settings, bodies, now_ms()),
    )
    return _print(source, found)


@tariffs.command()
@click.option("--format", "form", type=FORMAT, help="Default: by the ending of --out, else csv.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Default: the terminal.",
)
@click.option("--database-url", metavar="URL", help=DATABASE_URL_HELP)
def export(form: str | None, out: Path | None, database_url: str | None) -> int:
    """Write all tariffs as a file that import reads back exactly."""
    from api.resources.tariff_specs import csv_of, toml_of
    from core.settings import load
    from store.queries.tariffs import listing

    with open_session(load({"database_url": database_url})) as session:
        found = listing(session)
    text = (toml_of if _form(form, out) == "toml" else csv_of)(found)
    write(text, out, f"{len(found)} tariffs are")
    return 0


def _form(form: str | None, file: Path | None) -> str:
    if form is not None:
        return form
    return "toml" if file is not None and file.suffix.casefold() == ".toml" else "csv"


def _period(text: str) -> dict[str, str]:
    found = _PERIOD.fullmatch(text.strip())
    if found is None:
        raise UsageError(f'--period is {text!r}: give days, hours and a price, such as "mon-fri 6-22 0.31"')
    return found.groupdict()


def _rows(source: Source) -> list[dict[str, Any]]:
    from api.resources.tariffs import rows

    return listed(source, "tariffs", rows)


def _print(source: Source, found: Sequence[dict[str, Any]]) -> int:
    if source.as_json:
        print_json(found)
    else:
        print_rows(found, TARIFFS, empty=NO_TARIFFS)
    return 0
