"""``gpuwise workloads``: who used what."""

from dataclasses import asdict
from typing import Final

import click

from api import formats
from api.resources.report_filters import Filters
from gpuwise.commands.display import Column, dollars, figure, hours
from gpuwise.commands.options import Source, database_options, window_options
from gpuwise.commands.tables import filter_options, show


def minute(at: str) -> str:
    """A time to the minute, UTC."""
    return at[:16].replace("T", " ")


WORKLOADS: Final = (
    Column("name", "WORKLOAD"),
    Column("kind", "KIND"),
    Column("user", "USER"),
    Column("owner", "OWNER"),
    figure("gpu_count", "GPUS", str),
    figure("allocated_gpu_h", "ALLOCATED", hours),
    figure("active_gpu_h", "ACTIVE", hours),
    figure("effective_gpu_h", "EFFECTIVE", hours),
    figure("unknown_gpu_h", "UNKNOWN", hours),
    figure("cost_usd", "COST", dollars),
    figure("idle_cost_usd", "IDLE", dollars),
    figure("energy_kwh", "ENERGY", formats.kwh),
    Column("first_seen_at", "FIRST SEEN", minute),
    Column("last_seen_at", "LAST SEEN", minute),
    Column("workload", "KEY"),
)


@click.command()
@filter_options
@window_options
@database_options
def workloads(source: Source, since: str | None, until: str | None, filters: Filters) -> int:
    """Who used what: user, owner, GPU-hours, cost, idle cost and energy of everything that held a GPU."""
    from api.resources.workloads import rows

    return show(
        source,
        "workloads",
        WORKLOADS,
        lambda scope: rows(scope, filters),
        since=since,
        until=until,
        more=asdict(filters),
    )
