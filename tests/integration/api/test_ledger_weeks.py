"""Weeks of the ledger that are added up say what their lines say, whatever is asked, and are forgotten with them."""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, delete, insert, select
from sqlalchemy.orm import Session

from core.clock import from_ms
from core.money import from_micro
from core.units import HOUR_MS
from ledger.calendar import Calendar
from store import ledger_totals, ledger_weeks
from store.engine import session_scope
from store.ledger_amounts import AMOUNTS
from store.models.gpu import GpuRow
from store.models.host import HostRow
from store.models.ledger_booking import LedgerBookingRow
from store.models.ledger_day import LedgerDayRow
from store.models.ledger_month import LedgerMonthRow
from store.models.ledger_place import LedgerPlaceRow
from store.models.ledger_rate import LedgerRateRow
from store.models.ledger_week import LedgerWeekRow
from store.models.meta import MetaRow
from store.models.owner import OwnerRow
from store.models.workload import WorkloadRow
from store.queries.ledger_sums import STRETCH, Only, line_sums

ZONE = "America/New_York"
CALENDAR = Calendar(ZONE)
DAYS = [day.start_ms for day in CALENDAR.days(1_792_130_400_000, 1_795_154_400_000)]
"""2026-10-15 (a Thursday) to 2026-11-20 (a Friday): the clocks went back on 1 November."""
WHOLE_WEEKS = 4
KEYS = ("gpu_id", "workload_id", "owner_id", "rate_id", "place_id", "kind", "is_correction")
SUMMED = ("known_ms", "cost_usd", "energy_mj", "parked_usd", "billed_energy_usd")


def lines() -> list[dict[str, Any]]:
    """Some four GPUs' lines of most days; amounts small and sometimes unknown."""
    chance = random.Random(7)
    found = []
    for day_ms in DAYS:
        for gpu_id in range(1, 5):
            for _ in range(chance.randrange(3)):
                row: dict[str, Any] = {
                    name: chance.randrange(1_000_000) if chance.random() < 0.9 else None for name in AMOUNTS
                }
                row = {name: value or 0 if name.endswith("_ms") else value for name, value in row.items()}
                row = {
                    name: from_micro(value) if name.endswith("_usd") and value is not None else value
                    for name, value in row.items()
                }
                kind = chance.choice(("workload", "idle", "gap", "unattributed"))
                found.append(
                    row
                    | {
                        "day_ms": day_ms,
                        "from_ms": day_ms,
                        "to_ms": day_ms + HOUR_MS,
                        "gpu_id": gpu_id,
                        "kind": kind,
                        "workload_id": chance.randrange(1, 4) if kind == "workload" else None,
                        "owner_id": chance.choice((None, 1, 2)),
                        "rate_id": chance.choice((None, 1, 2)),
                        "place_id": chance.randrange(1, 3),
                        "booking_id": chance.choice((None, None, 1)),
                        "share_method": "whole",
                        "memory_byte_s": None,
                        "energy_method": chance.choice((None, "counter", "integrated")),
                    }
                )
    return found


@pytest.fixture
def ledger(engine: Engine) -> Engine:
    """A ledger of five weeks whose days and whole weeks are added up."""
    with session_scope(engine) as session:
        session.add(MetaRow(key=ledger_weeks.ZONE_KEY, value=ZONE))
        session.add_all([HostRow(id=at, name=f"h{at}") for at in (1, 2)])
        session.add_all([OwnerRow(id=at, team=f"t{at}", project="", cost_centre="") for at in (1, 2)])
        session.add_all(
            [
                LedgerRateRow(
                    id=at,
                    digest=f"r{at}",
                    usd_per_gpu_hour=from_micro(at),
                    billing="on_demand",
                    basis="b",
                    as_of="",
                    from_user=True,
                    gpus_per_unit=1,
                )
                for at in (1, 2)
            ]
        )
        session.add_all(
            [
                LedgerPlaceRow(
                    id=at,
                    digest=f"p{at}",
                    site="s",
                    pue=1.0,
                    host_share_ratio=0.0,
                    host_share_method="setting",
                    pays_for_power=True,
                )
                for at in (1, 2)
            ]
        )
        session.add_all(
            [WorkloadRow(id=at, natural_key=f"w{at}", kind="pod", key="k", name="n") for at in (1, 2, 3)]
        )
        session.flush()
        session.add_all(
            [GpuRow(id=at, gpu_uuid=f"G{at}", host_id=1 + at % 2, model=f"m{at % 3}") for at in range(1, 5)]
        )
        session.add(
            LedgerMonthRow(
                month="2026-10", from_ms=0, to_ms=1, closed_at=from_ms(0), lines=0, cost_usd=from_micro(0)
            )
        )
        session.flush()
        session.add(LedgerBookingRow(id=1, month="2026-10", booked_at=from_ms(0), reason=""))
        session.flush()
        session.execute(insert(LedgerDayRow), lines())
    ledger_totals.add_up(engine)
    return engine


def by_hand(
    session: Session, keys: tuple[str, ...], span: tuple[int, int], without: set[tuple[int, int]], only: Only
) -> dict[Any, list[int | None]]:
    """The same question, line by line."""
    row = LedgerDayRow
    found: dict[Any, list[int | None]] = {}
    for line in session.execute(select(row).where(row.day_ms >= span[0], row.day_ms < span[1])).scalars():
        if (line.gpu_id, line.day_ms) in without:
            continue
        if only.gpu_ids is not None and line.gpu_id not in only.gpu_ids:
            continue
        if only.workload_ids is not None and line.workload_id not in only.workload_ids:
            continue
        told: dict[str, Any] = {name: getattr(line, name) for name in KEYS if name != "is_correction"}
        told["is_correction"] = int(line.booking_id is not None)
        values = [getattr(line, name) for name in SUMMED]
        add(found, tuple(told[name] for name in keys), [None if v is None else micro(v) for v in values])
    return found


def micro(value: Any) -> int:
    return value if isinstance(value, int) else int(value / from_micro(1))


def add(found: dict[Any, list[int | None]], key: Any, values: Iterable[int | None]) -> None:
    known = found.setdefault(key, [None] * len(SUMMED))
    found[key] = [
        other if one is None else one if other is None else one + other
        for one, other in zip(known, values, strict=True)
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.lists(st.sampled_from(KEYS), unique=True).map(tuple),
    first=st.integers(0, len(DAYS) - 1),
    length=st.integers(1, len(DAYS)),
    without=st.sets(st.tuples(st.integers(1, 4), st.sampled_from(DAYS)), max_size=3),
    gpu_ids=st.none() | st.frozensets(st.integers(1, 4)),
    workload_ids=st.none() | st.frozensets(st.integers(1, 3)),
)
def test_any_question_of_a_ledger_with_weeks_is_answered_as_by_its_lines(  # noqa: PLR0917
    ledger: Engine,
    keys: tuple[str, ...],
    first: int,
    length: int,
    without: set[tuple[int, int]],
    gpu_ids: frozenset[int] | None,
    workload_ids: frozenset[int] | None,
) -> None:
    span = (DAYS[first], [*DAYS, DAYS[-1] + 1][min(first + length, len(DAYS))])
    only = Only(gpu_ids=gpu_ids, workload_ids=workload_ids)
    with session_scope(ledger) as session:
        found: dict[Any, list[int | None]] = {}
        for row in line_sums(session, span, keys, SUMMED, without=without, only=only):
            if row[len(keys)] is not None:
                add(found, row[: len(keys)], row[len(keys) :])
        assert found == by_hand(session, keys, span, without, only)


@pytest.mark.parametrize("per", ["weeks", "months"])
def test_stretches_of_weeks_and_of_months_are_told_apart(ledger: Engine, per: str) -> None:
    span = (DAYS[0], DAYS[-1] + 1)
    starts = [max(one.start_ms, span[0]) for one in getattr(CALENDAR, per)(*span)]
    with session_scope(ledger) as session:
        found: dict[Any, list[int | None]] = {}
        for row in line_sums(session, span, (STRETCH, "gpu_of_host"), SUMMED, stretches=starts):
            add(found, row[0], row[2:])
        for start, end in zip(starts, [*starts[1:], span[1]], strict=True):
            assert found[start] == by_hand(session, (), (start, end), set(), Only())[()], start


def test_weeks_begin_on_the_mondays_of_the_zone_and_the_one_in_progress_has_no_sum(ledger: Engine) -> None:
    with ledger.connect() as connection:
        held = ledger_weeks.held(connection)
    weeks = CALENDAR.weeks(DAYS[0], DAYS[-1] + HOUR_MS)
    assert [start for start, _ in held] == [week.start_ms for week in weeks[:-1]]
    assert [end for _, end in held] == [week.start_ms for week in weeks[1:]]
    assert len(held) == WHOLE_WEEKS + 1  # the first is of four days: no line is before them


def test_a_week_is_forgotten_with_any_of_its_days_and_made_anew(ledger: Engine) -> None:
    with ledger.begin() as connection:
        day_ms = DAYS[10]
        connection.execute(delete(LedgerDayRow).where(LedgerDayRow.day_ms == day_ms))
        before = ledger_weeks.held(connection)
        ledger_totals.forget(connection, {day_ms})
        after = ledger_weeks.held(connection)
    (gone,) = set(before) - set(after)
    assert gone[0] <= day_ms < gone[1]
    ledger_totals.add_up(ledger)
    with session_scope(ledger) as session:
        assert ledger_weeks.held(session.connection()) == before
        weeks = session.execute(
            select(LedgerWeekRow.known_ms).where(LedgerWeekRow.day_ms == gone[0])
        ).scalars()
        lines = session.execute(
            select(LedgerDayRow.known_ms).where(LedgerDayRow.day_ms >= gone[0], LedgerDayRow.day_ms < gone[1])
        ).scalars()
        assert sum(weeks) == sum(lines)
    with ledger.begin() as connection:
        ledger_totals.forget(connection)
        assert not ledger_weeks.held(connection)
