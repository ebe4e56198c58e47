"""What the ledger asks of its large tables it asks by an index, whatever they hold."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fleet_for_tests import HOUR, NOW, T0, A, fill
from ledger_for_tests import price, settings
from sqlalchemy import Connection, Engine, event, text

from api.resources.ledger_days import materialise
from api.resources.ledger_months import close, rows
from api.resources.ledger_reading import lines_on_the_fly, reading
from api.resources.scope import Scope
from core.evidence import Window
from core.units import DAY_MS
from store import ledger_reader
from store.engine import make_engine, session_scope
from store.queries import ledger_months

LARGE = ("ledger_day", "gpu_hour", "usage_hour")
LATER = T0 + 40 * DAY_MS


@contextmanager
def asked(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, tuple[str, Any]]]:
    """Statements that are run meanwhile, with what was filled in, numbers aside."""
    found: dict[str, tuple[str, Any]] = {}

    def note(statement: str, values: Any) -> None:
        found.setdefault(re.sub(r"\d+", "0", statement), (statement, values))

    def told(_1: Any, _2: Any, statement: str, values: Any, _3: Any, many: bool) -> None:
        note(statement, values[0] if many else values)

    fast = ledger_reader._rows

    def straight(connection: Connection, sql: str) -> list[ledger_reader.Row]:
        note(sql, None)
        return fast(connection, sql)

    monkeypatch.setattr(ledger_reader, "_rows", straight)
    event.listen(engine, "before_cursor_execute", told)
    yield found
    event.remove(engine, "before_cursor_execute", told)


def scans(engine: Engine, statement: str, values: Any) -> list[str]:
    """Steps of a plan that read the whole of a large table."""
    with engine.connect() as connection:
        cursor = connection.connection.cursor()
        if engine.dialect.name == "postgresql":
            # The tables of a test are small: without this every plan would read them whole.
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {statement}", values or None)
            plan = [row[0] for row in cursor.fetchall()]
            return [step for step in plan if any(f"Seq Scan on {table}" in step for table in LARGE)]
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}", values or ())
        plan = [row[3] for row in cursor.fetchall()]
        return [step for step in plan if step.split()[:2] in [["SCAN", table] for table in LARGE]]


def test_writer_and_reading_use_indexes(ready_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(ready_database)
    engine = make_engine(ready_database)
    of = settings(engine)
    materialise(engine, of, LATER)
    with asked(engine, monkeypatch) as found:
        price(engine, "4.00", A, T0)
        with session_scope(engine) as session:
            scope = Scope(session, of, NOW, Window(T0, T0 + 2 * HOUR))
            assert list(lines_on_the_fly(scope, reading(scope)))
        materialise(engine, of, LATER)
        with session_scope(engine) as session:
            close(session, of, LATER, "2026-10")
            rows(session, of, LATER)
        price(engine, "3.00", A, T0)
        assert materialise(engine, of, LATER).corrections
        with session_scope(engine) as session:
            assert ledger_months.listing(session)[0].corrections
    of_large = [
        (statement, values)
        for statement, values in found.values()
        if statement.split(maxsplit=1)[0] in {"SELECT", "DELETE", "INSERT"}
        and any(table in statement for table in LARGE)
    ]
    assert len(of_large) >= 8
    read_whole = {
        statement: steps for statement, values in of_large if (steps := scans(engine, statement, values))
    }
    assert not read_whole
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM ledger_booking")).scalar_one() == 1
