"""``gpuwise recipients``: who gets the weekly mail and alerts."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from core.clock import now_ms
from core.errors import NotFoundError, UsageError
from gpuwise.commands.display import Column, print_json, print_rows
from gpuwise.commands.kept import added, amended, changed, listed
from gpuwise.commands.options import ListGroup, Source, database_options, open_session

RECIPIENTS: Final = (
    Column("key", "ID", right=True),
    Column("address", "TO"),
    Column("audience", "OF"),
    Column("gets", "GETS"),
    Column("quiet_week", "QUIET WEEK"),
    Column("paused", "PAUSED UNTIL (UTC)"),
    Column("last", "LAST MESSAGE (UTC)"),
    Column("note", "NOTE"),
)
NONE: Final = "Nobody gets mail. Add somebody: gpuwise recipients add ADDRESS"
WHO: Final = click.argument("who", metavar="ID|ADDRESS")


@click.group(cls=ListGroup)
def recipients() -> None:
    """Who gets the weekly mail and alerts: list, add, set, pause, resume, remove, test."""


@recipients.command("list")
@database_options
def list_(source: Source) -> int:
    """Who gets what, and how the last message to each fared."""
    return _print(source, _rows(source))


@recipients.command()
@click.argument("address")
@click.option(
    "--team", default="", metavar="NAME", help="Tell of what this team of the owner rules pays for."
)
@click.option("--project", default="", metavar="NAME", help="Of this project of the team only.")
@click.option("--weekly/--no-weekly", default=True, help="The weekly report. Default: yes.")
@click.option("--alerts/--no-alerts", default=True, help="Alerts. Default: yes.")
@click.option(
    "--quiet-week",
    type=click.Choice(["skip", "line"]),
    default="skip",
    show_default=True,
    help="In a week with nothing to say: no mail, or one line.",
)
@click.option("--note", default="", metavar="TEXT", help="In your own words.")
@database_options
def add(source: Source, **given: Any) -> int:
    """Add a mail address, or the URL of a webhook that takes Slack's JSON (`-`: read it from standard input).

    A URL in the command line is seen by who lists processes, and kept in the shell's history.
    """
    from api.resources import recipients as resource

    if given["address"] == "-":
        given["address"] = sys.stdin.readline().strip()
    body = resource.parsed(given)
    return _print(source, [added(source, "recipients", body, resource.add)])


@recipients.command("set")
@WHO
@click.option("--weekly/--no-weekly", default=None, help="The weekly report.")
@click.option("--alerts/--no-alerts", default=None, help="Alerts.")
@click.option("--quiet-week", type=click.Choice(["skip", "line"]), help="In a week with nothing to say.")
@click.option("--note", metavar="TEXT", help="In your own words.")
@database_options
def set_(source: Source, who: str, **given: Any) -> int:
    """Change what a recipient gets."""
    return _change(source, who, given)


@recipients.command()
@WHO
@click.option(
    "--until", "paused_until", required=True, metavar="T", help="A day such as 2026-12-31, or a time."
)
@database_options
def pause(source: Source, who: str, paused_until: str) -> int:
    """Send a recipient nothing until a day."""
    return _change(source, who, {"paused_until": paused_until})


@recipients.command()
@WHO
@database_options
def resume(source: Source, who: str) -> int:
    """End a pause."""
    return _change(source, who, {"paused_until": ""})


@recipients.command()
@WHO
@database_options
def remove(source: Source, who: str) -> int:
    """Remove a recipient; what waits for it is not sent."""
    from api.resources import recipients as resource

    recipient_id = _id(source, who)
    changed(
        source,
        f"recipients/{recipient_id}",
        {},
        lambda session: resource.remove(session, recipient_id, now_ms()),
        method="DELETE",
    )
    return _print(source, _rows(source))


@recipients.command()
@WHO
@database_options
def test(source: Source, who: str) -> int:
    """Send a test message now; what the mail server or webhook says is told."""
    from api.mailing import send_test
    from api.resources import recipients as resource
    from store.engine import make_engine

    if source.server is not None:
        said = changed(source, f"recipients/{_id(source, who)}/test", {}, lambda _: None)["message"]
    else:
        with open_session(source.settings) as session:
            found = resource.named(session, source.settings, who)
        said = send_test(make_engine(source.settings.database_url), source.settings, now_ms(), found)
    if source.as_json:
        print_json({"message": said})
    else:
        click.echo(said)
    return 0


def _id(source: Source, who: str) -> int:
    """The number of a kept recipient, by its number or mail address."""
    if who.isdecimal():
        return int(who)
    same = [row for row in _rows(source) if row["address"].lower() == who.strip().lower()]
    found = [row["id"] for row in same if row["id"] is not None]
    if len(found) == 1:
        return int(found[0])
    if found:
        raise UsageError(
            f"{who} is {len(found)} recipients: give the number ({' or '.join(map(str, found))})"
        )
    if same:
        raise UsageError(f"{who} is of gpuwise.toml: change report_recipients there")
    raise NotFoundError(f"no recipient {who}: gpuwise recipients lists them")


def _change(source: Source, who: str, given: Mapping[str, Any]) -> int:
    from api.resources import recipients as resource

    recipient_id = _id(source, who)
    body = resource.change_of(given)
    return _print(source, [amended(source, "recipients", recipient_id, body, resource.change)])


def _rows(source: Source) -> list[dict[str, Any]]:
    from api.resources import recipients as resource

    return listed(source, "recipients", lambda session: resource.rows(session, source.settings, now_ms()))


def _print(source: Source, found: Sequence[dict[str, Any]]) -> int:
    if source.as_json:
        print_json(found)
        return 0
    print_rows([row | _told(row) for row in found], RECIPIENTS, empty=NONE)
    for row in found:
        if row["last_problem"] is not None:
            click.echo(f"{row['address']}: {row['last_problem']}")
    return 0


def _told(row: Mapping[str, Any]) -> dict[str, str | None]:
    gets = [name for name, wanted in (("weekly", row["weekly"]), ("alerts", row["alerts"])) if wanted]
    until, at = row["paused_until"], row["last_at"]
    return {
        "key": "file" if row["id"] is None else str(row["id"]),
        "gets": ", ".join(gets),
        "paused": "" if until is None else until[:16].replace("T", " "),
        "last": "none yet" if at is None else f"{row['last_state']} {at[:16].replace('T', ' ')}",
    }
