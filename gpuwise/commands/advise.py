"""``gpuwise advise``: run the rules now, or show what a server's last run found."""

from collections.abc import Mapping
from datetime import datetime
from textwrap import indent
from typing import Any

import click

from api import formats
from core.errors import UsageError
from gpuwise.commands.display import print_json
from gpuwise.commands.options import Source, database_options, open_session, window_options

LEDGERS = (("cash_usd_month", "cash"), ("capacity_gpu_h_month", "capacity"), ("energy_kwh_month", "energy"))


@click.command()
@click.option("--dry-run", is_flag=True, help="Print only; do not record the findings.")
@window_options
@database_options
def advise(source: Source, since: str | None, until: str | None, dry_run: bool) -> int:
    """Run the rules over the window, record and print what they find."""
    if source.server is not None:
        if since is not None or until is not None or dry_run:
            raise UsageError(
                "--server shows that server's last run of its rules: leave out --since, --until, --dry-run"
            )
        view = _of_server(source.server)
    else:
        view = _of_database(source, since, until, record=not dry_run)
    if source.as_json:
        print_json(view)
    else:
        _print(view)
    return 0


def _of_database(source: Source, since: str | None, until: str | None, *, record: bool) -> dict[str, Any]:
    from api.resources import advise as resource
    from api.resources.as_json import to_json
    from api.resources.scope import scope_of
    from core.clock import now_ms

    with open_session(source.settings) as session:
        scope = scope_of(session, source.settings, now_ms(), since, until)
        view: dict[str, Any] = to_json(resource.run(scope, record=record))
        return view | {"window": to_json(scope.window)}


def _of_server(server: str) -> dict[str, Any]:
    from gpuwise.commands.remote import fetch

    answer = fetch(server, "recommendations", {})
    return {
        "recommendations": [row for row in answer["items"] if row["status"] != "gone"],
        "not_evaluated": answer["not_evaluated"],
        "totals": answer["totals"],
        "window": answer["window"],
    }


def _print(view: Mapping[str, Any]) -> None:
    for row in view["recommendations"]:
        mark = "" if row["status"] == "open" else f" ({row['status']})"
        click.echo(f"{click.style(row['title'], bold=True)}{mark}")
        click.echo(f"  {_saving(row)} · grade {row['grade']} · effort {row['effort']} · risk {row['risk']}")
        click.echo(f"  {row['because']}")
        for action in row["actions"]:
            click.echo(f"  → {action['text']}")
            if action["command"]:
                click.echo(indent(action["command"], " " * 6))
        click.echo(f"  Wrong when: {row['wrong_when']}")
        click.echo()
    if not view["recommendations"]:
        click.echo("No recommendations.")
    for item in view["not_evaluated"]:
        subject = item["subject"]["label"] or item["subject"]["id"]
        click.echo(f"not evaluated: {item['rule_id']} on {subject}: {item['why']}")
    click.echo(_totals(view["totals"], view["window"]))


def _saving(row: Mapping[str, Any]) -> str:
    said = [
        f"{_figure(row['saving'][name]['p50'], kind)} a month ({kind})"
        for name, kind in LEDGERS
        if row["saving"][name] is not None
    ]
    burnt = "" if row.get("at_stake") is None else f"{stake(row['at_stake'])} at stake until it ends. "
    return ", ".join(said) or burnt + (row["no_figure"] or "no figure")


def stake(at_stake: Mapping[str, Any]) -> str:
    """What is at stake in a day, in GPU-hours where that has no price."""
    if at_stake["usd_per_hour"] is None:
        return f"{_figure(24 * at_stake['gpus'], 'capacity')} / day"
    return f"{_figure(24 * float(at_stake['usd_per_hour']), 'cash')} / day"


def _figure(value: str | float, kind: str) -> str:
    if kind == "cash":
        return formats.money(float(value))
    text = formats.gpu_hours(float(value)) if kind == "capacity" else formats.kwh(float(value))
    return text.replace(formats.NBSP, " ")


def _totals(totals: Mapping[str, Any] | None, window: Mapping[str, str] | None) -> str:
    if totals is None:
        return "Totals: the rules have not run yet."
    said = [
        f"{kind} {_figure(totals[name]['p50'], kind)} ({_figure(totals[name]['p10'], kind)} to {_figure(totals[name]['p90'], kind)})"
        for name, kind in LEDGERS
        if totals[name] is not None
    ]
    spend = totals["spend_usd_month"]
    of_spend = "" if spend is None else f", of {_figure(spend, 'cash')} {_pace(window)}"
    return f"A month, after overlap: {'; '.join(said) or 'no figures'}{of_spend}."


def _pace(window: Mapping[str, str] | None) -> str:
    if window is None:
        return "a month"
    start, end = (datetime.fromisoformat(window[name]) for name in ("from", "to"))
    return formats.pace((end - start).total_seconds() / 3600)
