"""The overview and the run of the rules over the small fleet, on both databases."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from fleet_for_tests import H100, HOUR, NOW, T0, A, B, C, fill, settings_for

from advisor.engine import AdviceRun
from api.resources import advise
from api.resources.overview import overview
from api.resources.scope import Scope, scope_of
from core.activity import Activity
from core.finding import (
    Advice,
    Effort,
    Finding,
    Grade,
    NotEvaluated,
    Range,
    Risk,
    Saving,
    Status,
    Subject,
    Totals,
)
from store.engine import make_engine, session_scope
from store.queries import meta, prices, recommendations

DAY = 86_400_000


def release(gpu_uuid: str, dollars: float) -> Finding:
    """A finding that would save that much a month by releasing one GPU."""
    return Finding(
        rule_id="parked-model",
        subject=Subject("gpu", gpu_uuid),
        cause="empty",
        title=f"Release {gpu_uuid}",
        because="Empty.",
        state="empty",
        confidence="Strong.",
        grade=Grade.A,
        effort=Effort.LOW,
        risk=Risk.LOW,
        saving=Saving(cash_usd_month=Range.around(dollars, 0.1)),
        evidence={"coverage_ratio": 1.0},
        actions=(),
        wrong_when="It is a spare.",
        gpu_uuids=(gpu_uuid,),
        stage="stop",
    )


@pytest.fixture
def two_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that always find two GPUs to release, and one they cannot judge."""

    class Found(AdviceRun):
        def advice(self) -> Advice:
            findings = (release(A, 400.0), release(B, 100.0))
            refused = NotEvaluated("parked-model", Subject("gpu", C), ("busy_ratio",), "Not read.")
            return Advice(findings, (refused,), Totals(Range(450.0, 500.0, 550.0), None, None, 2000.0))

    monkeypatch.setattr("advisor.site_run.AdviceRun", Found)


def test_spend_idle_and_the_rest_are_said_apart(filled_scope: Scope) -> None:
    view = overview(filled_scope)
    money = view.money
    assert (money.spend_usd, money.unseen_usd) == (Decimal(8), Decimal("0.666666"))
    assert money.idle_usd is not None
    assert money.idle_usd == (money.empty_usd or 0) + (money.parked_usd or 0)
    assert float(money.idle_usd) == pytest.approx(7 / 3, abs=2e-6)
    assert money.idle_ratio == pytest.approx(7 / 3 / 8, abs=1e-6)
    assert money.unseen_ratio == pytest.approx(2 / 3 / 8, abs=1e-6)
    assert (money.energy_usd, money.energy_in_spend) == (Decimal("0.112"), False)
    assert money.priced_ratio == pytest.approx(11 / 14)
    assert view.price_note == f"your price for {H100}; no price for Card Of Nobody"


def test_freshness_coverage_and_counts(filled_scope: Scope) -> None:
    view = overview(filled_scope)
    assert (view.freshness_s, view.host_count, view.gpu_count, view.has_data) == (5.0, 2, 3, True)
    assert view.coverage_ratio == pytest.approx(14 / 15)
    assert (view.simulated, view.totals, view.not_evaluated_count, view.open_count) == (False, None, None, 0)


def test_a_catalogue_price_names_its_card_and_says_once_that_it_has_aged(
    ready_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(ready_database, price_usd=None)
    with session_scope(make_engine(ready_database)) as session:
        fresh = overview(scope_of(session, settings_for(ready_database), NOW)).price_note
        monkeypatch.setattr("ledger.prices.is_stale_at", lambda _price, _at_ms: True)
        old = overview(scope_of(session, settings_for(ready_database), NOW)).price_note
    assert fresh.startswith("catalogue: median on-demand of H100-SXM5-80GB, ")
    assert "old" not in fresh
    assert old.count("days old") == 1


def test_energy_and_carbon_say_where_they_come_from(filled_scope: Scope) -> None:
    view = overview(filled_scope)
    assert view.energy_kwh == pytest.approx(2_688_000 / 3.6e6)
    assert view.site_kwh == pytest.approx(1.12)
    assert view.carbon_g == pytest.approx(448.0)
    assert view.carbon_note == "400 gCO2e/kWh: own, the site's own figure, location-based"


def test_a_day_holds_its_cost_and_time_by_activity(filled_scope: Scope) -> None:
    (day,) = overview(filled_scope).days
    assert (day.day, day.from_ms) == ("2026-10-05", T0)
    assert day.spend_usd == Decimal(8)
    assert {a: float(usd) for a, usd in day.cost_by_activity.items()} == pytest.approx(
        {
            Activity.MEMORY_BOUND: 1.0,
            Activity.PARKED: 1.0,
            Activity.EMPTY: 4 / 3,
            Activity.BUSY: 4.0,
            Activity.UNKNOWN: 2 / 3,
        },
        abs=2e-6,
    )
    assert day.cost_by_activity[Activity.UNKNOWN] == day.unseen_usd
    assert day.seconds_by_activity[Activity.BUSY] == 10_800.0
    assert Activity.UNKNOWN not in day.seconds_by_activity
    assert day.known_seconds_by_activity[Activity.UNKNOWN] == 1200.0
    assert (day.unseen_usd, day.unseen_s) == (Decimal("0.666666"), 1200.0)


def test_the_spend_is_that_of_the_funnels_first_step_and_of_the_days(filled_scope: Scope) -> None:
    view = overview(filled_scope)
    assert view.funnel[0].step == "total"
    assert view.money.spend_usd == view.funnel[0].cost_usd == Decimal(8)
    assert sum(day.spend_usd for day in view.days) == Decimal(8)
    paying = replace(filled_scope, settings=replace(filled_scope.settings, pays_for_power=True))
    apart = overview(paying)
    assert apart.funnel[0].cost_usd == Decimal(8), "the funnel is of GPU time"
    assert apart.money.spend_usd == Decimal("8.112")


def test_each_host_stands_with_its_last_day_the_one_with_most_idle_money_first(filled_scope: Scope) -> None:
    first, second = overview(filled_scope).hosts
    assert (first.host, first.gpus) == ("h1", 2)
    assert len(first.hours) == 24
    assert first.hours[:22] == ({},) * 22
    assert first.hours[23] == {Activity.EMPTY: 1, Activity.BUSY: 1}
    assert second.hours[22:] == ({Activity.BUSY: 1}, {})
    assert float(first.idle_usd or 0) == pytest.approx(7 / 3, abs=2e-6)
    assert (second.cost_usd, second.idle_usd) == (None, None)


def test_kinds_of_waste_never_overlap_and_idle_ones_are_the_idle_cost(filled_scope: Scope) -> None:
    view = overview(filled_scope)
    broken, empty, parked, inefficient = view.waste
    assert (empty.usd or 0) + (parked.usd or 0) == view.money.idle_usd
    assert (broken.gpu_h, broken.usd) == (0.0, Decimal(0))
    active, effective = view.funnel[2], view.funnel[3]
    assert inefficient.gpu_h == pytest.approx(
        (active.gpu_h or 0) - (effective.gpu_h or 0) - (effective.unknown_gpu_h - active.unknown_gpu_h)
    )


def test_change_is_stated_against_a_period_that_was_measured(filled_database: str) -> None:
    with session_scope(make_engine(filled_database)) as session:
        prices.add(
            session,
            scope_kind="gpu_uuid",
            scope_value=B,
            usd_per_gpu_hour=Decimal(3),
            billing="on_demand",
            valid_from_ms=T0 + HOUR,
        )
        settings = settings_for(filled_database)
        second = overview(scope_of(session, settings, NOW, "2026-10-05T01:00:00Z"))
        assert second.previous is not None
        assert second.previous.spend_usd == Decimal(4)
        assert second.previous.change_ratio == pytest.approx((2 + 3 - 4) / 4)
        assert overview(scope_of(session, settings, NOW)).previous is None


def test_an_empty_store_has_an_overview_without_figures(ready_database: str) -> None:
    with session_scope(make_engine(ready_database)) as session:
        view = overview(scope_of(session, settings_for(ready_database), NOW))
    assert (view.has_data, view.freshness_s, view.coverage_ratio, view.gpu_count) == (False, None, None, 0)
    assert (view.money.spend_usd, view.money.idle_usd, view.energy_kwh, view.carbon_g) == (
        None,
        None,
        None,
        None,
    )
    assert (view.recommendations, view.hosts, view.previous) == ((), (), None)
    assert all(day.spend_usd == 0 and day.unseen_usd is None for day in view.days)


def test_a_simulated_fleet_is_said(filled_scope: Scope) -> None:
    meta.set_simulated(filled_scope.session)
    assert overview(filled_scope).simulated is True


def test_the_best_recommendation_comes_first_and_stands_at_its_gpu(
    filled_scope: Scope, two_findings: None
) -> None:
    advise.run(filled_scope, record=True)
    view = overview(filled_scope)
    assert [item.finding.title for item in view.recommendations] == [f"Release {A}", f"Release {B}"]
    assert (view.open_count, view.not_evaluated_count) == (2, 1)
    assert view.totals is not None
    assert view.totals.cash_usd_month is not None
    assert view.totals.cash_usd_month.p50 == pytest.approx(500.0)
    assert (view.totals.capacity_gpu_h_month, view.totals.energy_kwh_month) == (None, None)
    first, second = (line.advice for line in view.hosts)
    assert first is not None
    assert first.finding.title == f"Release {A}"
    assert second is None


def test_a_dry_run_records_nothing(filled_scope: Scope, two_findings: None) -> None:
    view = advise.run(filled_scope, record=False)
    assert [row.id for row in view.recommendations] == [None, None]
    assert recommendations.listing(filled_scope.session) == []
    assert advise.last_run(filled_scope.session) is None


def test_the_last_run_is_kept_whole(filled_scope: Scope, two_findings: None) -> None:
    advise.run(filled_scope, record=True)
    last = advise.last_run(filled_scope.session)
    assert last is not None
    assert (last.at_ms, last.window) == (NOW, filled_scope.window)
    assert last.totals.cash_usd_month == Range(450.0, 500.0, 550.0)
    assert last.not_evaluated == (
        NotEvaluated("parked-model", Subject("gpu", C), ("busy_ratio",), "Not read."),
    )


@pytest.mark.parametrize("aside", [Status.SNOOZED, Status.DISMISSED])
def test_what_people_set_aside_leaves_the_totals_and_the_list(
    filled_scope: Scope, two_findings: None, aside: Status
) -> None:
    session = filled_scope.session
    first = advise.run(filled_scope, record=True).recommendations[0]
    assert first.id is not None
    later: dict[str, Any] = {"until_ms": NOW + DAY} if aside is Status.SNOOZED else {}
    recommendations.set_status(session, first.id, aside, NOW, note="a spare", **later)
    view = advise.run(filled_scope, record=True)
    assert [row.status for row in view.recommendations] == [aside, Status.OPEN]
    cash = view.totals.cash_usd_month
    assert cash is not None
    assert cash.p50 == Decimal("100.0")
    shown = overview(filled_scope)
    assert [item.finding.title for item in shown.recommendations] == [f"Release {B}"]
    assert shown.totals is not None
    assert shown.totals.cash_usd_month is not None
    assert shown.totals.cash_usd_month.p50 == pytest.approx(100.0)


def test_totals_never_exceed_the_spend_of_the_window(filled_scope: Scope) -> None:
    view = advise.run(filled_scope, record=False)
    spend = view.totals.spend_usd_month
    assert spend is not None
    assert view.totals.cash_usd_month is None or view.totals.cash_usd_month.p90 <= spend


def test_the_overview_says_the_sum_of_what_waits_now_not_of_the_last_run(
    filled_scope: Scope, two_findings: None
) -> None:
    session = filled_scope.session
    first = advise.run(filled_scope, record=True).recommendations[0]
    assert first.id is not None
    recommendations.set_status(session, first.id, Status.DISMISSED, NOW, note="a spare")
    shown = overview(filled_scope)
    assert shown.totals is not None
    assert shown.totals.cash_usd_month is not None
    assert shown.totals.cash_usd_month.p50 == 100.0
