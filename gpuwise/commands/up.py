"""``gpuwise up``: everything on this machine."""

import os
from pathlib import Path

import click

from core import logs
from core.settings import load


@click.command()
@click.option(
    "--demo", "demo_wanted", is_flag=True, help="Start the simulated demo fleet, in a database of its own."
)
@click.option("--database-url", help="sqlite:///PATH or postgresql://USER@HOST/DB.")
@click.option("--host", help="Address to listen on [127.0.0.1].")
@click.option("--port", type=int, help="Port to listen on [8787].")
@click.pass_context
def up(
    ctx: click.Context, demo_wanted: bool, database_url: str | None, host: str | None, port: int | None
) -> int:
    """Start agent, jobs and web on this machine.

    Live GPUs where the NVIDIA driver is found; where it is not, it says so and starts the simulated demo fleet, or
    shows what is stored when --database-url names a database.
    """
    from agent.present import driver_problem

    reason = driver_problem()
    if demo_wanted or (reason is not None and database_url is None):
        if not demo_wanted:
            click.echo(f"{reason}; starting the simulated demo fleet in a database of its own{_own_data()}.")
        from gpuwise.commands.demo import demo

        ctx.invoke(demo, database_url=database_url, port=port, host=host)
        return 0
    from gpuwise.up import agent_part, run
    from store.schema import ensure_ready

    logs.set_up()
    settings = load({"database_url": database_url, "host": host, "port": port})
    ensure_ready(settings.database_url)
    if reason is None:
        click.echo(f"Sampling the GPUs of this host into {_shown(settings.database_url)}.")
        return run(settings, feed=agent_part)
    click.echo(
        f"{reason}; showing what is stored in {_shown(settings.database_url)}, without new samples of this host."
    )
    return run(settings, feed=None)


def _own_data() -> str:
    """Where telemetry of the user's own waits, so that the demo does not hide it; empty when there is none."""
    settings = load()
    if not settings.database_url.startswith("sqlite:///") or not os.path.isfile(settings.database_url[10:]):  # noqa: PTH113 - False, not an error, where it may not look
        return ""
    return f" (your own data: gpuwise serve, {_shown(settings.database_url)})"


def _shown(url: str) -> str:
    return (
        str(Path(url.removeprefix("sqlite:///")))
        if url.startswith("sqlite:///")
        else url.rsplit("@", maxsplit=1)[-1]
    )
