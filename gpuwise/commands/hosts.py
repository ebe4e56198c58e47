"""``gpuwise hosts``: the machines, and what you say about them."""

from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from api import formats
from core.errors import UsageError
from gpuwise.commands.display import Column, dollars, figure, hours, print_json, print_rows
from gpuwise.commands.files import read_from
from gpuwise.commands.kept import changed
from gpuwise.commands.options import Source, before_subcommand, database_options, window_options
from gpuwise.commands.tables import show

HOSTS: Final = (
    Column("host", "HOST"),
    figure("gpu_count", "GPUS", str),
    Column("models", "MODELS", ", ".join),
    Column("activities", "NOW", lambda found: ", ".join(f"{count} {name}" for name, count in found.items())),
    figure("power_w", "POWER", formats.watts),
    figure("active_gpu_h", "ACTIVE GPU-H", hours),
    figure("total_gpu_h", "TOTAL GPU-H", hours),
    figure("cost_usd", "COST", dollars),
    figure("idle_cost_usd", "IDLE COST", dollars),
    figure("coverage_ratio", "SEEN", formats.percent),
    Column("last_sample_at", "LAST SAMPLE"),
)
MACHINES: Final = (
    Column("host", "HOST"),
    figure("cpu_busy_ratio", "CPU", formats.percent),
    figure("cpu_busiest_ratio", "BUSIEST CORE", formats.percent),
    figure("iowait_ratio", "IOWAIT", formats.percent),
    figure("host_memory_used_bytes", "MEMORY", formats.gib),
    figure("host_memory_total_bytes", "OF", formats.gib),
    figure("host_power_w", "CPU POWER", formats.watts),
    Column("agent_version", "AGENT"),
    Column("last_delivery_at", "LAST DELIVERY"),
    figure("agent_cpu_ratio", "ITS CPU", partial(formats.percent, places=2)),
    figure("agent_memory_bytes", "ITS MEMORY", formats.mib),
    figure("agent_tick_s", "ROUND", formats.milliseconds),
    figure("agent_waiting_count", "WAITING", formats.short),
)
"""How the hosts themselves and the agents on them fare."""
FACTS: Final = (
    Column("host", "HOST"),
    Column("cluster", "CLUSTER"),
    Column("instance_type", "INSTANCE TYPE"),
    Column("region", "REGION"),
    Column("labels", "LABELS", lambda labels: " ".join(f"{name}={value}" for name, value in labels.items())),
)


@click.group(invoke_without_command=True)
@window_options
@database_options
@click.pass_context
def hosts(ctx: click.Context, source: Source, since: str | None, until: str | None) -> int:
    """Every host: its GPUs, what they do, what they cost; its processors and memory, and its agent."""
    if before_subcommand(ctx):
        return 0
    from api.resources.hosts import rows

    return show(source, "hosts", HOSTS, rows, since=since, until=until, beside=MACHINES)


@hosts.command()
@click.argument("host", metavar="NODE")
@click.argument("said", metavar="NAME=VALUE…", nargs=-1, required=True)
@database_options
def label(source: Source, host: str, said: tuple[str, ...]) -> int:
    """Say what a host is: cluster=…, instance_type=…, region=…, or any NAME=VALUE; an empty value removes.

    NODE may be a pattern such as 'dev-*'. Days of the ledger that it changes are booked anew.
    """
    facts: dict[str, str] = {}
    for one in said:
        name, mark, value = one.partition("=")
        if not mark:
            raise UsageError(f"{one!r} says nothing: use NAME=VALUE, e.g. cluster=prod")
        if name.strip() in facts:
            raise UsageError(f"{name.strip()} is given twice: give it once")
        facts[name.strip()] = value.strip()
    return _print(source, _write(source, [{"host": host, "facts": facts}], skip_unknown=False))


@hosts.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--skip-unknown", is_flag=True, help="Pass over hosts that gpuwise has never seen.")
@database_options
def import_(source: Source, file: Path, skip_unknown: bool) -> int:
    """Say what many hosts are, from a CSV file: a column host, and one for each fact; an empty cell says nothing.

    All lines or none.
    """
    from api.resources.table_csv import read

    lines = [
        {
            "host": cells.pop("host", ""),
            "facts": {name: cell.strip() for name, cell in cells.items() if cell.strip()},
        }
        for _, cells in read_from(file, lambda text: read(text, None, ("host",)))
    ]
    return _print(source, _write(source, lines, skip_unknown=skip_unknown))


def _write(source: Source, lines: list[dict[str, Any]], *, skip_unknown: bool) -> list[dict[str, Any]]:
    from api.resources.host_facts import HostSays, say

    given = [HostSays(line["host"], line["facts"]) for line in lines]
    rows: list[dict[str, Any]] = changed(
        source,
        "hosts/facts",
        {"hosts": lines, "skip_unknown": skip_unknown},
        lambda session: say(session, given, skip_unknown=skip_unknown),
    )
    return rows


def _print(source: Source, rows: list[dict[str, Any]]) -> int:
    if source.as_json:
        print_json(rows)
    else:
        print_rows(rows, FACTS, empty="Nothing was said of any host.")
    return 0
