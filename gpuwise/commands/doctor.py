"""``gpuwise doctor``: the server's looks at database, data, prices and mail, after the agent's at this host."""

import importlib.util
from collections import Counter
from collections.abc import Sequence
from typing import Final

import click

from agent.doctor.checks import Check, looks
from agent.doctor.cli import main
from catalog.gpu_prices import STALE_DAYS
from core.clock import now_ms
from core.outbox import Channel
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS, MINUTE_MS

PART = "server"
NAMED: Final = 3
"""Models or hosts that a finding names."""
NO_PRICES: Final = (
    "no prices of yours: the catalogue's median on-demand price is used and named (gpuwise prices add)"
)
NO_TARIFF: Final = "no tariff"
NO_MONEY: Final = "energy is shown in kWh and gCO2e, without money (gpuwise tariffs add and sites add, or setting tariff_usd_per_kwh)"
NO_MAIL: Final = "nobody gets mail or alerts (gpuwise recipients add ADDRESS): the weekly report is a dry run"
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
    from api.resources import effective_prices
    from store.engine import make_engine, session_scope
    from store.queries import prices
    from store.schema import check

    if check(settings.database_url) is not None:
        return "note", NO_PRICES
    with session_scope(make_engine(settings.database_url)) as session:
        count = len(prices.listing(session))
        found = effective_prices.rows(session, settings, now_ms())
    said = [f"{count} price rows of yours" if count else NO_PRICES]
    unpriced = [row.model or "model unknown" for row in found if row.usd_per_gpu_hour is None]
    stale = [row.model or "model unknown" for row in found if row.stale]
    if unpriced:
        said.append(f"{len(unpriced)} of {len(found)} GPUs have no price and no cost ({_counted(unpriced)})")
    if stale:
        said.append(
            f"{len(stale)} GPUs have a catalogue price older than {STALE_DAYS} days ({_counted(stale)})"
        )
    if unpriced or stale:
        said.append("gpuwise prices effective shows each")
    return "ok" if len(said) == 1 and count else "note", "; ".join(said)


def _counted(names: Sequence[str]) -> str:
    """``2 × NVIDIA L40S, 1 × Tesla T4``: the most frequent first, at most a few."""
    counts = Counter(names).most_common()
    shown = [f"{count} × {name}" for name, count in counts[:NAMED]]
    return ", ".join(shown + ([f"and {len(counts) - NAMED} more"] if len(counts) > NAMED else []))


def _energy(settings: Settings) -> tuple[str, str]:
    from api.resources import sites
    from store.engine import make_engine, session_scope
    from store.schema import check

    if check(settings.database_url) is not None:
        if settings.tariff_usd_per_kwh is None:
            return "note", f"{NO_TARIFF} anywhere: {NO_MONEY}"
        return "ok", f"{settings.tariff_usd_per_kwh} USD/kWh, PUE {settings.pue}, grid {settings.grid_code}"
    with session_scope(make_engine(settings.database_url)) as session:
        terms = sites.terms(session, settings, now_ms())
    without = [row.host or "no host" for row in terms if row.usd_per_kwh is None]
    if len(without) == len(terms):
        return "note", f"{NO_TARIFF} anywhere: {NO_MONEY}"
    if without:
        hosts = ", ".join(without[:NAMED]) + (
            f" and {len(without) - NAMED} more" if len(without) > NAMED else ""
        )
        return "note", f"{NO_TARIFF} for {len(without)} of {len(terms)} hosts ({hosts}): {NO_MONEY}"
    tariffs = _span_of([float(row.usd_per_kwh) for row in terms if row.usd_per_kwh is not None])
    grids = ", ".join(sorted({row.carbon_code or "unknown" for row in terms}))
    return "ok", f"{tariffs} USD/kWh now, PUE {_span_of([row.pue for row in terms])}, grid {grids}"


def _span_of(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _mail(settings: Settings) -> tuple[str, str]:
    from api.resources import recipients
    from store.engine import make_engine, session_scope
    from store.queries import mail
    from store.schema import check

    if check(settings.database_url) is not None:
        return "note", NO_MAIL
    with session_scope(make_engine(settings.database_url)) as session:
        people = recipients.everybody(session, settings)
        waiting = mail.open_count(session)
        troubled = [row for row in recipients.rows(session, settings, now_ms()) if row.last_problem]
    by_mail = [one for one in people if one.channel is Channel.MAIL]
    if not people:
        return "note", NO_MAIL
    if by_mail and settings.smtp_host is None:
        return (
            "bad",
            f"{_many(len(by_mail), 'recipient')} of mail, and no smtp_host: set the site's mail server",
        )
    hooks = _many(len(people) - len(by_mail), "webhook")
    said = [f"{_many(len(by_mail), 'recipient')} of mail, {hooks}"]
    if waiting:
        said.append(f"{_many(waiting, 'message')} waiting")
    if troubled:
        said.append(f"the last message to {len(troubled)} did not arrive (gpuwise recipients says why)")
    return "note" if waiting or troubled else "ok", "; ".join(said)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _charts(_settings: Settings) -> tuple[str, str]:
    if importlib.util.find_spec("resvg_py") is None:
        return "bad", "resvg_py is missing: pip install 'gpuwise[server]'"
    return "ok", "charts can be drawn for mail"
