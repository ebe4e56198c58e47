"""``gpuwise exclusions``: what the rules leave alone, and until when."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import click

from core.clock import now_ms
from gpuwise.commands.display import Column, print_json, print_rows
from gpuwise.commands.kept import added, changed, listed
from gpuwise.commands.options import ListGroup, Source, database_options
from gpuwise.commands.part_options import part_options
from gpuwise.commands.who import WHO, me

EXCLUSIONS: Final = (
    Column("id", "ID", str, right=True),
    Column("part", "LEFT ALONE"),
    Column("rules", "BY"),
    Column("since_day", "SINCE"),
    Column("last", "UNTIL"),
    Column("reason", "REASON"),
    Column("who", "WHO"),
    Column("origin", "FROM"),
    Column("standing", "STATE"),
)
SHOWN: Final = 10
"""Recommendations of a dry run on a terminal."""
NONE: Final = (
    "Nothing is left alone. Add one: gpuwise exclusions add --host NAME --until friday --reason TEXT"
)
ID: Final = click.argument("exclusion_id", metavar="ID", type=click.IntRange(1, 2**31 - 1))


@click.group(cls=ListGroup)
def exclusions() -> None:
    """What the rules leave alone until when: list, add (--dry-run), end."""


@exclusions.command("list")
@click.option("--past", is_flag=True, help="Also those that are over or were ended.")
@database_options
def list_(source: Source, *, past: bool) -> int:
    """Exclusions in force and to come, of gpuwise.toml and of the database; the first to end first."""
    from api.resources import exclusions as resource

    found = listed(
        source,
        "exclusions",
        lambda session: resource.rows(session, source.settings, now_ms(), past=past),
        {"past": "true" if past else None},
    )
    return _print(source, found)


@exclusions.command()
@part_options
@click.option("--rule", "rule_id", metavar="RULE", help="By this rule alone; default: every rule.")
@click.option(
    "--until",
    metavar="T",
    help="Its last day (2026-12-04, friday), or a length (3d, 12h); at most 400 days. Needed unless --dry-run.",
)
@click.option("--since", metavar="T", help="From this day or time on; default: now.")
@click.option("--reason", metavar="TEXT", help="Why it is left alone; needed unless --dry-run.")
@click.option("--dry-run", is_flag=True, help="Say what it would cover; keep nothing.")
@WHO
@database_options
def add(source: Source, *, dry_run: bool, who: str | None, **given: str | None) -> int:
    """Leave a part of the fleet alone: every selector that is given must hold."""
    from api.resources import exclusions as resource

    body = resource.parsed({**given, "who": who or me()})
    if dry_run:
        covers = added(source, "exclusions/dry-run", body, resource.look)
        return _covers(source, covers, covers, "would be")
    made = added(source, "exclusions", body, resource.add)
    if not source.as_json:
        _print(source, [made["exclusion"]])
    return _covers(
        source, made, made["covers"], "is" if made["exclusion"]["state"] == "in_force" else "would be"
    )


@exclusions.command()
@ID
@WHO
@database_options
def end(source: Source, exclusion_id: int, who: str | None) -> int:
    """End an exclusion now; what it had set aside is open again."""
    from api.resources import exclusions as resource

    name = who or me()
    ended = changed(
        source,
        f"exclusions/{exclusion_id}/end",
        {"who": name},
        lambda session: resource.end(session, exclusion_id, now_ms(), name),
    )
    if source.as_json:
        print_json(ended)
        return 0
    count = ended["reopened_count"]
    click.echo(
        f"Ended: {ended['exclusion']['part']}. {count} recommendation{'' if count == 1 else 's'} open again."
    )
    return 0


def _print(source: Source, found: Sequence[Mapping[str, Any]]) -> int:
    if source.as_json:
        print_json(found)
        return 0
    print_rows([{**row, **_told(row)} for row in found], EXCLUSIONS, empty=NONE)
    return 0


def _told(row: Mapping[str, Any]) -> dict[str, str | None]:
    from api.resources.exclusions import last_day

    since = row["since"]
    return {
        "rules": row["rule_id"] or "every rule",
        "since_day": "ever" if since is None else _moment(since),
        "last": last_day(datetime.fromisoformat(row["until"])),
        "standing": row["refused"] or row["state"].replace("_", " "),
    }


def _moment(text: str) -> str:
    return text[:16].replace("T", " ")


def _covers(source: Source, whole: Mapping[str, Any], covers: Mapping[str, Any], verb: str) -> int:
    if source.as_json:
        print_json(whole)
        return 0
    gpus, open_ = covers["gpu_count"], covers["recommendation_count"]
    if not gpus and not covers["engine_count"]:
        click.echo("It covers no GPU that is known: check the names with gpuwise gpus and gpuwise workloads.")
        return 0
    verb = verb if open_ == 1 or verb != "is" else "are"
    engines = covers["engine_count"]
    click.echo(
        f"Covers {gpus} of {covers['known_gpu_count']} GPUs and {engines} engine{'' if engines == 1 else 's'}; "
        f"{open_} open recommendation{'' if open_ == 1 else 's'} {verb} set aside."
    )
    for item in covers["recommendations"][:SHOWN]:
        click.echo(f"  {item['id']}  {item['rule_id']}  {item['title']}")
    if open_ > SHOWN:
        click.echo(f"  … and {open_ - SHOWN} more")
    return 0
