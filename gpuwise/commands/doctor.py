"""``gpuwise doctor``: says in plain words what is there and what is missing."""

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields

import click

from core.clock import now_ms
from core.errors import GpuwiseError
from core.settings import Settings, load
from core.units import DAY_MS, HOUR_MS, MINUTE_MS


@dataclass(frozen=True, slots=True)
class Check:
    """One look: ``state`` is ``ok``, ``note`` (works, with a limit) or ``bad`` (does not work)."""

    name: str
    state: str
    finding: str


@click.command()
@click.option("--database-url", help="sqlite:///PATH or postgresql://USER@HOST/DB.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(database_url: str | None, as_json: bool) -> int:
    """Check driver, database, data, prices and mail; exit 1 when something does not work."""
    settings = load({"database_url": database_url})
    checks = [
        _guarded(name, look, settings)
        for name, look in (
            ("python", _python),
            ("settings", _environment),
            ("driver", _driver),
            ("database", _database),
            ("data", _data),
            ("prices", _prices),
            ("energy", _energy),
            ("mail", _mail),
            ("fonts", _charts),
        )
    ]
    if as_json:
        click.echo(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        for check in checks:
            click.echo(f"{check.state:<5}{check.name:<10}{check.finding}")
    return 1 if any(check.state == "bad" for check in checks) else 0


def _guarded(name: str, look: Callable[[Settings], tuple[str, str]], settings: Settings) -> Check:
    try:
        return Check(name, *look(settings))
    except GpuwiseError as error:
        return Check(name, "bad", str(error))


def _python(_settings: Settings) -> tuple[str, str]:
    return "ok", f"Python {sys.version.split()[0]}"


def _driver(_settings: Settings) -> tuple[str, str]:
    from agent.nvml import driver_present

    reason = driver_present()
    return (
        ("ok", "NVIDIA driver found")
        if reason is None
        else ("note", f"{reason}: no live GPUs here, imports and the demo work")
    )


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


def _environment(_settings: Settings) -> tuple[str, str]:
    known = {f"GPUWISE_{field.name.upper()}" for field in fields(Settings)} | {
        "GPUWISE_CONFIG",
        "GPUWISE_LOG",
    }
    named = [
        name for name in os.environ if name.startswith("GPUWISE_") and not name.startswith("GPUWISE_TEST_")
    ]
    unknown = sorted(set(named) - known)
    if unknown:
        return "bad", f"{', '.join(unknown)}: no such setting, see docs/settings.md for the names"
    return "ok", f"{len(named)} settings from the environment"


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
        "no prices of yours: the catalogue's median on-demand price is used and named (POST /api/v1/prices)",
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
