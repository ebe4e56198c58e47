"""``gpuwise report weekly``: the weekly report as text, a file, JSON, or mail. Cron-friendly."""

import json
from pathlib import Path

import click

from core.errors import GpuwiseError
from core.settings import load


@click.group()
def report() -> None:
    """Reports for people who do not open the pages."""


@report.command()
@click.option(
    "--send", is_flag=True, help="Mail it to report_recipients, once per period; without any: a dry run."
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write one self-contained HTML file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what the report rests on as JSON.")
@click.option("--database-url", help="sqlite:///PATH or postgresql://USER@HOST/DB.")
def weekly(send: bool, out: Path | None, as_json: bool, database_url: str | None) -> int:
    """The last seven full days of data against the seven before; prints text unless told otherwise."""
    from api import report as reports
    from api.mail import send_report
    from api.resources.as_json import to_json
    from core.clock import now_ms
    from store.engine import make_engine, session_scope
    from store.schema import ensure_ready

    settings = load({"database_url": database_url})
    ensure_ready(settings.database_url)
    with session_scope(make_engine(settings.database_url)) as session:
        made = reports.weekly(session, settings, now_ms())
        if out is not None:
            _write(out, reports.render_html(made))
            click.echo(f"wrote {out}", err=as_json)
        if as_json:
            body = {"period": made.period, "subject": made.subject, "overview": to_json(made.overview)}
            click.echo(json.dumps(body, indent=2, ensure_ascii=False))
        if send:
            click.echo(send_report(session, settings, now_ms(), made), err=as_json)
        if not (send or out or as_json):
            click.echo(reports.render_text(made), nl=False)
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise GpuwiseError(f"{path} cannot be written ({error.strerror}): choose another place") from error
