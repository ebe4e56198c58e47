"""``gpuwise db``: upgrade, check, backup."""

from pathlib import Path

import click

from core.errors import GpuwiseError, UsageError
from core.settings import load

_URL = click.option("--database-url", help="sqlite:///PATH or postgresql://USER@HOST/DB.")


@click.group()
def db() -> None:
    """Upgrade, check and back up the database."""


@db.command()
@_URL
def upgrade(database_url: str | None) -> int:
    """Bring the database to this version's tables; safe to run again."""
    from store.schema import upgrade as upgrade_now

    upgrade_now(load({"database_url": database_url}).database_url)
    click.echo("The database is up to date.")
    return 0


@db.command()
@_URL
def check(database_url: str | None) -> int:
    """Say whether the database fits this version; exit 1 when it does not."""
    from store.schema import check as check_now

    problem = check_now(load({"database_url": database_url}).database_url)
    if problem is not None:
        raise GpuwiseError(problem)
    click.echo("The database fits this version.")
    return 0


@db.command()
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False))
@_URL
def backup(out: Path, database_url: str | None) -> int:
    """Copy a SQLite database to OUT while it is in use (PostgreSQL: use pg_dump)."""
    from store.schema import backup as backup_now

    if out.exists():
        raise UsageError(f"{out} exists: name a new file, a backup never overwrites one")
    backup_now(load({"database_url": database_url}).database_url, out)
    click.echo(f"Wrote {out} ({out.stat().st_size / 1e6:.1f} MB).")
    return 0
