"""``gpuwise owners``: whose GPU time is: rules, what they claim, and what stays unowned."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import click

from api import formats
from core.errors import UsageError
from gpuwise.commands.display import Column, figure, hours, print_json, print_rows
from gpuwise.commands.files import read_from, write
from gpuwise.commands.options import Source, before_subcommand, database_options, window_options
from gpuwise.commands.owner_calls import Rules
from gpuwise.commands.tables import show

OWNERS: Final = (
    Column("label", "OWNER"),
    Column("cost_centre", "COST CENTRE"),
    figure("gpu_h", "GPU-H", hours),
    figure("workload_gpu_h", "BY WORKLOADS", hours),
    figure("rule_count", "RULES", str),
)
RULES: Final = (
    Column("position", "", str, right=True),
    Column("id", "ID", str, right=True),
    Column("owner", "OWNER"),
    Column("cost_centre", "COST CENTRE"),
    Column("conditions", "WHEN"),
    Column("valid_from", "FROM", lambda at: "ever" if at.startswith("1970-01-01") else at[:10]),
    Column("valid_to", "UNTIL", lambda at: at[:10]),
    Column("note", "NOTE"),
)
CLAIMS: Final = (
    Column("workload", "WORKLOAD"),
    Column("kind", "KIND"),
    Column("user", "USER"),
    Column("host", "HOST"),
    figure("gpu_h", "GPU-H", hours),
    Column("owner", "NOW OF"),
)
SHOWN: Final = 40
"""Lines of a dry run on a terminal."""
NO_RULES: Final = (
    "No owner rules: everything is unowned. Add one: gpuwise owners add --team NAME --user PATTERN"
)
ID: Final = click.argument("rule_id", metavar="ID", type=click.IntRange(1, 2**31 - 1))
ON: Final = click.option(
    "--on", required=True, metavar="T", help="From this day (of the accounting time zone) or time on."
)


RULE_OPTIONS: Final = (
    click.option("--catch-all", is_flag=True, help="It is meant to match everything."),
    click.option("--note", default="", metavar="TEXT", help="In your own words."),
    click.option("--to", "valid_to", metavar="T", help="In force until; default: still."),
    click.option("--from", "valid_from", metavar="T", help="In force from a day or time; default: ever."),
    click.option("--position", type=click.IntRange(1), help="Its place, 1 is asked first; default: last."),
    click.option(
        "--host-label",
        "host_labels",
        multiple=True,
        metavar="NAME=PATTERN",
        help="Of the host: cluster, instance_type, region or a label.",
    ),
    click.option("--host", metavar="PATTERN", help="Host of the GPU."),
    click.option(
        "--label",
        "labels",
        multiple=True,
        metavar="NAME=PATTERN",
        help="An attribute of the workload, or its name.",
    ),
    click.option("--kind", metavar="PATTERN", help="process, container, pod, slurm_job, systemd_unit …"),
    click.option("--image", metavar="PATTERN", help="Image of the workload."),
    click.option("--unit", metavar="PATTERN", help="systemd unit of the workload."),
    click.option("--slurm-account", metavar="PATTERN", help="Slurm account of the workload."),
    click.option("--namespace", metavar="PATTERN", help="Kubernetes namespace of the workload."),
    click.option("--user", metavar="PATTERN", help="User of the workload."),
)


def rule_options(*, team_required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add what an owner rule consists of."""

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in RULE_OPTIONS:
            command = option(command)
        return owner_options(required=team_required)(command)

    return with_options


def owner_options(*, required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add who pays."""

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            click.option("--cost-centre", default="", metavar="NAME", help="That is charged."),
            click.option("--project", default="", metavar="NAME", help="Of the team."),
            click.option("--team", required=required, metavar="NAME", help="Who pays."),
        ):
            command = option(command)
        return command

    return with_options


@click.group(invoke_without_command=True)
@window_options
@database_options
@click.pass_context
def owners(ctx: click.Context, source: Source, since: str | None, until: str | None) -> int:
    """Whose GPU time is: owners with what they have, and what is unowned."""
    if before_subcommand(ctx):
        return 0
    from api.resources.owner_claims import rows

    return show(source, "owners", OWNERS, rows, since=since, until=until)


@owners.command()
@database_options
def rules(source: Source) -> int:
    """Every rule in its order: the first that fits wins."""
    return _print(source, Rules(source).listed())


@owners.command()
@rule_options(team_required=True)
@database_options
def add(source: Source, position: int | None, **given: Any) -> int:
    """Add a rule. Every condition must hold; * and ? stand for letters."""
    return _print(source, [Rules(source).add(given, position)])


@owners.command()
@ID
@click.argument("position", type=click.IntRange(1))
@database_options
def move(source: Source, rule_id: int, position: int) -> int:
    """Move a rule to another place in the order; 1 is asked first."""
    Rules(source).change(rule_id, {}, position)
    return _print(source, Rules(source).listed())


@owners.command()
@ID
@ON
@database_options
def end(source: Source, rule_id: int, on: str) -> int:
    """Let a rule end; what it claimed until then stays claimed."""
    return _print(source, [Rules(source).change(rule_id, {"valid_to": on})])


@owners.command("hand-over")
@ID
@owner_options()
@ON
@database_options
def hand_over(source: Source, rule_id: int, on: str, **owner: str) -> int:
    """Let another owner have what a rule claims, from a day on."""
    Rules(source).hand_over(rule_id, owner, on)
    return _print(source, Rules(source).listed())


@owners.command()
@click.argument("team")
@click.option("--team", "to_team", metavar="NAME", help="Its new name.")
@click.option("--cost-centre", "to_cost_centre", metavar="NAME", help="Its new cost centre.")
@ON
@database_options
def rename(source: Source, team: str, to_team: str | None, to_cost_centre: str | None, on: str) -> int:
    """Rename a team, or move it to another cost centre, from a day on: in all of its rules."""
    return _print(source, Rules(source).rename(team, to_team, to_cost_centre, on))


@owners.command()
@ID
@database_options
def remove(source: Source, rule_id: int) -> int:
    """Remove a rule, as if it had never been."""
    Rules(source).remove(rule_id)
    return _print(source, Rules(source).listed())


@owners.command("dry-run")
@click.option("--rule", "rule_id", type=click.IntRange(1, 2**31 - 1), help="A rule that is there, by its ID.")
@rule_options(team_required=False)
@window_options
@database_options
def dry_run(
    source: Source,
    rule_id: int | None,
    position: int | None,
    since: str | None,
    until: str | None,
    **given: Any,
) -> int:
    """What a rule would claim, from whom, and what stays unowned: options as for add, or --rule ID. Nothing is kept."""
    window = {"since": since, "until": until}
    if rule_id is None:
        if given["team"] is None:
            raise UsageError("nothing to try: give a rule as for add (--team and conditions), or --rule ID")
        found = Rules(source).dry_run(given, position, window)
    else:
        found = Rules(source).dry_run_of(rule_id, window)
    if source.as_json:
        print_json(found)
        return 0
    claimed = found["claimed"]
    print_rows(claimed[:SHOWN], CLAIMS, empty="It would claim nothing of this window.")
    if len(claimed) > SHOWN:
        click.echo(f"… and {len(claimed) - SHOWN} more: --json has all of them")
    kept = sum(row["gpu_h"] for row in found["kept_by_others"])
    click.echo(
        f"\n{found['rule']['owner']} would have {_h(found['claimed_gpu_h'])} of {_h(found['total_gpu_h'])}, {_usd(found['claimed_usd'])}; "
        f"it fits {_h(kept)} more that earlier rules keep."
    )
    click.echo(
        f"Unowned: {_h(found['unowned_before_gpu_h'])} without it, {_h(found['unowned_after_gpu_h'])} with it."
    )
    return 0


@owners.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--replace", is_flag=True, help="In the stead of all rules there are.")
@database_options
def import_(source: Source, file: Path, replace: bool) -> int:
    """Add rules from a CSV file as export writes it: all or none."""
    from api.resources.owners import specs_of

    made = Rules(source).import_rules(read_from(file, specs_of), replace=replace)
    return _print(source, made, empty="The file has no rules: nothing was changed.")


@owners.command()
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: stdout."
)
@database_options
def export(source: Source, out: Path | None) -> int:
    """Write every rule as the CSV that import reads back exactly; --json lists them instead."""
    from api.resources.owners import csv_of

    found = Rules(source).listed()
    if source.as_json:
        print_json(found)
        return 0
    write(csv_of(found), out, f"{len(found)} rules are")
    return 0


def _h(gpu_h: float) -> str:
    return formats.gpu_hours(gpu_h).replace(formats.NBSP, " ")


def _usd(text: str | None) -> str:
    return (
        "a GPU of which has no price" if text is None else f"{formats.money(Decimal(text))} at today's prices"
    )


def _print(source: Source, rows: list[dict[str, Any]], *, empty: str = NO_RULES) -> int:
    if source.as_json:
        print_json(rows)
    else:
        print_rows(rows, RULES, empty=empty)
    return 0
