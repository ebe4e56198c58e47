"""``gpuwise gpus · hosts · usage · costs · energy · engines``: what the REST API gives, as tables or JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from functools import wraps
from typing import Any, Final

import click

from api import formats
from api.resources.by import DESCRIPTION, TIMES, By, Keys, keys_of
from api.resources.idle_sharing import IdlePolicy
from api.resources.report_filters import Filters
from core.clock import from_ms, to_ms
from core.evidence import Window
from gpuwise.commands.display import Column, dollars, figure, hours, print_json, print_rows
from gpuwise.commands.options import Source, database_options, open_session, window_options

NO_DATA: Final = "No data in this window: run gpuwise up, or gpuwise import, or widen --since."

GPUS: Final = (
    Column("host", "HOST"),
    Column("index", "GPU"),
    Column("model", "MODEL"),
    Column("activity", "ACTIVITY"),
    figure("busy_ratio", "BUSY", formats.percent),
    figure("sm_active_ratio", "SM", formats.percent),
    figure("dram_active_ratio", "DRAM", formats.percent),
    figure("tensor_active_ratio", "TENSOR", formats.percent),
    figure("power_w", "POWER", formats.watts),
    figure("memory_used_bytes", "MEMORY", formats.gib),
    figure("price_usd_per_hour", "USD/H", dollars),
    figure("coverage_ratio", "SEEN", formats.percent),
    Column("last_sample_at", "LAST SAMPLE"),
    Column("gpu_uuid", "UUID"),
)
USAGE: Final = (
    Column("label", "GROUP"),
    figure("total_gpu_h", "TOTAL GPU-H", hours),
    figure("allocated_gpu_h", "ALLOCATED", hours),
    figure("active_gpu_h", "ACTIVE", hours),
    figure("effective_gpu_h", "EFFECTIVE", hours),
    figure("unknown_gpu_h", "UNKNOWN", hours),
    figure("coverage_ratio", "SEEN", formats.percent),
    Column("key", "KEY"),
)
COSTS: Final = (
    Column("label", "GROUP"),
    figure("cost_usd", "COST", dollars),
    figure("idle_cost_usd", "IDLE", dollars),
    figure("unseen_cost_usd", "UNSEEN", dollars),
    figure("energy_cost_usd", "ENERGY", dollars),
    figure("carbon_g", "KG CO2E", lambda grams: formats.short(grams / 1000)),
    figure("priced_ratio", "PRICED", formats.percent),
    figure("coverage_ratio", "SEEN", formats.percent),
    Column("key", "KEY"),
)
ENERGY: Final = (
    Column("label", "GROUP"),
    figure("energy_kwh", "ENERGY", formats.kwh),
    figure("mean_power_w", "MEAN POWER", formats.watts),
    figure("coverage_ratio", "MEASURED", formats.percent),
    Column("method", "METHOD"),
    Column("key", "KEY"),
)
ENGINES: Final = (
    Column("engine", "ENGINE"),
    Column("model", "MODEL", lambda name: name.rstrip("/").rsplit("/", 1)[-1]),
    Column("kind", "KIND"),
    figure("running_mean", "RUNNING", formats.short),
    figure("waiting_mean", "WAITING", formats.short),
    figure("kv_used_max_ratio", "KV MAX", formats.percent),
    figure("tokens_per_s", "TOKENS/S", formats.short),
    figure("tokens_per_j", "TOKENS/J", formats.short),
    figure("usd_per_million_tokens", "USD/M TOKENS", dollars),
    figure("itl_s", "ITL", formats.milliseconds),
    figure("mbu_ratio", "MBU", formats.percent),
    figure("mfu_ratio", "MFU", formats.percent),
    figure("half_batch", "HALF BATCH", formats.short),
)

Rows = Callable[[Any], Sequence[Any]]
"""``rows(scope)`` of a resource."""
Query = dict[str, str | Sequence[str] | None]
"""What a server is asked for; several values of one are alternatives."""


def show(
    source: Source,
    path: str,
    columns: Sequence[Column],
    rows: Rows,
    *,
    since: str | None,
    until: str | None,
    by: Keys = (),
    more: Query | None = None,
    beside: Sequence[Column] | None = None,
) -> int:
    """Print one table from the database, or from a server's ``path``; ``beside``: more columns, in a second table."""
    query: Query = {"since": since, "until": until, "by": ",".join(by) or None, **(more or {})}
    found, window, asked = _read(source, path, rows, query)
    if source.as_json:
        print_json(found)
        return 0
    if by and by[0] not in TIMES:
        found.sort(key=lambda row: (row["key"] is None, row["label"]))
    print_rows(found, columns, empty=NO_DATA)
    if beside is not None and _knows_any(found, beside[1:]):
        click.echo()
        print_rows(found, beside, empty="")
    for basis in sorted({one for row in found for one in (row.get("price_basis") or "").split("; ") if one}):
        click.echo(f"Price: {basis}")
    if window is not None:
        click.echo(window_line(window, asked), err=True)
    return 0


def _knows_any(found: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> bool:
    return any(row.get(column.field) is not None for row in found for column in columns)


def window_line(window: Window, asked: Window | None) -> str:
    """Which window a table is of, and that it is wider than asked where it is."""
    why = "figures are per clock hour"
    if asked is not None and (window.from_ms < asked.from_ms or window.to_ms > asked.to_ms):
        why = f"widened from {_span(asked)}: {why}"
    return f"Window: {_span(window)} UTC ({why})"


def _span(window: Window) -> str:
    start, end = from_ms(window.from_ms), from_ms(window.to_ms)
    end_form = "%H:%M" if start.date() == end.date() else "%Y-%m-%d %H:%M"
    return f"{start:%Y-%m-%d %H:%M} to {end.strftime(end_form)}"


def _read(
    source: Source, path: str, rows: Rows, query: Query
) -> tuple[list[dict[str, Any]], Window | None, Window | None]:
    """Rows, their window, and the window that was asked for where that is known."""
    if source.server is not None:
        from gpuwise.commands.remote import fetch

        answer = fetch(source.server, path, query)
        return answer["items"], _window_of(answer.get("window")), None
    from api.resources.as_json import to_json
    from api.resources.scope import scope_of
    from core.clock import now_ms

    with open_session(source.settings) as session:
        scope = scope_of(session, source.settings, now_ms(), _text(query["since"]), _text(query["until"]))
        return [to_json(row) for row in rows(scope)], scope.window, scope.asked


def _text(value: str | Sequence[str] | None) -> str | None:
    return value if isinstance(value, str) else None


def _window_of(said: Mapping[str, str] | None) -> Window | None:
    if said is None:
        return None
    return Window(*(to_ms(datetime.fromisoformat(said[name])) for name in ("from", "to")))


def _by(default: By) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--by", metavar="KEY[,KEY]", multiple=True, help=f"{DESCRIPTION} Default: {default.value}."
    )


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--gpu``, ``--host``, ``--owner`` and the other filters of reports; gives them as ``filters``."""

    @wraps(command)
    def with_filters(*args: Any, **options: Any) -> Any:
        given = {field.name: options.pop(f"only_{field.name}") for field in fields(Filters)}
        return command(*args, filters=Filters(**given), **options)

    for name, what in reversed(FILTERED.items()):
        with_filters = click.option(
            f"--{name}", f"only_{name}", multiple=True, metavar="TEXT", help=f"Only {what}. Repeatable."
        )(with_filters)
    return with_filters


FILTERED: Final = {
    "gpu": "these GPUs, by UUID",
    "host": "GPUs in these hosts",
    "model": "GPUs of these models",
    "owner": "what these teams pay",
    "namespace": "workloads in these Kubernetes namespaces",
    "workload": "these workloads, as --by workload names them",
    "user": "workloads of these users",
    "project": "what these projects of a team pay",
    "kind": "workloads of these kinds (process, pod, slurm_job …)",
    "name": "workloads of these names",
    "q": "workloads with these words in name, user, namespace, host or key",
}
assert set(FILTERED) == {field.name for field in fields(Filters)}


@click.command()
@window_options
@database_options
def gpus(source: Source, since: str | None, until: str | None) -> int:
    """Every GPU: what it does now, how well it is seen, what it costs."""
    from api.resources.gpus import rows

    return show(source, "gpus", GPUS, rows, since=since, until=until)


@click.command()
@_by(By.GPU)
@filter_options
@window_options
@database_options
def usage(source: Source, since: str | None, until: str | None, by: tuple[str, ...], filters: Filters) -> int:
    """GPU-hours: total › allocated › active › effective, and what is unknown."""
    from api.resources.usage import rows

    keys, more = keys_of(by), asdict(filters)
    return show(
        source,
        "usage",
        USAGE,
        lambda scope: rows(scope, keys, filters),
        since=since,
        until=until,
        by=keys,
        more=more,
    )


@click.command()
@_by(By.GPU)
@click.option(
    "--idle",
    type=click.Choice([policy.value for policy in IdlePolicy]),
    default=IdlePolicy.KEEP.value,
    show_default=True,
    help="Idle cost of GPUs that nobody owns: a row of its own, or shared out to who uses the fleet.",
)
@filter_options
@window_options
@database_options
def costs(
    source: Source, since: str | None, until: str | None, by: tuple[str, ...], *, idle: str, filters: Filters
) -> int:
    """Cost, idle cost, energy cost and carbon."""
    from api.resources.costs import rows

    keys, more = keys_of(by), {**asdict(filters), "idle": idle}
    return show(
        source,
        "costs",
        COSTS,
        lambda scope: rows(scope, keys, filters, idle=IdlePolicy(idle)),
        since=since,
        until=until,
        by=keys,
        more=more,
    )


@click.command()
@_by(By.GPU)
@filter_options
@window_options
@database_options
def energy(
    source: Source, since: str | None, until: str | None, by: tuple[str, ...], filters: Filters
) -> int:
    """Energy at the GPU, with method and coverage."""
    from api.resources.energy import rows

    keys, more = keys_of(by), asdict(filters)
    return show(
        source,
        "energy",
        ENERGY,
        lambda scope: rows(scope, keys, filters),
        since=since,
        until=until,
        by=keys,
        more=more,
    )


@click.command()
@window_options
@database_options
def engines(source: Source, since: str | None, until: str | None) -> int:
    """LLM engines: load, rate, energy and money per token, distance from the hardware's limits."""
    from api.resources.engines import rows

    return show(source, "engines", ENGINES, rows, since=since, until=until)
