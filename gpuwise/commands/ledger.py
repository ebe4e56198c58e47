"""``gpuwise ledger``: price days anew, see how far it is, close months."""

from typing import Any, Final

import click

from core.clock import now_ms
from core.errors import GpuwiseError, UsageError
from gpuwise.commands.display import Column, bar, dollars, figure, print_json, print_rows
from gpuwise.commands.options import Source, database_options, open_session

MONTHS: Final = (
    Column("month", "MONTH"),
    Column("state", "STATE"),
    figure("cost_usd", "COST", dollars),
    figure("lines", "LINES", str),
    figure("correction_usd", "CORRECTED BY", dollars),
    figure("corrections", "CORRECTIONS", str),
    figure("pending_gpu_days", "NOT PRICED", str),
    Column("closed_at", "CLOSED (UTC)", lambda at: at[:16].replace("T", " ")),
    Column("closed_by", "BY"),
    Column("note", "NOTE"),
)
NOTHING: Final = "No priced days yet: run gpuwise ledger rebuild."


@click.group()
def ledger() -> None:
    """Priced days of every GPU: price them anew, see what waits, close months for chargeback."""


@ledger.command()
@click.option("--all", "everything", is_flag=True, help="Every day there is, not only those that changed.")
@database_options
def rebuild(source: Source, *, everything: bool) -> int:
    """Price the days that changed, now; the jobs process does so every five minutes."""
    _only_here(source)
    from api.resources.as_json import to_json
    from api.resources.ledger_days import materialise
    from store import ledger_totals
    from store.engine import make_engine
    from store.queries import ledger_pending

    with open_session(source.settings) as session:
        if everything:
            ledger_pending.mark(session, 0, None)
    engine = make_engine(source.settings.database_url)
    with bar("Pricing", "GPU-days") as progress:
        done = materialise(engine, source.settings, now_ms(), progress)
    if done.busy:
        raise GpuwiseError("another process prices days of this database now: try again when it is done")
    ledger_totals.add_up(engine)
    if source.as_json:
        print_json(to_json(done))
        return 0
    click.echo(
        f"{done.gpu_days:,} GPU-days priced: {done.lines:,} lines, {done.corrections:,} corrections of closed months; "
        f"{done.pending_left:,} GPU-days wait"
    )
    return 0


@ledger.command()
@database_options
def status(source: Source) -> int:
    """What waits to be priced, and whether lines rest on the settings of now."""
    _only_here(source)
    from api.resources.ledger_basis import is_current
    from store.queries import ledger_months, ledger_pending

    with open_session(source.settings) as session:
        lines, _ = ledger_months.totals(session, 0, 2**62)
        found = {
            "lines": lines,
            "pending_gpu_days": ledger_pending.count(session),
            "is_current": is_current(session, source.settings),
            "accounting_time_zone": source.settings.accounting_time_zone,
        }
    if source.as_json:
        print_json(found)
        return 0
    click.echo(f"{found['lines']:,} lines; {found['pending_gpu_days']:,} GPU-days wait to be priced")
    if not found["is_current"]:
        click.echo("Lines rest on other settings than these: run gpuwise ledger rebuild.")
    return 0


@ledger.command()
@database_options
def months(source: Source) -> int:
    """Months of the accounting time zone: cost, closed or open, corrections."""
    rows = _months(source)
    if source.as_json:
        print_json(rows)
        return 0
    told = [row | {"state": "closed" if row["is_closed"] else "open"} for row in rows]
    print_rows(told, MONTHS, empty=NOTHING)
    return 0


@ledger.command()
@click.argument("month")
@click.option("--by", metavar="NAME", help="Who closes it; kept with it.")
@click.option("--note", metavar="TEXT", help="In your own words; kept with it.")
@database_options
def close(source: Source, month: str, by: str | None, note: str | None) -> int:
    """Freeze MONTH (2026-10) for chargeback: later changes become corrections."""
    row = _close(source, month, {"by": by, "note": note})
    if source.as_json:
        print_json(row)
        return 0
    click.echo(f"{row['month']} is closed at {dollars(row['cost_usd'])} in {row['lines']:,} lines")
    return 0


def _months(source: Source) -> list[dict[str, Any]]:
    if source.server is not None:
        from gpuwise.commands.remote import fetch

        rows: list[dict[str, Any]] = fetch(source.server, "ledger/months", {})["items"]
        return rows
    from api.resources.as_json import to_json
    from api.resources.ledger_months import rows as month_rows

    with open_session(source.settings) as session:
        return [to_json(row) for row in month_rows(session, source.settings, now_ms())]


def _close(source: Source, month: str, given: dict[str, str | None]) -> dict[str, Any]:
    if source.server is not None:
        from urllib.parse import quote

        from gpuwise.commands.remote import send

        answer: dict[str, Any] = send(source.server, f"ledger/months/{quote(month, safe='')}/close", given)
        return answer
    from api.resources.as_json import to_json
    from api.resources.ledger_months import close as close_month

    with open_session(source.settings) as session:
        closed: dict[str, Any] = to_json(
            close_month(session, source.settings, now_ms(), month, by=given["by"], note=given["note"])
        )
        return closed


def _only_here(source: Source) -> None:
    if source.server is not None:
        raise UsageError(
            f"--server {source.server}: days are priced where the database is; its jobs process does it"
        )
