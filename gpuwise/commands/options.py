"""Options that the table commands share: where the data are, over which window, printed how."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from core.errors import UsageError
from core.settings import Settings, load

F = TypeVar("F", bound=Callable[..., Any])

DATABASE_URL_HELP: Final = "sqlite:///PATH or postgresql://USER@HOST/DB."


@dataclass(frozen=True, slots=True)
class Source:
    """Where a command reads, and how it prints.

    Attributes:
        settings: with ``--database-url`` in place.
        server: address of a gpuwise server to ask instead of the database; None: the database.
        as_json: print the contract's JSON.
    """

    settings: Settings
    server: str | None
    as_json: bool


def database_options(command: F) -> F:
    """Add ``--database-url``, ``--server`` and ``--json``; the command gets them as ``source``."""

    @wraps(command)
    def with_source(
        *args: Any, database_url: str | None, server: str | None, as_json: bool, **options: Any
    ) -> Any:
        if database_url is not None and server is not None:
            raise UsageError("--database-url and --server name two places: give one")
        settings = load({"database_url": database_url})
        return command(*args, source=Source(settings, server, as_json), **options)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON: stable names, units in the names."),
        click.option("--server", metavar="URL", help="Ask this gpuwise server instead of a database."),
        click.option("--database-url", metavar="URL", help=DATABASE_URL_HELP),
    ):
        with_source = option(with_source)
    return with_source  # type: ignore[return-value]  # click's options keep the signature open


class ListGroup(click.Group):
    """A group of commands that lists where no command is named: ``gpuwise budgets --json`` is ``budgets list --json``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``list`` before options that stand alone."""
        alone = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        return super().parse_args(ctx, ["list", *args] if alone else args)


def before_subcommand(ctx: click.Context) -> bool:
    """Whether a subcommand is to run instead of the group.

    Raises:
        UsageError: an option stands before it, where it would be passed over: another database would be changed.
    """
    if ctx.invoked_subcommand is None:
        return False
    for name in ctx.params:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            flag = "json" if name == "as_json" else name.replace("_", "-")
            raise UsageError(f"--{flag} stands before {ctx.invoked_subcommand}: give it after that word")
    return True


def window_options(command: F) -> F:
    """Add ``--since`` and ``--until``."""
    command = click.option(
        "--until",
        metavar="T",
        help="End of the window: a time, a day, or an age before now. Default: the newest data.",
    )(command)
    return click.option(
        "--since",
        metavar="T",
        help="Start: a time, a day such as 2026-10-05, or an age such as 7d, 24h: before the end of the window, or before now "
        "when --until is an age too. Default: 30 days of data. Figures are per clock hour.",
    )(command)


@contextmanager
def open_session(settings: Settings) -> Iterator[Any]:
    """A session on the database, made or checked first; commits once, at the end.

    A SQLite file that is not there is made, and said on stderr: a mistyped path must not look like no data.

    Raises:
        StoreError: the database cannot be used as it is; says what to run.
    """
    from store.engine import make_engine, session_scope
    from store.schema import ensure_ready

    path = _absent_file(settings.database_url)
    ensure_ready(settings.database_url)
    if path is not None:
        click.echo(f"created a new, empty database at {path}", err=True)
    with session_scope(make_engine(settings.database_url)) as session:
        yield session


def _absent_file(database_url: str) -> str | None:
    """Path of a SQLite database that is not there yet; None: it is, or it is no file."""
    _, is_sqlite, path = database_url.partition("sqlite:///")
    return path if is_sqlite and path and path != ":memory:" and not Path(path).exists() else None
