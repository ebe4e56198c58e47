"""A fleet for pages: 1,000 GPUs over 90 days, hours and days, owners, prices, budget, advice, and raw samples that can grow tenfold."""

import sqlite3
from contextlib import closing
from decimal import Decimal
from typing import Final

from api.jobs.ledger import LEDGER
from api.resources import advise, budgets, owners
from api.resources.owner_specs import RuleSpec
from api.resources.scope import Scope, default_window
from bench import fleet_advice
from core.settings import Settings
from core.units import DAY_MS, GIB, HOUR_MS
from store import day_sums
from store.dbapi import sqlite_path
from store.engine import make_engine, session_scope
from store.queries import ledger_pending, prices

GPUS: Final = 1_000
DAYS: Final = 90
END_MS: Final = 1_795_305_600_000 // DAY_MS * DAY_MS
"""2026-11-22."""
STEP_MS: Final = 10_000
FEW: Final = 180
"""Samples of each GPU at first: half an hour."""
MANY: Final = 10 * FEW
TEAMS: Final = 13
"""Hosts ``node-000NN`` in tens."""


def settings(url: str) -> Settings:
    """A site that pays for its power."""
    return Settings(database_url=url, tariff_usd_per_kwh=0.12, pays_for_power=True, grid_code="DEU")


def build(url: str, gpus: int = GPUS, days: int = DAYS) -> None:
    """Fill a new SQLite database: about a minute for 1,000 GPUs, most of it pricing 90 days."""
    fleet_advice.build(url, gpus, range(END_MS - days * DAY_MS, END_MS, HOUR_MS))
    grow(url, 0, FEW)
    given, engine = settings(url), make_engine(url)
    with engine.begin() as connection:  # what goes with days that no roll-up wrote
        every = range(END_MS - days * DAY_MS, END_MS, DAY_MS)
        day_sums.follow(connection, [(gpu, day_ms) for gpu in range(1, gpus + 1) for day_ms in every])
    day_sums.add_up(engine)
    with session_scope(engine) as session:
        prices.add(
            session,
            scope_kind="all",
            scope_value="",
            usd_per_gpu_hour=Decimal("2.69"),
            billing="on_demand",
            valid_from_ms=0,
        )
        for team in range(TEAMS):
            spec = RuleSpec(f"team {team:02}", "serving", f"47{team:02}", host=f"node-{team:04}*")
            owners.add(session, given, END_MS, spec)
        ledger_pending.mark(session, 0, None)
    LEDGER.run(engine, given, END_MS)
    with session_scope(engine) as session:
        body = budgets.BudgetBody(
            name="Team 00", scope_kind="team", scope_value="team 00", amount_usd=Decimal(150_000)
        )
        budgets.add(session, given, body, END_MS)
        window = default_window(session, END_MS)
        assert window is not None
        advise.run(Scope(session, given, END_MS, window), record=True)


def grow(url: str, first: int, last: int) -> None:
    """Raw samples number ``first`` to ``last`` of each GPU, counted back from the end."""
    with closing(sqlite3.connect(sqlite_path(url), isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TEMP TABLE number (n INTEGER)")
        connection.executemany("INSERT INTO number VALUES (?)", [(n,) for n in range(first, last)])
        connection.execute(
            "INSERT INTO gpu_sample (gpu_id, ts_ms, span_ms, covered_ms, energy_method, activity, busy_ratio, power_w,"
            " power_max_w, power_limit_w, energy_j, memory_used_bytes, sm_clock_hz, sm_active_ratio, dram_active_ratio,"
            " tensor_active_ratio, temperature_c)"
            f" SELECT id, {END_MS} - {STEP_MS} * (n + 1), {STEP_MS}, {STEP_MS}, 'counter',"
            " CASE id % 5 WHEN 0 THEN 'empty' WHEN 1 THEN 'memory_bound' ELSE 'compute_bound' END,"
            f" 0.9, 480.0, 540.0, 700.0, 4800.0, {60 * GIB}, 1.9e9, 0.8, 0.5, 0.4, 61.0 FROM gpu CROSS JOIN number"
        )
        connection.execute(f"UPDATE gpu SET last_sample_ms = {END_MS} - {STEP_MS}, seen_until_ms = {END_MS}")
        connection.execute("COMMIT")
        connection.execute("ANALYZE")
