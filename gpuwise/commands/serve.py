"""``gpuwise serve``: the web and API process."""

import click

from core import logs
from core.settings import load


@click.command()
@click.option("--database-url", help="sqlite:///PATH or postgresql://USER@HOST/DB.")
@click.option("--host", help="Address to listen on [127.0.0.1].")
@click.option("--port", type=int, help="Port to listen on [8787].")
def serve(database_url: str | None, host: str | None, port: int | None) -> int:
    """Serve pages and REST."""
    from gpuwise.server import serve as serve_now
    from gpuwise.up import check_port
    from store.schema import ensure_ready

    logs.set_up()
    settings = load({"database_url": database_url, "host": host, "port": port})
    ensure_ready(settings.database_url)
    check_port(settings)
    click.echo(f"gpuwise is at http://{settings.host}:{settings.port}")
    return serve_now(settings)
