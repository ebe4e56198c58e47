"""``gpuwise token``: create, list, revoke the tokens with which agents deliver."""

from typing import Any, Final

import click

from core.clock import iso, now_ms
from core.errors import UsageError
from core.settings import load
from gpuwise.commands.display import Column, print_json, print_rows
from gpuwise.commands.options import DATABASE_URL_HELP, ListGroup, open_session

_URL = click.option("--database-url", metavar="URL", help=DATABASE_URL_HELP)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_COLUMNS: Final = (
    Column("id", "ID", str, right=True),
    Column("prefix", "TOKEN", lambda prefix: f"{prefix}…"),
    Column("host", "HOST"),
    Column("name", "NAME"),
    Column("state", "STATE"),
    Column("created_at", "CREATED", lambda at: at[:10]),
    Column("expires_at", "EXPIRES", lambda at: at[:10]),
    Column("last_used_at", "LAST USED", lambda at: at[:16].replace("T", " ")),
)


@click.group(cls=ListGroup)
def token() -> None:
    """Make, list and revoke the tokens with which agents deliver to this server."""


@token.command()
@click.option("--host", metavar="NAME", help="The only host it may deliver for.")
@click.option("--any-host", is_flag=True, help="It may deliver for every host (a proxy, a test).")
@click.option("--name", default="", metavar="TEXT", help="What it is for, in your own words.")
@click.option("--expires-days", type=int, metavar="N", help="Refuse it after N days [never].")
@_JSON
@_URL
def create(
    *,
    host: str | None,
    any_host: bool,
    name: str,
    expires_days: int | None,
    as_json: bool,
    database_url: str | None,
) -> int:
    """Make a token and print it: this once, only its hash is kept."""
    from api.resources import tokens

    if (host is None) is not any_host:
        raise UsageError(
            "a token is for one host or for all: give either --host NAME (as the agent names itself) or --any-host"
        )
    with open_session(load({"database_url": database_url})) as session:
        made, record = tokens.create(
            session, host=host, name=name, expires_days=expires_days, now_ms=now_ms()
        )
    if as_json:
        print_json({"token": made} | _row(record, now_ms()))
        return 0
    click.echo(made)
    whose = "any host" if host is None else f"host {host}"
    click.echo(
        f"Token {record.id} for {whose}. It is shown only now: put it into server_token of the agent there.",
        err=True,
    )
    return 0


@token.command("list")
@_JSON
@_URL
def list_(as_json: bool, database_url: str | None) -> int:
    """List tokens: whose, since when, last used; never the token itself."""
    from store.queries import tokens

    with open_session(load({"database_url": database_url})) as session:
        rows = [_row(record, now_ms()) for record in tokens.listing(session)]
    if as_json:
        print_json(rows)
    else:
        print_rows(rows, _COLUMNS, empty="No tokens yet. Make one: gpuwise token create --host NAME")
    return 0


@token.command()
@click.argument("which", metavar="PREFIX|ID")
@_URL
def revoke(which: str, database_url: str | None) -> int:
    """Refuse a token from now on; a running server hears of it within ten seconds."""
    from api.resources import tokens

    with open_session(load({"database_url": database_url})) as session:
        record = tokens.revoke(session, which, now_ms=now_ms())
    whose = "any host" if record.host_name is None else f"host {record.host_name}"
    click.echo(f"Token {record.id} ({record.prefix}…) for {whose} is revoked.")
    return 0


def _row(record: Any, at_ms: int) -> dict[str, Any]:
    """A token as JSON; its state in a word."""
    expired = record.expires_ms is not None and record.expires_ms <= at_ms
    return {
        "id": record.id,
        "prefix": record.prefix,
        "host": record.host_name,
        "name": record.name,
        "scope": record.scope,
        "state": "revoked" if record.revoked_ms is not None else "expired" if expired else "valid",
        "created_at": iso(record.created_ms),
        "expires_at": iso(record.expires_ms),
        "last_used_at": iso(record.last_used_ms),
        "revoked_at": iso(record.revoked_ms),
    }
