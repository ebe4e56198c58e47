"""``gpuwise alerts``: what is wrong now, what people would be told of it, and what they know of already."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from core import logs
from core.clock import now_ms
from gpuwise.commands.display import Column, print_json, print_rows
from gpuwise.commands.kept import changed, listed
from gpuwise.commands.options import Source, database_options, open_session

ALERTS: Final = (
    Column("state", "STATE"),
    Column("severity", "HOW BAD"),
    Column("kind", "KIND"),
    Column("title", "WHAT"),
    Column("to", "TOLD"),
    Column("again", "AGAIN FROM (UTC)"),
)
NAMED: Final = 2
"""Recipients that a line names; of more it says how many."""
NONE: Final = "Nothing is wrong that people are told of."


@click.command()
@click.option("--send", "sends", is_flag=True, help="Tell people now what is due; else nothing is sent.")
@database_options
def alerts(source: Source, *, sends: bool) -> int:
    """What would be told now (due) and what people know of already (cooling). A dry run unless --send is given."""
    if sends:
        return _send(source)
    found = listed(source, "alerts", _rows(source))
    if source.as_json:
        print_json(found)
        return 0
    print_rows([row | _told(row) for row in found], ALERTS, empty=NONE)
    due = sum(row["state"] == "due" for row in found)
    refused = sum(row["state"] == "refused" for row in found)
    nobody = sum(row["state"] == "nobody" for row in found)
    if nobody:
        click.echo(f"{nobody} of which nobody is told: gpuwise recipients add ADDRESS")
    if refused:
        click.echo(f"{refused} that nobody took: gpuwise recipients says why")
    if due:
        click.echo(f"{due} to tell of: the job does so within five minutes, gpuwise alerts --send now")
    return 0


def _rows(source: Source) -> Any:
    def read(session: Any) -> Any:
        from api.resources import alerts as resource

        return resource.rows(session, source.settings, now_ms())

    return read


def _send(source: Source) -> int:
    from api.alerts import send
    from store.engine import make_engine

    if source.server is not None:
        said = changed(source, "alerts/send", {}, lambda _: None)["message"]
    else:
        with open_session(source.settings):
            pass  # made, or checked
        with logs.silenced("api.outgoing"):
            said, _ = send(make_engine(source.settings.database_url), source.settings, now_ms())
    if source.as_json:
        print_json({"message": said})
    else:
        click.echo(said)
    return 0


def _told(row: Mapping[str, Any]) -> dict[str, str]:
    again, told = row["again_at"], _names(row["told"])
    said = {
        "due": f"to tell: {_names(row['recipients'])}",
        "waiting": f"on its way to {told}",
        "cooling": f"{told}, {_minute(row['sent_at'])}",
        "refused": "refused",
    }
    return {"to": said.get(row["state"], "nobody"), "again": _minute(again)}


def _names(found: Sequence[str]) -> str:
    more = len(found) - NAMED
    return ", ".join(found[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _minute(text: str | None) -> str:
    return "" if text is None else text[:16].replace("T", " ")
