"""``gpuwise recommendations``: follow them from here: list, claim, done, snooze, dismiss, reopen."""

from collections.abc import Callable
from typing import Any, Final

import click

from api import formats
from core.finding import Status
from gpuwise.commands.advise import stake
from gpuwise.commands.display import Column, figure, print_json, print_rows
from gpuwise.commands.options import Source, database_options, open_session
from gpuwise.commands.who import WHO, me

LIVE: Final = tuple(status.value for status in Status if status is not Status.GONE)
LIST: Final = (
    Column("id", "ID", str, right=True),
    Column("status", "STATUS"),
    Column("rule_id", "RULE"),
    Column("sum", "A MONTH", str, right=True),
    Column("title", "TITLE"),
    Column("snoozed_until", "BACK ON", lambda at: at[:10]),
    Column("note", "NOTE"),
)
LIFE: Final = (
    Column("at", "WHEN (UTC)", lambda at: at[:16].replace("T", " ")),
    Column("status", "BECAME"),
    Column("who", "WHO"),
    Column("note", "WHY"),
)
RECORDS: Final = (
    Column("rule_id", "RULE"),
    figure("cases", "CASES", str),
    Column("ratio", "VERIFIED / PREDICTED", lambda ratio: formats.percent(ratio["p50"]), right=True),
    Column("ratio", "FROM", lambda ratio: formats.percent(ratio["p10"]), right=True),
    Column("ratio", "TO", lambda ratio: formats.percent(ratio["p90"]), right=True),
)
NOTHING: Final = "No recommendations: run gpuwise advise, or ask for another --status."

ID = click.argument("recommendation_id", metavar="ID", type=click.IntRange(1, 2**31 - 1))


@click.group()
def recommendations() -> None:
    """What was found, who took it, and whether it came true."""


@recommendations.command("list")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice([status.value for status in Status]),
    help="Only these; repeatable. Default: all but gone.",
)
@database_options
def list_(source: Source, statuses: tuple[str, ...]) -> int:
    """Every recommendation with its number, best first."""
    rows = [row for row in _rows(source) if row["status"] in (statuses or LIVE)]
    if source.as_json:
        print_json(rows)
        return 0
    print_rows([row | {"sum": _sum(row)} for row in rows], LIST, empty=NOTHING)
    return 0


@recommendations.command()
@ID
@database_options
def show(source: Source, recommendation_id: int) -> int:
    """One of them: every step with who, when and why, and what was measured after it was done."""
    steps, compared = _life(source, recommendation_id)
    if source.as_json:
        print_json({"steps": steps, "verifications": compared})
        return 0
    print_rows(steps, LIFE, empty="No steps.")
    for row in compared:
        click.echo(" ".join((row["sentence"], *row["slo_regressions"])))
    return 0


@recommendations.command("track-record")
@database_options
def track_record(source: Source) -> int:
    """How the claims of each rule came true so far; they scale its next ones."""
    if source.server is not None:
        from gpuwise.commands.remote import fetch

        rows = fetch(source.server, "verifications/track-record", {})["items"]
    else:
        from api.resources.as_json import to_json
        from api.resources.verifications import record_rows

        with open_session(source.settings) as session:
            rows = [to_json(row) for row in record_rows(session)]
    if source.as_json:
        print_json(rows)
        return 0
    known = [row for row in rows if row["cases"]]
    print_rows(known, RECORDS, empty="Nothing has been verified yet: claims are shown as computed.")
    return 0


def _step(name: str, help_: str, *, needs_until: bool = False, needs_note: bool = False) -> click.Command:
    """A command that takes one step."""

    def take(
        source: Source, recommendation_id: int, note: str | None, who: str | None, until: str | None = None
    ) -> int:
        row = _take(source, name, recommendation_id, {"note": note, "who": who or me(), "until": until})
        if source.as_json:
            print_json(row)
        else:
            back = f" until {row['snoozed_until'][:10]}" if row["snoozed_until"] else ""
            click.echo(f"{row['title']}: {row['status']}{back}")
        return 0

    command: Callable[..., Any] = database_options(take)
    if needs_until:
        command = click.option(
            "--until", required=True, metavar="T", help="The day (2026-12-01) or time it returns by itself."
        )(command)
    command = WHO(command)
    note_help = "Why it does not apply." if needs_note else "In your own words; kept with the step."
    command = click.option("--because", "note", required=needs_note, metavar="TEXT", help=note_help)(command)
    return click.command(name, help=help_)(ID(command))


def _take(source: Source, name: str, id_: int, given: dict[str, str | None]) -> dict[str, Any]:
    if source.server is not None:
        from gpuwise.commands.remote import send

        answer: dict[str, Any] = send(source.server, f"recommendations/{id_}/{name}", given)
        return answer
    from api.resources.as_json import to_json
    from api.resources.recommendation_actions import Act, act
    from core.clock import now_ms

    with open_session(source.settings) as session:
        row = act(
            session,
            id_,
            Act(name),
            now_ms(),
            note=given["note"],
            until=given["until"],
            who=given["who"],
        )
        taken: dict[str, Any] = to_json(row)
        return taken


def _rows(source: Source) -> list[dict[str, Any]]:
    if source.server is not None:
        from gpuwise.commands.remote import fetch

        rows: list[dict[str, Any]] = fetch(source.server, "recommendations", {})["items"]
        return rows
    from api.ranking import rank
    from api.resources.as_json import to_json
    from api.resources.recommendations import row_of
    from store.queries import recommendations as kept

    with open_session(source.settings) as session:
        found = sorted(kept.listing(session), key=lambda item: (rank(item.finding), item.id))
        return [to_json(row_of(item.finding, item)) for item in found]


def _life(source: Source, id_: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    if source.server is not None:
        from gpuwise.commands.remote import ask, fetch

        compared = fetch(source.server, "verifications", {"recommendation_id": str(id_)})["items"]
        return ask(source.server, f"recommendations/{id_}/events"), compared
    from api.resources.as_json import to_json
    from api.resources.recommendation_actions import steps
    from api.resources.verifications import rows

    with open_session(source.settings) as session:
        return [to_json(step) for step in steps(session, id_)], [to_json(row) for row in rows(session, id_)]


def _sum(row: dict[str, Any]) -> str:
    saving = row["saving"]
    if saving["cash_usd_month"] is not None:
        return formats.money(float(saving["cash_usd_month"]["p50"]))
    if saving["capacity_gpu_h_month"] is not None:
        return formats.gpu_hours(saving["capacity_gpu_h_month"]["p50"])
    if saving["energy_kwh_month"] is not None:
        return formats.kwh(saving["energy_kwh_month"]["p50"])
    return "no figure" if row.get("at_stake") is None else stake(row["at_stake"])


for _command in (
    _step("claim", "Take it: you are on it."),
    _step("done", "Say that it was done; before and after are compared from then on."),
    _step("snooze", "Put it aside until a day; it returns by itself.", needs_until=True),
    _step("dismiss", "Put it aside for good, with the reason; it returns when it grew.", needs_note=True),
    _step("reopen", "Take a step back: it is open again."),
):
    recommendations.add_command(_command)
