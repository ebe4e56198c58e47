"""``gpuwise prices``: what GPU-hours cost: your prices, and the one in force for each GPU."""

from collections import Counter
from pathlib import Path
from typing import Any, Final

import click

from core.clock import now_ms
from core.errors import UsageError
from gpuwise.commands.display import Column, figure, print_json, print_rows
from gpuwise.commands.files import read_from, text_of, write
from gpuwise.commands.kept import changed, listed, removed
from gpuwise.commands.options import Source, database_options
from gpuwise.commands.price_options import body_of, price_options

ID: Final = click.argument("price_id", metavar="ID", type=click.IntRange(1, 2**31 - 1))
NONE: Final = "No prices of yours: the catalogue's median on-demand prices are used. Add one: gpuwise prices add --host NAME --usd-per-gpu-hour X"


def day(at: str) -> str:
    """A time as its day; "ever" for a price without a start."""
    return "ever" if at.startswith("1970-01-01") else at[:16].replace("T", " ").removesuffix(" 00:00")


PRICES: Final = (
    Column("id", "ID", str, right=True),
    Column("what", "FOR"),
    figure("gpu_count", "GPUS", str),
    figure("usd_per_gpu_hour", "USD/GPU-H", str),
    Column("foreign", "AMOUNT"),
    Column("billing", "BILLING"),
    Column("gpus_per_unit", "UNIT", str, right=True),
    Column("valid_from", "FROM", day),
    Column("valid_to", "UNTIL", day),
    Column("commitment", "COMMITMENT"),
    Column("note", "NOTE"),
)
EFFECTIVE: Final = (
    Column("host", "HOST"),
    figure("gpus", "GPUS", str),
    Column("model", "MODEL"),
    figure("usd_per_gpu_hour", "USD/GPU-H", str),
    figure("list_usd_per_gpu_hour", "LIST", str),
    Column("billing", "BILLING"),
    figure("price_age_days", "AGE, DAYS", str),
    Column("price_basis", "BASIS"),
)


@click.group(invoke_without_command=True)
@click.option("--effective", "in_force", is_flag=True, help="Every GPU with the price in force.")
@database_options
@click.pass_context
def prices(ctx: click.Context, source: Source, *, in_force: bool) -> int:
    """What GPU-hours cost: your prices, most specific first; the catalogue's where you gave none."""
    if ctx.invoked_subcommand is None:
        return _effective(source) if in_force else _list(source)
    given = [name for name, value in ctx.params.items() if value]
    if given:
        flags = ", ".join(f"--{name.removeprefix('as_').replace('_', '-')}" for name in given)
        raise UsageError(f"{flags} stands before {ctx.invoked_subcommand}: give it after")
    return 0


@prices.command("list")
@database_options
def list_(source: Source) -> int:
    """Your prices."""
    return _list(source)


@prices.command()
@database_options
def effective(source: Source) -> int:
    """Every GPU with the price in force, where it is from and how old it is; unpriced ones are counted."""
    return _effective(source)


@prices.command()
@price_options
@click.option("--replace", is_flag=True, help="End an older price for the same thing where this one starts.")
@database_options
def add(source: Source, *, replace: bool, **given: Any) -> int:
    """Add a price. The most specific wins: GPU, host, label, instance type, cluster, model, all."""
    from api.resources import prices as resource
    from api.resources.price_specs import parsed

    body = body_of(given)
    made = changed(
        source,
        _path("prices", replace),
        body,
        lambda session: resource.add(session, source.settings, now_ms(), parsed(body), supersede=replace),
    )
    return _print(source, made, [made])


@prices.command()
@ID
@click.option("--on", required=True, metavar="T", help="It is in force until this day or time.")
@database_options
def end(source: Source, price_id: int, on: str) -> int:
    """Let a price end; what it priced before stays priced."""
    from api.resources import prices as resource

    ended = changed(
        source,
        f"prices/{price_id}",
        {"valid_to": on},
        lambda session: resource.end(session, source.settings, now_ms(), price_id, on),
        method="PATCH",
    )
    return _print(source, ended, [ended])


@prices.command()
@ID
@database_options
def remove(source: Source, price_id: int) -> int:
    """Remove a price, as if it had never been given."""
    from api.resources import prices as resource

    removed(source, "prices", price_id, resource.remove)
    if source.as_json:
        print_json({"removed": price_id})
    else:
        click.echo(f"Price {price_id} is removed.")
    return 0


@prices.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--replace", is_flag=True, help="End older prices for the same things where new ones start.")
@database_options
def import_(source: Source, file: Path, *, replace: bool) -> int:
    """Add the prices of a CSV file: all or none; those that are there already, just so, are left alone."""
    from api.resources import prices as resource
    from api.resources.price_specs import bodies_of

    text = text_of(file)
    given = read_from(file, bodies_of)
    made = changed(
        source,
        _path("prices/import", replace),
        {"csv": text},
        lambda session: resource.add_all(session, source.settings, now_ms(), given, supersede=replace),
    )
    code = _print(source, made, made["prices"], empty="Nothing new.")
    if not source.as_json:
        click.echo(
            f"{made['added_count']} added, {made['unchanged_count']} were there, {made['ended_count']} ended.",
            err=True,
        )
    return code


@prices.command()
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: stdout."
)
@database_options
def export(source: Source, out: Path | None) -> int:
    """Write your prices as the CSV that import reads back exactly; --json lists them instead."""
    if source.as_json:
        return _list(source)
    if source.server is not None:
        from gpuwise.commands.remote import ask_text

        text = ask_text(source.server, "prices/export")
    else:
        from api.resources.price_specs import csv_of
        from gpuwise.commands.options import open_session
        from store.queries import prices as kept

        with open_session(source.settings) as session:
            text = csv_of(kept.listing(session))
    write(text, out, "Your prices are")
    return 0


def _path(path: str, replace: bool) -> str:
    return f"{path}?supersede=true" if replace else path


def _list(source: Source) -> int:
    from api.resources import prices as resource

    found = listed(source, "prices", lambda session: resource.rows(session, now_ms()))
    return _print(source, found, found)


def _effective(source: Source) -> int:
    from api.resources import effective_prices as resource

    found = listed(
        source, "prices/effective", lambda session: resource.rows(session, source.settings, now_ms())
    )
    if source.as_json:
        print_json(found)
        return 0
    print_rows(_alike(found), EFFECTIVE, empty="No GPUs yet: run gpuwise up, or gpuwise import.")
    unpriced = [row for row in found if row["usd_per_gpu_hour"] is None]
    stale = sum(row["stale"] for row in found)
    click.echo(f"\n{len(found) - len(unpriced)} GPUs priced, {len(unpriced)} unpriced.")
    for why in dict.fromkeys(row["why_unpriced"] for row in unpriced):
        click.echo(f"Unpriced: {why}.")
    if stale:
        click.echo(f"{stale} GPUs by a catalogue price older than 90 days: give your own price.")
    return 0


def _alike(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for the GPUs of a host that are priced alike; --json has each."""
    fields = [column.field for column in EFFECTIVE if column.field != "gpus"]
    counts = Counter(tuple(row[name] for name in fields) for row in found)
    return [{**dict(zip(fields, alike, strict=True)), "gpus": count} for alike, count in counts.items()]


def _print(source: Source, said: Any, rows: list[dict[str, Any]], *, empty: str = NONE) -> int:
    if source.as_json:
        print_json(said)
        return 0
    print_rows([_shown(row) for row in rows], PRICES, empty=empty)
    for row in rows:
        if row["gpu_count"] == 0:
            click.echo(f"Price {row['id']}: no GPU seen so far is of {_what(row)}: check the name.")
        if row["owned_rate"] is not None:
            click.echo(f"Price {row['id']}: {row['owned_rate']['energy']}.")
        if row["spot_effective_amount_per_gpu_hour"] is not None:
            lost = f"{row['spot_effective_amount_per_gpu_hour']} {row['currency']}"
            click.echo(f"Price {row['id']}: {lost} an hour of finished work, with what interruptions cost.")
    return 0


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    amount = f"{row['effective_amount_per_gpu_hour']} {row['currency']}"
    return row | {
        "what": _what(row),
        "foreign": amount if row["currency"] != "USD" else "",
    }


def _what(row: dict[str, Any]) -> str:
    return f"{row['scope_kind']} {row['scope_value']}".strip()
