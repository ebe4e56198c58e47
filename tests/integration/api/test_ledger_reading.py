"""However a window is read, from stored lines or on the fly, it adds up to the same."""

import pytest
from fleet_for_tests import HOUR, NOW, T0, A, B, fill
from ledger_for_tests import price, settings
from sqlalchemy import Engine

from api.resources.ledger_days import materialise
from api.resources.ledger_hours import priced_lines
from api.resources.ledger_reading import Reading, lines_on_the_fly, reading
from api.resources.scope import Scope
from core.evidence import Window
from core.settings import Settings
from core.units import DAY_MS
from store.engine import make_engine, session_scope
from store.queries import ledger_pending
from store.queries.ledger_lines import stored_lines


@pytest.fixture
def fleet(ready_database: str) -> Engine:
    """The small fleet, priced."""
    fill(ready_database)
    engine = make_engine(ready_database)
    materialise(engine, settings(engine), NOW)
    return engine


def read(engine: Engine, of: Settings, window: Window) -> tuple[int, int, Reading]:
    """Cost as it is read, cost priced on the fly alone, and how it was read."""
    with session_scope(engine) as session:
        scope = Scope(session, of, NOW, window)
        how = reading(scope)
        usd = sum(line.line.cost_usd or 0 for line in lines_on_the_fly(scope, how))
        if how.stored is not None:
            rows = stored_lines(session, *how.stored, without=how.without, columns=["cost_usd"])
            usd += sum(row[0] or 0 for row in rows)
        fly = sum(line.line.cost_usd or 0 for line in priced_lines(scope, window.from_ms, window.to_ms))
    return usd, fly, how


WINDOWS = {
    "all data": Window(T0, T0 + 2 * HOUR),
    "more": Window(T0 - 3 * DAY_MS, T0 + 3 * DAY_MS),
    "a part": Window(T0 + HOUR, T0 + 2 * HOUR),
    "the day": Window(T0, T0 + DAY_MS),
    "before": Window(T0 - 3 * DAY_MS, T0 - DAY_MS),
}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=list(WINDOWS))
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_a_window_costs_the_same_however_it_is_read(fleet: Engine, window: Window, zone: str) -> None:
    of = settings(fleet, accounting_time_zone=zone)
    materialise(fleet, of, NOW)
    usd, fly, _ = read(fleet, of, window)
    assert usd == fly
    with session_scope(fleet) as session:
        ledger_pending.mark(session, 0, None, [B])
    usd, fly, _ = read(fleet, of, window)
    assert usd == fly


def test_whole_days_come_from_stored_lines(fleet: Engine) -> None:
    usd, _, how = read(fleet, settings(fleet), WINDOWS["all data"])
    assert (usd, how) == (8_000_000, Reading((T0, T0 + DAY_MS), frozenset(), ()))


def test_a_day_that_waits_is_priced_now(fleet: Engine) -> None:
    price(fleet, "4.00", A, T0)
    usd, _, how = read(fleet, settings(fleet), WINDOWS["all data"])
    assert usd == 12_000_000
    assert len(how.without) == 1
    assert [(start, end, len(ids or ())) for start, end, ids in how.on_the_fly] == [(T0, T0 + DAY_MS, 1)]


def test_other_settings_read_no_stored_line(fleet: Engine) -> None:
    _, _, how = read(fleet, settings(fleet, pue=2.0), WINDOWS["all data"])
    assert how.stored is None
