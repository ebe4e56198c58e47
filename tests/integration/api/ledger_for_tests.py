"""The small fleet's ledger: what is stored, what pricing on the fly says, and changes that come later."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from typing import Any

from fleet_for_tests import NOW, T0, settings_for
from sqlalchemy import Engine

from api.resources.ledger_hours import PricedLine, priced_lines
from api.resources.scope import Scope
from core.evidence import Window
from core.samples import GpuSample
from core.settings import Settings
from core.units import DAY_MS
from store.dbapi import open_connection
from store.engine import session_scope
from store.ingest import Ingest
from store.queries import ledger_pending, prices
from store.queries.ledger_lines import stored_lines
from store.rollup import roll_up

SUMS = (
    *("known_ms", "covered_ms", "active_ms", "effective_ms", "energy_mj", "site_energy_mj", "cost_usd"),
    *("idle_cost_usd", "energy_usd", "carbon_ug", "parked_ms", "parked_usd", "unknown_usd"),
)


def settings(engine: Engine, **more: Any) -> Settings:
    """The site of the small fleet."""
    url = engine.url.render_as_string(hide_password=False).replace("postgresql+psycopg", "postgresql")
    return replace(settings_for(url), **more)


def stored(engine: Engine, *columns: str) -> list[tuple[Any, ...]]:
    """Columns of all lines, in a fixed order."""
    with session_scope(engine) as session:
        rows = list(stored_lines(session, 0, 2**62, columns=columns))
    return sorted(rows, key=repr)


def sums(engine: Engine) -> dict[str, int | None]:
    """All stored lines added up."""
    rows = stored(engine, *SUMS)
    return {name: _sum([row[at] for row in rows]) for at, name in enumerate(SUMS)}


def priced(engine: Engine, of: Settings, from_ms: int = 0, to_ms: int = T0 + 40 * DAY_MS) -> list[PricedLine]:
    """Every hour priced on the fly."""
    with session_scope(engine) as session:
        scope = Scope(session, of, NOW, Window(from_ms, to_ms))
        return list(priced_lines(scope, max(from_ms, T0 - 5 * DAY_MS), to_ms))


def sums_on_the_fly(engine: Engine, of: Settings) -> dict[str, int | None]:
    """The same sums without any stored line."""
    lines = [one.line for one in priced(engine, of)]
    found: dict[str, int | None] = {}
    for name in SUMS:
        if name in {"parked_ms", "parked_usd", "unknown_usd"}:
            number = 1 if name.startswith("parked") else 8
            at = 1 if name.endswith("_ms") else 2
            found[name] = _sum([0, *[of[at] for line in lines for of in line.spent if of[0] == number]])
        else:
            found[name] = _sum([getattr(line, name) for line in lines])
    return found


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def ingest(engine: Engine, samples: Sequence[GpuSample], now_ms: int = NOW) -> None:
    """Samples that come now, rolled up."""
    with closing(open_connection(settings(engine).database_url)) as connection:
        sink = Ingest(connection)
        sink.gpu_samples(samples)
        sink.commit()
    roll_up(engine, now_ms=now_ms)


def price(engine: Engine, usd: str, gpu_uuid: str, from_ms: int) -> None:
    """Another price of one GPU from then on."""
    with session_scope(engine) as session:
        prices.add(
            session,
            scope_kind="gpu_uuid",
            scope_value=gpu_uuid,
            usd_per_gpu_hour=Decimal(usd),
            billing="on_demand",
            gpus_per_unit=1,
            valid_from_ms=from_ms,
            valid_to_ms=None,
            note="",
        )
        ledger_pending.mark(session, from_ms, None, [gpu_uuid])


def pending(engine: Engine) -> int:
    """Marks left."""
    with session_scope(engine) as session:
        return ledger_pending.count(session)
