"""Hours added up by the database: the same figures as hour by hour, cut where prices change."""

from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from math import fsum

import pytest
from fleet_for_tests import HOUR, NOW, T0, A, B, fill, sample, settings_for
from hypothesis import given
from hypothesis import strategies as st

from api.resources import costs
from api.resources.by import By
from api.resources.overview import overview
from api.resources.scope import Scope, scope_of
from core.activity import Activity
from core.evidence import Window
from core.units import DAY_MS, HOUR_MS
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import prices
from store.queries.hour_sums import Stretches, gpu_sums, workload_sums
from store.queries.hours import gpu_hours, usage_hours
from store.rollup import roll_up


@given(
    st.sampled_from([None, HOUR_MS, DAY_MS]),
    st.lists(st.integers(0, 100), max_size=4, unique=True).map(sorted),
    st.integers(0, 99 * HOUR_MS),
    st.integers(1, 50 * HOUR_MS),
)
def test_stretches_cover_a_window_without_overlap(
    step: int | None, hours: list[int], start: int, length: int
) -> None:
    stretches = Stretches(step, tuple(hour * HOUR_MS for hour in hours))
    window = Window(start, start + length)
    parts = stretches.split(window)
    assert (parts[0].from_ms, parts[-1].to_ms) == (window.from_ms, window.to_ms)
    assert all(a.to_ms == b.from_ms for a, b in pairwise(parts))
    starts = [stretches.start_of(part.from_ms) for part in parts]
    assert len(set(starts)) == len(starts)
    assert all(stretches.start_of(part.to_ms - 1) == at for part, at in zip(parts, starts, strict=True))


@pytest.mark.parametrize("step", [None, HOUR_MS, DAY_MS])
@pytest.mark.parametrize("cuts", [(), (T0 + HOUR,)])
def test_sums_are_those_of_the_hours(filled_scope: Scope, step: int | None, cuts: tuple[int, ...]) -> None:
    stretches = Stretches(step, cuts)
    session, window = filled_scope.session, filled_scope.window
    sums = gpu_sums(session, window, stretches)
    hours = gpu_hours(session, window)
    assert len({(row.gpu_uuid, row.from_ms) for row in sums}) == len(sums)
    for name in (
        "covered_s",
        "energy_covered_s",
        "allocated_s",
        "active_s",
        "effective_s",
        "effective_unknown_s",
    ):
        assert fsum(getattr(row, name) for row in sums) == pytest.approx(
            fsum(getattr(hour, name) for hour in hours)
        )
    assert fsum(row.energy_j or 0.0 for row in sums) == pytest.approx(
        fsum(hour.energy_j or 0.0 for hour in hours)
    )
    used = workload_sums(session, window, stretches)
    by_hour = [row for row in usage_hours(session, window) if row.workload is not None]
    assert fsum(row.active_s for row in used) == pytest.approx(fsum(row.active_s for row in by_hour))
    assert fsum(row.energy_j or 0.0 for row in used) == pytest.approx(
        fsum(row.energy_j or 0.0 for row in by_hour)
    )
    assert {row.workload for row in used} == {row.workload for row in by_hour}


def test_a_price_that_changes_within_the_window_prices_each_part_at_its_own(filled_database: str) -> None:
    with session_scope(make_engine(filled_database)) as session:
        prices.add(
            session,
            scope_kind="gpu_uuid",
            scope_value=B,
            usd_per_gpu_hour=Decimal(10),
            billing="on_demand",
            valid_from_ms=T0 + HOUR,
        )
        scope = scope_of(session, settings_for(filled_database), NOW)
        for by in By:
            rows = costs.rows(scope, by)
            assert sum(row.cost_usd or Decimal(0) for row in rows) == Decimal(4 + 2 + 10), by
        row = next(row for row in costs.rows(scope) if row.key == B)
        assert row.cost_usd == Decimal(12)
        assert row.price_basis is not None
        assert row.price_basis.count(";") == 1


@pytest.mark.parametrize("rate", ["0.000001", "0.333333", "1.80", "6.880003"])
def test_every_grouping_adds_up_to_the_micro_dollar_over_days_with_gaps(
    ready_database: str, rate: str
) -> None:
    fill(ready_database, price_usd=rate)
    odd_ms = 1_234_567
    with closing(open_connection(ready_database)) as connection:
        ingest = Ingest(connection)
        for at in range(-1, 12):
            late = sample(A, 0, Activity.PARKED if at % 3 else Activity.BUSY, 100.0, busy_ratio=0.0)
            start_ms = T0 + 3 * HOUR + at * (5 * HOUR + odd_ms)  # known from within an hour to within an hour
            ingest.gpu_samples([replace(late, ts_ms=start_ms, covered_ms=late.span_ms - 1_001)])
        ingest.commit()
    later = NOW + 4 * DAY_MS
    assert roll_up(make_engine(ready_database), now_ms=later).pending_left == 0
    with session_scope(make_engine(ready_database)) as session:
        scope = scope_of(session, settings_for(ready_database), later)
        found = {by: costs.rows(scope, by) for by in By}
        whole = sum(row.cost_usd or Decimal(0) for row in found[By.GPU])
        for by, rows in found.items():
            assert sum(row.cost_usd or Decimal(0) for row in rows) == whole, by
            for row in rows:
                parts = (row.idle_cost_usd or Decimal(0)) + (row.unseen_cost_usd or Decimal(0))
                assert parts <= (row.cost_usd or Decimal(0)), (by, row.key)
        view = overview(scope)
        assert view.money.spend_usd == view.funnel[0].cost_usd == whole
        assert sum(day.spend_usd for day in view.days) == whole


def test_a_price_that_starts_within_an_hour_counts_from_the_next(filled_database: str) -> None:
    with session_scope(make_engine(filled_database)) as session:
        prices.add(
            session,
            scope_kind="gpu_uuid",
            scope_value=B,
            usd_per_gpu_hour=Decimal(10),
            billing="on_demand",
            valid_from_ms=T0 + HOUR // 2,
        )
        scope = scope_of(session, settings_for(filled_database), NOW)
        assert {row.key: row.cost_usd for row in costs.rows(scope)}[B] == Decimal(12)
        assert {row.key: row.cost_usd for row in costs.rows(scope, By.HOUR)}[
            "2026-10-05T00:00:00Z"
        ] == Decimal(4)
