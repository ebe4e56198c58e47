"""``gpuwise up``: everything on this machine."""

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

    Live GPUs where the NVIDIA driver is found; where it is not, it says so and starts the simulated demo fleet.
    """
    from agent.nvml import driver_present
    from gpuwise.up import run
    from store.schema import ensure_ready

    reason = driver_present()
    if demo_wanted or reason is not None:
        if not demo_wanted:
            click.echo(f"{reason}; starting the simulated demo fleet in a database of its own.")
        from gpuwise.commands.demo import demo

        ctx.invoke(demo, database_url=database_url if demo_wanted else None, port=port, host=host)
        return 0
    logs.set_up()
    settings = load({"database_url": database_url, "host": host, "port": port})
    ensure_ready(settings.database_url)
    click.echo(f"Sampling the GPUs of this host into {_shown(settings.database_url)}.")
    return run(settings)


def _shown(url: str) -> str:
    return (
        str(Path(url.removeprefix("sqlite:///")))
        if url.startswith("sqlite:///")
        else url.rsplit("@", maxsplit=1)[-1]
    )
