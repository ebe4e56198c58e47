"""``gpuwise report weekly``: the weekly report of the fleet or of owners, as text, files, JSON, or mail. Cron-friendly."""

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from core import logs
from core.errors import GpuwiseError, UsageError
from core.settings import load

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from api.mailing import Plan
    from api.report_model import WeeklyReport
    from core.ownership import Owner


@click.group()
def report() -> None:
    """Reports for people who do not open the pages."""


@report.command()
@click.option("--owner", metavar="OWNER", help="Of what this owner pays for: a team, or 'TEAM / PROJECT'.")
@click.option("--fleet", is_flag=True, help="Of the whole fleet. The default, but with --send.")
@click.option("--all", "every", is_flag=True, help="Of the whole fleet and of every owner.")
@click.option(
    "--send",
    is_flag=True,
    help="Mail it to its recipients, once per period: everybody's report, or that of --owner or --fleet alone.",
)
@click.option("--dry-run", is_flag=True, help="Say who would get what, and send nothing.")
@click.option("--again", is_flag=True, help="With --send: also to whom it went already.")
@click.option(
    "--to",
    metavar="ADDRESS",
    help="With --send: only to this recipient, by address or number, or any address.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write one self-contained HTML file; with --all a folder of them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what the report says and rests on as JSON.")
@click.option("--database-url", help="sqlite:///PATH or postgresql://USER@HOST/DB.")
def weekly(
    *,
    owner: str | None,
    fleet: bool,
    every: bool,
    send: bool,
    dry_run: bool,
    again: bool,
    to: str | None,
    out: Path | None,
    as_json: bool,
    database_url: str | None,
) -> int:
    """The last seven full days of data against the seven before; prints text unless told otherwise."""
    from core.clock import now_ms
    from store.engine import make_engine, session_scope
    from store.schema import ensure_ready

    if (again or to is not None) and not (send or dry_run):
        raise UsageError("--again and --to say how to mail: give --send too, or --dry-run")
    if (owner is not None) + fleet + every > 1:
        raise UsageError("--owner, --fleet and --all say of whom: give one")
    settings = load({"database_url": database_url})
    ensure_ready(settings.database_url)
    engine = make_engine(settings.database_url)
    with session_scope(engine) as session:
        only = _audiences(session, owner, every=every)
        if out or (not dry_run and (as_json or not send)):
            from api import report as reports

            made = [reports.weekly(session, settings, now_ms(), one) for one in only]
            _print(made, out, as_json=as_json and not dry_run, is_many=every, quiet=send or dry_run)
        if dry_run:
            from api.mailing import Reports, planned

            of = Reports(session, settings, now_ms())
            _say_dry(planned(of, again=again, to=to, only=only if owner or fleet else None), as_json=as_json)
    if send and not dry_run:
        from api.mailing import send_weekly

        with logs.silenced("api.outgoing"):
            told = send_weekly(
                engine, settings, now_ms(), again=again, to=to, only=only if owner or fleet else None
            )
        click.echo(told, err=as_json)
    return 0


def _audiences(session: "Session", owner: str | None, *, every: bool) -> "list[Owner | None]":
    from api.resources.report_audiences import audiences, named

    if owner is not None:
        return [named(session, owner)]
    return [None, *audiences(session)] if every else [None]


def _print(
    made: "list[WeeklyReport]", out: Path | None, *, as_json: bool, is_many: bool, quiet: bool
) -> None:
    from api.report_render import render_html, render_text
    from api.resources.weekly_reports import as_json as body_of

    if out is not None:
        for one in made:
            path = out / f"{file_name(one)}.html" if is_many else out
            _write(path, render_html(one))
            click.echo(f"wrote {path}", err=as_json)
    if as_json:
        bodies = [body_of(one) for one in made]
        click.echo(json.dumps(bodies if is_many else bodies[0], indent=2, ensure_ascii=False))
    if not (quiet or out or as_json):
        click.echo(f"\n{'=' * 78}\n\n".join(render_text(one) for one in made), nl=False)


def file_name(report: "WeeklyReport") -> str:
    """A name for a file of this report: letters and digits alone, so that no owner's name leads out of the folder."""
    if report.audience is None:
        return "fleet"
    plain = re.sub(r"[^A-Za-z0-9]+", "-", report.audience.name)[:60].strip("-")
    mark = sha256(report.audience.name.encode("utf-8", "replace")).hexdigest()[:6]
    return f"owner-{plain}-{mark}" if plain != report.audience.name else f"owner-{plain}"


WHAT: Final = {
    "goes": "would go to {to}: {subject}",
    "mailed-before": "went to {to} before",
    "nothing-to-say": "has nothing to say, and {to} asked for no mail then",
}
"""Of a dry run, by what would become of a report."""


def _say_dry(found: "Plan", *, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "to": one.recipient.shown,
                "recipient_id": one.recipient.id,
                "owner": None if one.recipient.audience is None else one.recipient.audience.team,
                "project": None if one.recipient.audience is None else one.recipient.audience.project or None,
                "period": one.report.period,
                "subject": one.report.subject,
                "what": one.fate.value,
            }
            for one in found.lines
        ]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    for one in () if as_json else found.lines:
        whose = "the whole fleet" if one.recipient.audience is None else one.recipient.audience.name
        what = WHAT[one.fate].format(to=one.recipient.shown, subject=one.report.subject)
        click.echo(f"dry run: the report of {whose} {what}")
    for problem in found.problems:
        click.echo(f"dry run: {problem}", err=True)
    if not (found.lines or found.problems):
        click.echo(
            "dry run: nobody would get it (gpuwise recipients add ADDRESS, or report_recipients)", err=as_json
        )


def _write(path: Path, text: str) -> None:
    try:
        if path.suffix == ".html":
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise GpuwiseError(f"{path} cannot be written ({error.strerror}): choose another place") from error
