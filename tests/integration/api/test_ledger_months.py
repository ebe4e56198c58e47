"""A closed month stays as it was charged; what changes later is booked beside it."""

import json
from decimal import Decimal
from typing import Any

import pytest
from click.testing import CliRunner
from fleet_for_tests import HOUR, NOW, SPAN, T0, A, B, C, fill, sample
from ledger_for_tests import ingest, pending, price, settings, stored, sums, sums_on_the_fly
from sqlalchemy import Engine, text

from api.resources.ledger_days import materialise
from api.resources.ledger_months import MonthView, close, rows
from core.activity import Activity
from core.errors import GpuwiseError, UsageError
from core.samples import GpuSample
from core.units import DAY_MS
from gpuwise.commands.ledger import ledger
from store.engine import make_engine, session_scope
from store.queries import ledger_pending
from tests.integration.api.conftest import client_for

LATER = T0 + 40 * DAY_MS
"""In November."""
LINE = ("id", "booking_id", "gpu_id", "kind", "workload_id", "rate_id", "known_ms", "cost_usd", "energy_mj")


@pytest.fixture
def october(ready_database: str) -> Engine:
    """The small fleet's October, priced and closed."""
    fill(ready_database)
    engine = make_engine(ready_database)
    materialise(engine, settings(engine), LATER)
    with session_scope(engine) as session:
        view = close(session, settings(engine), LATER, "2026-10", by="fin", note="invoice 7")
    assert (view.cost_usd, view.lines, view.is_closed) == (Decimal(8), 5, True)
    return engine


def months(engine: Engine, **more: Any) -> list[MonthView]:
    """All months, in November."""
    with session_scope(engine) as session:
        return rows(session, settings(engine, **more), LATER)


def test_a_closed_month_keeps_its_lines_and_takes_corrections(october: Engine) -> None:
    of, original = settings(october), stored(october, *LINE)
    price(october, "4.00", A, T0)
    done = materialise(october, of, LATER)
    assert (done.lines, done.gpu_days > 0, done.corrections > 0) == (0, True, True)
    assert [row for row in stored(october, *LINE) if row[1] is None] == original
    assert sums(october) == sums_on_the_fly(october, of)
    (month,) = months(october)
    assert (month.cost_usd, month.correction_usd, month.corrections) == (
        Decimal(8),
        Decimal(4),
        done.corrections,
    )


def test_nothing_new_books_nothing(october: Engine) -> None:
    of = settings(october)
    price(october, "4.00", A, T0)
    materialise(october, of, LATER)
    booked = stored(october, *LINE)
    for _ in range(2):
        with session_scope(october) as session:
            ledger_pending.mark(session, 0, None)
        assert materialise(october, of, LATER).corrections == 0
    assert stored(october, *LINE) == booked
    with session_scope(october) as session:
        assert session.execute(text("SELECT count(*) FROM ledger_booking")).scalar_one() == 1


def test_what_is_taken_back_is_booked_with_the_other_sign(october: Engine) -> None:
    of = settings(october)
    before = sums(october)
    price(october, "4.00", A, T0)
    materialise(october, of, LATER)
    with session_scope(october) as session:
        session.execute(text("DELETE FROM price WHERE scope_kind = 'gpu_uuid'"))
        ledger_pending.mark(session, 0, None)
    materialise(october, of, LATER)
    assert sums(october) == before
    assert [month.correction_usd for month in months(october)] == [Decimal(0)]


def test_late_samples_of_a_closed_month_become_corrections(october: Engine) -> None:
    of = settings(october)
    late = [sample(A, slot, Activity.EMPTY, 70.0, busy_ratio=0.0) for slot in (8, 9)]
    new_gpu_day = GpuSample(C, T0 + DAY_MS, SPAN, SPAN, {"busy_ratio": 0.5}, None, Activity.BUSY)
    ingest(october, [*late, new_gpu_day], LATER)
    materialise(october, of, LATER)
    assert sums(october) == sums_on_the_fly(october, of)
    assert pending(october) == 0


def test_an_open_month_beside_a_closed_one_is_replaced(october: Engine) -> None:
    of = settings(october)
    november_ms = T0 + 30 * DAY_MS
    ingest(october, [GpuSample(B, november_ms, SPAN, SPAN, {"busy_ratio": 0.5}, None, Activity.BUSY)], LATER)
    materialise(october, of, LATER)
    assert sums(october) == sums_on_the_fly(october, of)
    assert [(month.month, month.is_closed, month.is_over) for month in months(october)] == [
        ("2026-10", True, True),
        ("2026-11", False, False),
    ]
    price(october, "3.00", B, november_ms)
    assert materialise(october, of, LATER).corrections == 0
    assert sums(october) == sums_on_the_fly(october, of)


@pytest.mark.parametrize(
    ("month", "now_ms", "sentence"),
    [
        ("2026-10", LATER, "was closed at"),
        ("2026-12", LATER, "is not over before 2027-01-01T00:00"),
        ("2026-09", LATER, "has no lines"),
        ("october", LATER, "is not a month such as 2026-10"),
    ],
)
def test_what_cannot_be_closed_is_refused(october: Engine, month: str, now_ms: int, sentence: str) -> None:
    with session_scope(october) as session, pytest.raises(GpuwiseError, match=sentence):
        close(session, settings(october), now_ms, month)


def test_a_month_closes_only_when_all_of_it_is_priced(ready_database: str) -> None:
    fill(ready_database)
    engine = make_engine(ready_database)
    of = settings(engine)
    with session_scope(engine) as session, pytest.raises(GpuwiseError, match="other settings"):
        close(session, of, LATER, "2026-10")
    materialise(engine, of, LATER)
    with session_scope(engine) as session:
        ledger_pending.mark(session, 0, None, [A])
    with session_scope(engine) as session, pytest.raises(GpuwiseError, match="1 GPU-days that wait"):
        close(session, of, LATER, "2026-10")
    with session_scope(engine) as session:
        session.execute(text("DELETE FROM ledger_pending"))
        session.execute(
            text("INSERT INTO rollup_pending (hour_ms, kind, entity_id, mark) VALUES (:at, 'gpu', 1, 1)"),
            {"at": T0 + HOUR},
        )
    with session_scope(engine) as session, pytest.raises(GpuwiseError, match="not rolled up"):
        close(session, of, LATER, "2026-10")
    with session_scope(engine) as session:
        assert session.execute(text("SELECT count(*) FROM ledger_month")).scalar_one() == 0


def test_closed_months_hold_the_time_zone(october: Engine) -> None:
    before = stored(october, *LINE)
    with pytest.raises(GpuwiseError, match="set it back to 'UTC'"):
        materialise(october, settings(october, accounting_time_zone="Asia/Kolkata"), LATER)
    assert stored(october, *LINE) == before


def test_months_over_the_web_and_from_the_command_line(ready_database: str) -> None:
    fill(ready_database)
    engine = make_engine(ready_database)
    runner = CliRunner()
    said = runner.invoke(ledger, ["rebuild", "--json", "--database-url", ready_database])
    assert json.loads(said.output)["gpu_days"] == 3
    # The web's clock stands in October: the month is not over.
    materialise(engine, settings(engine), NOW)
    web = client_for(ready_database)
    (month,) = web.get("/api/v1/ledger/months").json()["items"]
    assert (month["month"], month["cost_usd"], month["is_closed"]) == ("2026-10", "8.00", False)
    refused = web.post("/api/v1/ledger/months/2026-10/close", json={}, headers={"X-Gpuwise-Client": "test"})
    assert (refused.status_code, "is not over" in refused.json()["detail"]) == (400, True)
    with session_scope(engine) as session:
        close(session, settings(engine), LATER, "2026-10", by="fin")
    closed = json.loads(runner.invoke(ledger, ["months", "--json", "--database-url", ready_database]).output)
    assert [(row["month"], row["closed_by"], row["cost_usd"]) for row in closed] == [
        ("2026-10", "fin", "8.00")
    ]
    assert "2026-10  closed" in runner.invoke(ledger, ["months", "--database-url", ready_database]).output
    status = runner.invoke(ledger, ["status", "--json", "--database-url", ready_database])
    assert json.loads(status.output)["pending_gpu_days"] == 0


def test_a_month_is_written_with_its_year(october: Engine) -> None:
    with session_scope(october) as session, pytest.raises(UsageError, match="2026-10-01"):
        close(session, settings(october), LATER, "2026-10-01")
