"""``gpuwise thresholds``: what the rules go by, and how to change it for the fleet or a part of it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from core.clock import now_ms
from core.errors import UsageError
from gpuwise.commands.display import Column, figure, print_json, print_rows
from gpuwise.commands.kept import added, changed, listed
from gpuwise.commands.options import ListGroup, Source, database_options
from gpuwise.commands.part_options import part_options
from gpuwise.commands.who import WHO, me

THRESHOLDS: Final = (
    Column("rule_id", "RULE"),
    Column("name", "THRESHOLD"),
    figure("shown", "VALUE", str),
    Column("part", "FOR"),
    Column("origin", "FROM"),
    Column("allowed", "ALLOWED"),
    Column("id", "ID", str, right=True),
    Column("who", "WHO"),
    Column("why", "WHY OR MEANING"),
)
ID: Final = click.argument("thresholds_id", metavar="ID", type=click.IntRange(1, 2**31 - 1))
NONE: Final = "Every threshold is at its default. Set one: gpuwise thresholds set RULE NAME=VALUE"


@click.group(cls=ListGroup)
def thresholds() -> None:
    """Thresholds of the rules: list with bounds and origin, set, remove."""


@thresholds.command("list")
@click.option("--rule", "rule_id", metavar="RULE", help="Of this rule alone.")
@click.option("--set", "only_set", is_flag=True, help="Only what is not at its default.")
@database_options
def list_(source: Source, rule_id: str | None, *, only_set: bool) -> int:
    """Every threshold: the value in force, its bounds, what it means and where the value is from."""
    from api.resources import thresholds as resource

    found = listed(
        source,
        "thresholds",
        lambda session: resource.rows(session, source.settings, now_ms(), rule_id, only_set=only_set),
        {"rule_id": rule_id, "only_set": "true" if only_set else None},
    )
    return _print(source, found)


@thresholds.command("set")
@click.argument("rule_id", metavar="RULE")
@click.argument("pairs", metavar="NAME=VALUE…", nargs=-1, required=True)
@part_options
@click.option("--note", metavar="TEXT", help="Why, in your own words.")
@WHO
@database_options
def set_(
    source: Source, rule_id: str, pairs: Sequence[str], note: str | None, who: str | None, **part: str | None
) -> int:
    """Set thresholds of a rule, for the fleet or with --host … for a part of it."""
    from api.resources import thresholds as resource

    values = {}
    for pair in pairs:
        name, mark, text = pair.partition("=")
        if not mark or not name:
            raise UsageError(f"{pair!r} is no threshold: give NAME=VALUE, such as min_small_ratio=0.3")
        values[name] = resource.value_of(name, text)
    given = {"rule_id": rule_id, "values": values, "note": note, "who": who or me(), **part}
    body = resource.parsed(given)
    return _print(source, added(source, "thresholds", body, resource.set_))


@thresholds.command()
@ID
@click.argument("names", metavar="[NAME…]", nargs=-1)
@WHO
@database_options
def remove(source: Source, thresholds_id: int, names: Sequence[str], who: str | None) -> int:
    """End what was set under an ID, or some of its names: the file's values or the defaults hold again."""
    from api.resources import thresholds as resource

    body = resource.ending({"names": list(names), "who": who or me()})
    left = changed(
        source,
        f"thresholds/{thresholds_id}/end",
        body.model_dump(mode="json"),
        lambda session: resource.end(session, source.settings, thresholds_id, body, now_ms()),
    )
    if source.as_json:
        print_json(left)
        return 0
    names_left = ", ".join(row["name"] for row in left)
    stays = f"Still set: {names_left} (ID {left[0]['id']})." if left else "Nothing of it stays set."
    click.echo(f"Ended. {stays}")
    return 0


def _print(source: Source, found: Sequence[Mapping[str, Any]]) -> int:
    if source.as_json:
        print_json(found)
        return 0
    print_rows([{**row, **_told(row)} for row in found], THRESHOLDS, empty=NONE)
    return 0


def _told(row: Mapping[str, Any]) -> dict[str, str]:
    from api.resources.thresholds import value_text

    return {
        "shown": value_text(row["value"]),
        "why": row["refused"] or row["note"] or row["meaning"],
    }
