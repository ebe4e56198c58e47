"""``gpuwise doctor``: the server's looks at database, data, prices and mail, after the agent's at this host."""

import importlib.util

import click

from agent.doctor.checks import Check, looks
from agent.doctor.cli import main
from core.clock import now_ms
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS, MINUTE_MS

PART = "server"
DATABASE_S = 30.0
"""A look at a big database may take longer than one at a file."""


@click.command(
    add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True}
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def doctor(words: tuple[str, ...]) -> int:
    """Say what this host and installation can and cannot do, and why; exit 1 when something does not work."""
    return main(words, more=checks)


def checks(settings: Settings) -> list[Check]:
    """The looks of the server part."""
    of = {
        "database": _database,
        "data": _data,
        "prices": _prices,
        "energy": _energy,
        "mail": _mail,
        "fonts": _charts,
    }
    return looks(PART, {name: lambda one=one: one(settings) for name, one in of.items()}, DATABASE_S)  # type: ignore[misc]


def _database(settings: Settings) -> tuple[str, str]:
    from store.schema import check

    problem = check(settings.database_url)
    shown = settings.database_url.split("@")[-1]
    if problem is None:
        return "ok", f"{shown} fits this version"
    return ("note" if settings.database_url.startswith("sqlite") else "bad"), problem


def _data(settings: Settings) -> tuple[str, str]:
    from store.engine import make_engine, session_scope
    from store.queries.hours import bounds
    from store.schema import check

    if check(settings.database_url) is not None:
        return "note", "no data yet: run gpuwise up, or gpuwise import"
    with session_scope(make_engine(settings.database_url)) as session:
        window = bounds(session)
    if window is None:
        return "note", "no data yet: run gpuwise up, or gpuwise import"
    age_ms = now_ms() - window.to_ms
    if age_ms < -HOUR_MS:
        return "bad", f"the newest sample is {_span(-age_ms)} in the future: check the clock of its host"
    state = "ok" if age_ms < 5 * MINUTE_MS else "note"
    return state, f"{_span(window.to_ms - window.from_ms)} of data, newest {_span(max(age_ms, 0))} ago"


def _span(ms: int) -> str:
    for unit_ms, unit in ((DAY_MS, "days"), (HOUR_MS, "hours"), (MINUTE_MS, "minutes")):
        if ms >= 2 * unit_ms:
            return f"{ms / unit_ms:,.0f} {unit}"
    return f"{ms / 1000:.0f} seconds"


def _prices(settings: Settings) -> tuple[str, str]:
    from store.engine import make_engine, session_scope
    from store.queries import prices
    from store.schema import check

    if check(settings.database_url) is None:
        with session_scope(make_engine(settings.database_url)) as session:
            count = len(prices.listing(session))
        if count:
            return "ok", f"{count} price rows of yours"
    return (
        "note",
        "no prices of yours: the catalogue's median on-demand price is used and named (gpuwise prices add)",
    )


def _energy(settings: Settings) -> tuple[str, str]:
    if settings.tariff_usd_per_kwh is None:
        return "note", "no tariff_usd_per_kwh: energy is shown in kWh and gCO2e, without money"
    return "ok", f"{settings.tariff_usd_per_kwh} USD/kWh, PUE {settings.pue}, grid {settings.grid_code}"


def _mail(settings: Settings) -> tuple[str, str]:
    if settings.smtp_host is None or not settings.report_recipients:
        return "note", "no smtp_host or report_recipients: the weekly report is a dry run"
    return "ok", f"{settings.smtp_host}:{settings.smtp_port} to {len(settings.report_recipients)} recipients"


def _charts(_settings: Settings) -> tuple[str, str]:
    if importlib.util.find_spec("resvg_py") is None:
        return "bad", "resvg_py is missing: pip install 'gpuwise[server]'"
    return "ok", "charts can be drawn for mail"
