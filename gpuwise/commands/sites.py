"""``gpuwise sites``: energy terms of hosts, clusters or everything: tariff, PUE, host share, carbon, who pays for power."""

from collections.abc import Sequence
from typing import Any, Final

import click

from api import formats
from core.clock import now_ms
from core.errors import UsageError
from gpuwise.commands.display import Column, figure, print_json, print_rows
from gpuwise.commands.kept import added, ended, listed, removed
from gpuwise.commands.options import ListGroup, Source, database_options


def _number(value: float) -> str:
    return f"{value:g}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


SITES: Final = (
    Column("id", "ID", str, right=True),
    Column("name", "NAME"),
    Column("scope_kind", "FOR"),
    Column("scope_value", "WHICH"),
    figure("gpu_count", "GPUS", str),
    Column("tariff", "TARIFF"),
    figure("pue", "PUE", _number),
    figure("host_share_ratio", "HOST SHARE", formats.percent),
    Column("host_share_measured", "MEASURED", _yes),
    Column("grid_code", "GRID"),
    figure("carbon_g_per_kwh", "G/KWH", _number),
    Column("pays_for_power", "PAYS POWER", _yes),
    Column("valid_from", "FROM", lambda at: "ever" if at.startswith("1970-01-01") else at[:16]),
    Column("valid_to", "UNTIL", lambda at: at[:16]),
    Column("note", "NOTE"),
)
TERMS: Final = (
    Column("host", "HOST"),
    Column("site", "SITE"),
    figure("usd_per_kwh", "USD/KWH", str),
    Column("tariff", "TARIFF", lambda tariff: tariff.partition(", from profile ")[0]),
    figure("pue", "PUE", _number),
    figure("host_share_ratio", "HOST SHARE", formats.percent),
    Column("host_share_method", "FROM"),
    figure("carbon_g_per_kwh", "G/KWH", _number),
    Column("carbon_code", "GRID"),
    Column("pays_for_power", "PAYS POWER", _yes),
)
NO_SITES: Final = "No site profiles: the settings hold everywhere. Add one: gpuwise sites add --name NAME --pue 1.2 --tariff NAME"
ID: Final = click.argument("site_id", metavar="ID", type=click.IntRange(1, 2**31 - 1))
SHARE: Final = "Share of GPU power, 0 to 2."


@click.group(cls=ListGroup)
def sites() -> None:
    """Energy terms of hosts, clusters or everything, and what holds for each host: list, add, end, remove, terms."""


@sites.command("list")
@database_options
def list_(source: Source) -> int:
    """List profiles; a host's is stronger than its cluster's, that than the one for all, that than the settings."""
    return _print(source, _rows(source))


@sites.command()
@click.option("--name", required=True, metavar="NAME", help="In your own words; figures carry it.")
@click.option("--host", metavar="NAME", help="It is for this host.")
@click.option("--cluster", metavar="NAME", help="It is for this cluster; default: for everything.")
@click.option("--tariff", metavar="NAME", help="A tariff: gpuwise tariffs list.")
@click.option("--pue", type=float, metavar="X", help="Power usage effectiveness, 1 to 3.")
@click.option("--host-share-ratio", type=float, metavar="X", help=f"The node's other power. {SHARE}")
@click.option(
    "--host-share-measured",
    is_flag=True,
    help="Measure it by day where processor power is known (RAPL); --host-share-ratio stands in.",
)
@click.option(
    "--host-rest-ratio",
    type=float,
    metavar="X",
    help=f"On top of what is measured: fans, network, losses. {SHARE}",
)
@click.option(
    "--grid-code", metavar="CODE", help="Country (DEU), US state (US-VA), cloud region (aws:eu-central-1)."
)
@click.option("--carbon-g-per-kwh", type=float, metavar="G", help="Your own figure; wins over --grid-code.")
@click.option(
    "--pays-for-power/--power-is-in-the-price",
    default=None,
    help="Power is a bill of its own here, so energy is added to cost, or it is not.",
)
@click.option(
    "--from",
    "valid_from",
    metavar="T",
    help="In force from a day of the accounting time zone, or a time; default: ever.",
)
@click.option("--to", "valid_to", metavar="T", help="In force until; default: still.")
@click.option("--note", default="", metavar="TEXT", help="In your own words.")
@database_options
def add(source: Source, host: str | None, cluster: str | None, **given: Any) -> int:
    """Add a profile. What it leaves out is taken from the next broader one, then from the settings."""
    from api.resources import sites as resource

    if host is not None and cluster is not None:
        raise UsageError("--host and --cluster name two scopes: give one, or neither for everything")
    kind = "host" if host is not None else "cluster" if cluster is not None else "all"
    body = resource.parsed({**given, "scope_kind": kind, "scope_value": host or cluster or ""})
    return _print(source, [added(source, "sites", body, resource.add)])


@sites.command()
@ID
@click.option(
    "--at", required=True, metavar="T", help="A time, or a day of the accounting time zone; exclusive."
)
@database_options
def end(source: Source, site_id: int, at: str) -> int:
    """Let a profile end; what it said of the time before stays."""
    from api.resources import sites as resource

    return _print(source, [ended(source, "sites", site_id, at, resource.end)])


@sites.command()
@ID
@database_options
def remove(source: Source, site_id: int) -> int:
    """Remove a profile, as if it had never been given."""
    from api.resources import sites as resource

    removed(source, "sites", site_id, resource.remove)
    return _print(source, _rows(source))


@sites.command()
@click.argument("host", required=False)
@click.option("--at", metavar="T", help="A time or day; default: now.")
@database_options
def terms(source: Source, host: str | None, at: str | None) -> int:
    """What holds for a host, or for each, in one hour; --json says where each figure is from."""
    from api.resources import sites as resource
    from api.resources.owner_specs import when

    def local(session: Any) -> Any:
        now = now_ms()
        at_ms = now if at is None else when(at, source.settings, now, "at")
        return resource.terms(session, source.settings, at_ms, host)

    found = listed(source, "sites/terms", local, {"host": host, "at": at})
    if source.as_json:
        print_json(found)
    else:
        print_rows(found, TERMS, empty="No hosts yet.")
        grids = {(row["carbon_code"], row["carbon_year"], row["carbon_method"]) for row in found}
        for code, year, method in sorted(grids, key=str):
            if method is not None:
                click.echo(f"Grid {code}: {method}{'' if year is None else f' of {year}'}.")
    return 0


def _rows(source: Source) -> list[dict[str, Any]]:
    from api.resources.sites import rows

    return listed(source, "sites", rows)


def _print(source: Source, found: Sequence[dict[str, Any]]) -> int:
    if source.as_json:
        print_json(found)
    else:
        print_rows(found, SITES, empty=NO_SITES)
    return 0
