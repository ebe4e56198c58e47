"""``gpuwise budgets``: what parts of the fleet may cost a month, and how the month goes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from core.clock import now_ms
from core.errors import UsageError
from gpuwise.commands.display import Column, dollars, figure, print_json, print_rows
from gpuwise.commands.kept import added, amended, listed, removed
from gpuwise.commands.options import ListGroup, Source, database_options

BUDGETS: Final = (
    Column("id", "ID", str, right=True),
    Column("name", "BUDGET"),
    Column("scope", "FOR"),
    figure("amount_usd", "A MONTH", dollars),
    figure("spent_usd", "SPENT", dollars),
    Column("state", "STATUS"),
    figure("p50_usd", "EXPECTED", dollars),
    figure("p10_usd", "LOW", dollars),
    figure("p90_usd", "HIGH", dollars),
    Column("breaks_on", "BREAKS ON"),
    Column("between", "BETWEEN"),
    figure("left_usd", "LEFT", dollars),
    figure("left_usd_per_day", "LEFT A DAY", dollars),
    Column("note", "NOTE"),
)
FORECAST: Final = (
    Column("label", "GROUP"),
    Column("month", "MONTH"),
    figure("spent_usd", "SPENT", dollars),
    figure("p50_usd", "EXPECTED", dollars),
    figure("p10_usd", "LOW", dollars),
    figure("p90_usd", "HIGH", dollars),
    figure("history_days", "DAYS", str),
)
STATES: Final = {"ok": "ok", "at_risk": "at risk", "over": "over"}
SCOPES: Final = ("team", "project", "cost_centre", "label", "cluster", "host")
NONE: Final = "No budgets in this month. Add one: gpuwise budgets add --name NAME --team TEAM --amount USD"
ID: Final = click.argument("budget_id", metavar="ID", type=click.IntRange(1, 2**31 - 1))
MONTH: Final = click.option("--month", metavar="YYYY-MM", help="Default: the month of now.")


@click.group(cls=ListGroup)
def budgets() -> None:
    """Budgets by month: list with status, forecast, add, set, end, remove."""


@budgets.command("list")
@MONTH
@database_options
def list_(source: Source, month: str | None) -> int:
    """Budgets of a month: spent, expected at its end (LOW and HIGH: one in ten is beyond), status."""
    return _print(source, _rows(source, month))


@budgets.command()
@click.option(
    "--by",
    type=click.Choice(["all", "owner", "project", "cost_centre", "cluster", "host"]),
    default="owner",
    show_default=True,
    help="What to group by; owner is the team.",
)
@MONTH
@database_options
def forecast(source: Source, by: str, month: str | None) -> int:
    """What each group will have spent at the end of a month, whether it has a budget or not."""
    from api.resources import forecast as resource

    found = listed(
        source,
        "forecast",
        lambda session: resource.rows(session, source.settings, now_ms(), resource.ForecastBy(by), month),
        {"by": by, "month": month},
    )
    if source.as_json:
        print_json(found)
        return 0
    print_rows(found, FORECAST, empty="No spend is known yet.")
    _say(found, "label")
    return 0


@budgets.command()
@click.option("--name", required=True, metavar="NAME", help="In your own words.")
@click.option("--amount", "amount_usd", required=True, metavar="USD", help="Dollars a month.")
@click.option("--team", metavar="NAME", help="It is for this team of the owner rules.")
@click.option("--project", metavar="NAME", help="For this project, of whichever team.")
@click.option("--cost-centre", metavar="NAME", help="For this cost centre, of whichever team.")
@click.option("--label", metavar="KEY=VALUE", help="For hosts with this label.")
@click.option("--cluster", metavar="NAME", help="For the hosts of this cluster.")
@click.option("--host", metavar="NAME", help="For this host; without any of these: for everything.")
@click.option("--from", "from_month", metavar="YYYY-MM", help="First month; default: the one of now.")
@click.option("--to", "to_month", metavar="YYYY-MM", help="Last month, included; default: still.")
@click.option("--note", default="", metavar="TEXT", help="In your own words.")
@database_options
def add(source: Source, **given: Any) -> int:
    """Add a budget."""
    from api.resources import budgets as resource

    scopes = {kind: value for kind in SCOPES if (value := given.pop(kind)) is not None}
    if len(scopes) > 1:
        names = " and ".join(f"--{kind.replace('_', '-')}" for kind in scopes)
        raise UsageError(f"{names} name {len(scopes)} scopes: give one, or none for everything")
    kind, value = next(iter(scopes.items()), ("all", ""))
    body = resource.parsed({**given, "scope_kind": kind, "scope_value": value})
    return _print(source, [added(source, "budgets", body, resource.add)])


@budgets.command("set")
@ID
@click.option("--amount", "amount_usd", metavar="USD", help="Dollars a month.")
@click.option(
    "--since",
    "since_month",
    metavar="YYYY-MM",
    help="From this month on: the months before keep what they had. Default: all its months.",
)
@click.option("--name", metavar="NAME", help="In your own words.")
@click.option("--note", metavar="TEXT", help="In your own words.")
@database_options
def set_(source: Source, budget_id: int, **given: Any) -> int:
    """Change a budget's amount, name or note."""
    return _change(source, budget_id, given)


@budgets.command()
@ID
@click.option("--month", "to_month", required=True, metavar="YYYY-MM", help="Its last month.")
@database_options
def end(source: Source, budget_id: int, to_month: str) -> int:
    """Let a budget end with a month; the months until then stay."""
    return _change(source, budget_id, {"to_month": to_month})


@budgets.command()
@ID
@database_options
def remove(source: Source, budget_id: int) -> int:
    """Remove a budget, as if it had never been given."""
    from api.resources import budgets as resource

    removed(source, "budgets", budget_id, resource.remove)
    return _print(source, _rows(source, None))


def _change(source: Source, budget_id: int, given: Mapping[str, Any]) -> int:
    from api.resources import budgets as resource

    body = resource.change_of(given)
    return _print(source, [amended(source, "budgets", budget_id, body, resource.change)])


def _rows(source: Source, month: str | None) -> list[dict[str, Any]]:
    from api.resources import budgets as resource

    return listed(
        source,
        "budgets",
        lambda session: resource.rows(session, source.settings, now_ms(), month),
        {"month": month},
    )


def _print(source: Source, found: Sequence[dict[str, Any]]) -> int:
    if source.as_json:
        print_json(found)
        return 0
    print_rows([row | _told(row) for row in found], BUDGETS, empty=NONE)
    for month in sorted({row["month"] for row in found}):
        until = next(row["data_until"] for row in found if row["month"] == month)
        data = "no data yet" if until is None else f"data until {until[:16].replace('T', ' ')} UTC"
        click.echo(f"Month: {month}; {data}; LOW to HIGH: four in five months end between them.")
    _say(found, "name")
    return 0


def _told(row: Mapping[str, Any]) -> dict[str, str | None]:
    """What a finance person reads of a row."""
    kind, value = row["scope_kind"], row["scope_value"]
    early, late = row["breaks_earliest"], row["breaks_latest"]
    return {
        "scope": "everything" if kind == "all" else f"{kind.replace('_', ' ')} {value}",
        "state": STATES.get(row["status"]),
        "between": None
        if early is None or early == late
        else f"{early[5:]} to {late[5:] if late else 'later'}",
    }


def _say(found: Sequence[Mapping[str, Any]], name: str) -> None:
    """Why a row has no forecast, and which days were left out."""
    for row in found:
        if row["why"] is not None:
            click.echo(f"{row[name]}: no forecast: {row['why']}")
        elif row["left_out_days"]:
            days = ", ".join(f"{count} {why}" for why, count in sorted(row["left_out_days"].items()))
            click.echo(f"{row[name]}: days left out: {days}")
