"""``gpuwise import prometheus``: months of dcgm-exporter and LLM servers from a running Prometheus, the same day."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from core.clock import iso, now_ms
from core.errors import UsageError
from core.evidence import Window
from core.settings import Settings, load
from core.units import DAY_MS, HOUR_MS
from gpuwise.commands.import_words import counted, instant

if TYPE_CHECKING:
    from agent.sources.prometheus.api import Access, Api
    from agent.sources.prometheus.catalog import Catalog
    from gpuwise.prometheus_import import HistoryReport, Progress
    from gpuwise.prometheus_look import Look

DAYS: Final = 30
"""What advice looks back at."""
MOST_DAYS: Final = 3_650
TOKEN, USER, PASSWORD = (f"GPUWISE_PROMETHEUS_{word}" for word in ("TOKEN", "USER", "PASSWORD"))


def _headers(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    headers = {}
    for text in given:
        name, colon, value = text.partition(":")
        if not colon or not name.strip().replace("-", "").isalnum() or not value.strip().isprintable():
            raise click.BadParameter(f"{text!r} is no header such as 'X-Scope-OrgID: team-a'")
        headers[name.strip()] = value.strip()
    return headers


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one call is about: of whom, over which time, how finely; ``every_ms`` None: the server does not tell."""

    url: str
    window: Window
    step_ms: int
    every_ms: int | None


@click.command()
@click.option(
    "--url", required=True, metavar="URL", help="Address of Prometheus, Thanos, Mimir or VictoriaMetrics."
)
@click.option(
    "--days",
    type=click.IntRange(1, MOST_DAYS),
    metavar="N",
    help=f"How far back from now.  [default: {DAYS}]",
)
@click.option("--from", "from_ms", metavar="TIME", type=instant, help="Start, in place of --days.")
@click.option("--to", "to_ms", metavar="TIME", type=instant, help="End; default: now.")
@click.option(
    "--match",
    "matches",
    multiple=True,
    metavar="SELECTOR",
    help='Only series with these labels: cluster="a"; repeatable.',
)
@click.option(
    "--step",
    "step_s",
    type=click.IntRange(10, 240),
    metavar="SECONDS",
    help="Distance of points; default: as they were scraped.",
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    callback=_headers,
    help="Sent with every question, such as X-Scope-OrgID of a tenant; repeatable.",
)
@click.option(
    "--ca-file",
    metavar="PEM",
    type=click.Path(exists=True, dir_okay=False),
    help="Certificates to trust instead of the system's.",
)
@click.option("--insecure", is_flag=True, help="Do not verify the server's certificate.")
@click.option("--dry-run", is_flag=True, help="Say what is there and which rules could speak; store nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--database-url", metavar="URL", help="sqlite:///PATH or postgresql://USER@HOST/DB.")
def prometheus(
    *,
    url: str,
    days: int | None,
    from_ms: int | None,
    to_ms: int | None,
    matches: tuple[str, ...],
    step_s: int | None,
    headers: dict[str, str],
    ca_file: str | None,
    insecure: bool,
    dry_run: bool,
    as_json: bool,
    database_url: str | None,
) -> int:
    """Read the history of GPUs and LLM engines from a running Prometheus.

    The same series as `import openmetrics`, over the HTTP API. Who asks: GPUWISE_PROMETHEUS_TOKEN, or
    GPUWISE_PROMETHEUS_USER and GPUWISE_PROMETHEUS_PASSWORD. Once more goes on where it stopped and adds what is new.
    """
    from agent.sources.prometheus.api import Access, Api
    from agent.sources.prometheus.catalog import USUAL_STEP_MS, look, scraped_every_ms
    from agent.sources.prometheus.selector import matchers_of

    settings = load({"database_url": database_url})
    at_ms = now_ms()
    window = _window(days, from_ms, to_ms, at_ms)
    matchers = [matcher for text in matches for matcher in matchers_of(text)]
    access = Access(
        url,
        os.environ.get(TOKEN) or None,
        os.environ.get(USER) or None,
        os.environ.get(PASSWORD),
        headers,
        ca_file,
        verified=not insecure,
    )
    api = Api(access)
    try:
        found = look(api, matchers, window)
        every_ms = scraped_every_ms(api, found, window)
        step_ms = step_s * 1000 if step_s is not None else every_ms or USUAL_STEP_MS
        asked = _Asked(api.url, window, step_ms, every_ms)
        if dry_run:
            return _look(api, found, asked, as_json=as_json)
        return _import(api, found, asked, settings, access=access, at_ms=at_ms, as_json=as_json)
    finally:
        api.close()


def _window(days: int | None, from_ms: int | None, to_ms: int | None, at_ms: int) -> Window:
    if days is not None and from_ms is not None:
        raise UsageError("--days and --from name two starts: give one")
    end_ms = at_ms if to_ms is None else min(to_ms, at_ms)
    start_ms = end_ms - (days or DAYS) * DAY_MS if from_ms is None else from_ms
    if start_ms >= end_ms:
        raise UsageError(f"--from {iso(start_ms)} is not before {iso(end_ms)}: give an earlier start")
    return Window(start_ms // HOUR_MS * HOUR_MS, end_ms)


def _look(api: "Api", found: "Catalog", asked: _Asked, *, as_json: bool) -> int:
    from gpuwise.prometheus_look import estimated_points, look_around

    look = look_around(api, found, asked.window)
    points = estimated_points(found, look, asked.window, asked.step_ms)
    if as_json:
        click.echo(json.dumps(_look_as_dict(found, look, asked, points), indent=2, ensure_ascii=False))
        return 0
    click.echo(_headline(found, asked))
    if look.models:
        models = ", ".join(f"{number:,} × {model}" for model, number in look.models.items())
        click.echo(
            f"GPUs now: {models}; {counted(look.hosts, 'host')}; {look.with_workloads:,} with a pod or job"
        )
    if look.from_ms is not None:
        click.echo(f"Points from {iso(look.from_ms)} to {iso(look.to_ms)}, about {points:,}")
    click.echo(f"Metrics: {', '.join(look.readings)}")
    able = [speaker.rule_id for speaker in look.speakers if not speaker.missing]
    click.echo(f"{len(able)} of {len(look.speakers)} rules can speak: {', '.join(able)}")
    for speaker in look.speakers:
        if speaker.missing:
            click.echo(f"  {speaker.rule_id} lacks {', '.join(speaker.missing)}")
    click.echo("Nothing was stored (--dry-run).")
    return 0


def _look_as_dict(found: "Catalog", look: "Look", asked: _Asked, points: int) -> dict[str, Any]:
    return {
        **_asked_as_dict(found, asked),
        "models": look.models,
        "host_count": look.hosts,
        "gpus_with_workload": look.with_workloads,
        "first_at": iso(look.from_ms),
        "last_at": iso(look.to_ms),
        "estimated_points": points,
        "metrics": list(look.readings),
        "rules": [
            {"rule_id": speaker.rule_id, "can_speak": not speaker.missing, "missing": list(speaker.missing)}
            for speaker in look.speakers
        ],
    }


def _asked_as_dict(found: "Catalog", asked: _Asked) -> dict[str, Any]:
    return {
        "url": asked.url,
        "asked_from": iso(asked.window.from_ms),
        "asked_to": iso(asked.window.to_ms),
        "step_s": asked.step_ms / 1000,
        "scrape_interval_s": None if asked.every_ms is None else asked.every_ms / 1000,
        "gpus_found": found.gpu_uuids,
        "engine_instances": list(found.engines.values),
        "series_names": found.names,
    }


def _import(
    api: "Api",
    found: "Catalog",
    asked: _Asked,
    settings: Settings,
    *,
    access: "Access",
    at_ms: int,
    as_json: bool,
) -> int:
    from agent.sources.prometheus.window import Reader
    from gpuwise.prometheus_import import run
    from store.schema import ensure_ready

    ensure_ready(settings.database_url)
    if not as_json:
        click.echo(_headline(found, asked))
    reader = Reader(api, found, asked.step_ms, at_ms)
    source = "\n".join(
        ["prometheus", api.url, *(f"{name}: {value}" for name, value in sorted(access.headers.items()))]
    )
    with _progress() as progress:
        try:
            report = run(reader, source, asked.window, settings, now_ms=at_ms, progress=progress)
        except KeyboardInterrupt:
            click.echo("stopped: what was stored stays, and the same command goes on from there", err=True)
            raise
    oldest_ms = (at_ms // DAY_MS - settings.raw_days) * DAY_MS
    notes = [*reader.tally.notes]
    if report.known:
        notes.append(
            f"{counted(report.known, 'hour')} left as they are: the database had them from the agent or another import"
            + (
                f" ({', '.join(sorted(report.known_gpus)[:3])}{', …' if len(report.known_gpus) > 3 else ''})"
                if report.known_gpus
                else ""
            )
        )
    if report.done_hours:
        notes.append(f"{counted(report.done_hours, 'hour')} were there from an earlier run")
    if report.from_ms is not None and report.from_ms < oldest_ms:
        notes.append(f"before {iso(oldest_ms)} only hours are kept (raw_days = {settings.raw_days})")
    tally = reader.tally
    if as_json:
        counts = {
            "points": tally.points,
            "repeated_points": tally.repeated,
            "unknown_values": tally.unknown,
            "refused_values": tally.refused,
        }
        whole = {
            **_asked_as_dict(found, asked),
            **counts,
            **_report_as_dict(report),
            "notes": notes,
            "problems": [*tally.problems],
        }
        click.echo(json.dumps(whole, indent=2, ensure_ascii=False))
    else:
        for note in notes:
            click.echo(f"note: {note}")
        for problem in tally.problems:
            click.echo(problem, err=True)
        if tally.refused:
            click.echo(f"{counted(tally.refused, 'value')} refused", err=True)
        click.echo(_summary(report, tally.points))
    return 0


def _report_as_dict(report: "HistoryReport") -> dict[str, Any]:
    return {
        "gpu_samples": report.gpu_samples,
        "engine_samples": report.engine_samples,
        "process_samples": report.process_samples,
        "events": report.events,
        "new_rows": report.new_rows,
        "known_hours": report.known,
        "done_hours": report.done_hours,
        "from": iso(report.from_ms),
        "to": iso(report.to_ms),
        "gpu_uuids": sorted(report.gpu_uuids),
        "engines": sorted(report.engines),
    }


def _headline(found: "Catalog", asked: _Asked) -> str:
    every = "" if asked.every_ms is None else f", scraped every {asked.every_ms / 1000:g} s"
    return (
        f"{asked.url}: {counted(len(found.gpu_uuids), 'GPU')} and {counted(len(found.engines.values), 'engine')}, "
        f"{counted(len(found.names), 'metric')}{every}; read every {asked.step_ms / 1000:g} s "
        f"from {iso(asked.window.from_ms)} to {iso(asked.window.to_ms)}"
    )


def _summary(report: "HistoryReport", points: int) -> str:
    rows = report.gpu_samples + report.engine_samples + report.process_samples
    if not rows:
        return "Nothing new was imported."
    whose = [counted(len(report.gpu_uuids), "GPU")]
    if report.engines:
        whose.append(counted(len(report.engines), "engine"))
    known = rows + report.events - report.new_rows
    return (
        f"{counted(points, 'point')} became {counted(rows, 'sample')} of {' and '.join(whose)}, {iso(report.from_ms)} to "
        f"{iso(report.to_ms)}: {report.new_rows:,} new, {known:,} {'was' if known == 1 else 'were'} there already."
    )


@contextmanager
def _progress() -> Iterator["Progress | None"]:
    """A bar on a terminal; nothing in a pipe or a log."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("Reading"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("hours"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("import", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
