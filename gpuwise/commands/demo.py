"""``gpuwise demo``: the product on a simulated fleet, in a database of its own."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

from core import logs
from core.clock import now_ms
from core.settings import Settings

Report = Callable[[str, int, int], None]
PHASES: Final = {
    "simulate": "simulating {days} days of 32 GPUs",
    "roll up": "folding samples into hours",
    "price": "pricing the days",
    "advise": "running the rules",
}


@click.command()
@click.option("--seed-only", is_flag=True, help="Fill the database and end.")
@click.option(
    "--database-url", help="sqlite:///PATH or postgresql://USER@HOST/DB; default a file of its own."
)
@click.option(
    "--days", type=click.IntRange(1, 90), default=30, show_default=True, help="History of a new database."
)
@click.option("--host", help="Address to listen on [127.0.0.1].")
@click.option("--port", type=int, help="Port to listen on [8787].")
def demo(*, seed_only: bool, database_url: str | None, days: int, host: str | None, port: int | None) -> int:
    """Show the product on a simulated fleet: four hosts of eight GPUs, with history, and live."""
    from gpuwise.demo import demo_settings

    logs.set_up(logging.WARNING if seed_only else logging.INFO)
    settings = demo_settings(database_url, host, port)
    if seed_only:
        _seed(settings, days)
        return 0
    from gpuwise.demo_feed import feed
    from gpuwise.up import run
    from store.schema import ensure_ready

    ensure_ready(settings.database_url)
    return run(settings, feed=feed, before_jobs=lambda of: _seed(of, days))


def _seed(settings: Settings, days: int) -> None:
    """Seed with a progress bar on a terminal, with a line for each phase elsewhere."""
    from gpuwise.demo import seed

    started_s = time.monotonic()
    with _bar(days) if sys.stderr.isatty() else _lines(days) as progress:
        done = seed(settings, now_ms(), days=days, progress=progress)
    click.echo(
        f"gpuwise demo: the simulated fleet is ready after {time.monotonic() - started_s:.1f} s: "
        f"{done.samples:,} new samples, {done.gpu_hours:,} GPU-hours"
    )


@contextmanager
def _bar(days: int) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        rows: dict[str, TaskID] = {}

        def report(phase: str, done: int, total: int) -> None:
            if phase not in rows:
                rows[phase] = bar.add_task(PHASES[phase].format(days=days))
            bar.update(rows[phase], completed=done, total=total)

        yield report


@contextmanager
def _lines(days: int) -> Iterator[Report]:
    begun: set[str] = set()

    def report(phase: str, _done: int, _total: int) -> None:
        if phase not in begun:
            begun.add(phase)
            click.echo(f"gpuwise demo: {PHASES[phase].format(days=days)}", err=True)

    yield report
