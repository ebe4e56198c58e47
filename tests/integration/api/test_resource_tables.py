"""Every table over the small fleet, to the figure, on both databases. The arithmetic is in ``fleet_for_tests``."""

from dataclasses import replace
from decimal import Decimal
from math import fsum
from typing import Any

import pytest
from fleet_for_tests import ENGINE, H100, HOUR, MINUTE, NOW, T0, A, B, C, fill, settings_for
from sqlalchemy import text

from api.pages import gpu_money
from api.pages.view import Address, View
from api.resources import costs, energy, engines, funnel, gpus, hosts, usage
from api.resources.by import By
from api.resources.scope import Scope, default_window, scope_of
from core.activity import Activity
from core.clock import from_ms, iso
from core.errors import UsageError
from core.evidence import Window
from core.samples import EnergyMethod
from store.engine import make_engine, session_scope
from store.queries import fleet

PRICE = f"your price for {H100}"


def by_key(rows: list[Any]) -> dict[str | None, Any]:
    return {row.key: row for row in rows}


def test_gpus_show_newest_sample_coverage_and_price(filled_scope: Scope) -> None:
    first, second, third = gpus.rows(filled_scope)
    assert (first.gpu_uuid, first.host, first.index, first.model) == (A, "h1", 0, H100)
    assert (first.activity, first.power_w, first.busy_ratio) == (Activity.EMPTY, 70.0, 0.0)
    assert first.memory_total_bytes == 80 * (1 << 30)
    assert first.sm_active_ratio is None
    assert first.last_sample_at == from_ms(T0 + 2 * HOUR)
    assert first.coverage_ratio == pytest.approx(100 / 120)
    assert (first.price_usd_per_hour, first.price_basis) == (Decimal("2.00"), PRICE)
    assert (second.gpu_uuid, second.coverage_ratio) == (B, 1.0)
    assert (third.gpu_uuid, third.power_w, third.price_usd_per_hour, third.gpu_key) == (C, None, None, None)


def test_usage_tells_work_from_holding_from_gaps(filled_scope: Scope) -> None:
    rows = by_key(usage.rows(filled_scope))
    a = rows[A]
    assert (a.total_gpu_h, a.allocated_gpu_h, a.active_gpu_h, a.effective_gpu_h) == (2.0, 1.0, 0.5, 0.5)
    assert a.unknown_gpu_h == pytest.approx(1 / 3)
    assert a.seconds_by_activity == {
        "memory_bound": 1800.0,
        "parked": 1800.0,
        "empty": 2400.0,
        "unknown": 1200.0,
    }
    assert fsum(a.seconds_by_activity.values()) == a.total_gpu_h * 3600


def test_effective_is_unknown_where_nothing_can_tell(filled_scope: Scope) -> None:
    b = by_key(usage.rows(filled_scope))[B]
    assert (b.active_gpu_h, b.effective_gpu_h, b.effective_unknown_gpu_h) == (2.0, None, 2.0)


def test_energy_names_method_and_coverage(filled_scope: Scope) -> None:
    rows = by_key(energy.rows(filled_scope))
    assert (rows[A].energy_j, rows[A].mean_power_w, rows[A].method) == (
        1_248_000.0,
        208.0,
        EnergyMethod.COUNTER,
    )
    assert rows[A].energy_kwh == pytest.approx(1_248_000 / 3.6e6)
    assert rows[A].coverage_ratio == pytest.approx(100 / 120)
    assert (rows[B].energy_j, rows[B].method) == (1_440_000.0, EnergyMethod.INTEGRATED)
    assert (rows[C].energy_j, rows[C].mean_power_w, rows[C].method, rows[C].coverage_ratio) == (
        None,
        None,
        None,
        0.0,
    )
    assert by_key(energy.rows(filled_scope, By.HOST))["h1"].method is EnergyMethod.MIXED


def test_energy_by_activity_is_what_each_activity_drew(filled_scope: Scope) -> None:
    rows = by_key(energy.rows(filled_scope, By.ACTIVITY))
    assert {key: row.energy_j for key, row in rows.items()} == {
        "memory_bound": 900_000.0,
        "parked": 180_000.0,
        "empty": 168_000.0,
        "busy": 1_440_000.0,
        "unknown": None,
    }
    assert rows["parked"].mean_power_w == 100.0
    assert rows["busy"].mean_power_w == 200.0


def test_costs_charge_the_clock_and_say_the_gap_and_the_idle_part(filled_scope: Scope) -> None:
    rows = by_key(costs.rows(filled_scope))
    a = rows[A]
    assert (a.cost_usd, a.unseen_cost_usd) == (Decimal(4), Decimal("0.666666"))
    assert float(a.idle_cost_usd) == pytest.approx(7 / 3, abs=2e-6)
    assert (a.price_basis, a.priced_ratio, a.energy_in_cost) == (PRICE, 1.0, False)
    assert a.energy_cost_usd == Decimal("0.052")
    assert a.site_energy_kwh == pytest.approx(0.52)
    assert a.carbon_g == pytest.approx(208.0)
    assert (a.carbon_code, a.carbon_year) == ("own", None)
    assert (rows[B].cost_usd, rows[B].idle_cost_usd) == (Decimal(4), Decimal(0))


def test_costs_say_how_much_of_the_clock_was_seen(filled_scope: Scope) -> None:
    rows = by_key(costs.rows(filled_scope))
    assert (rows[A].coverage_ratio, rows[B].coverage_ratio) == (pytest.approx(100 / 120), 1.0)


def test_a_gap_is_paid_for_and_is_neither_idle_nor_free(filled_scope: Scope) -> None:
    rows = by_key(costs.rows(filled_scope, By.ACTIVITY))
    gap = rows["unknown"]
    assert (gap.cost_usd, gap.unseen_cost_usd, gap.gpu_h) == (Decimal("0.666666"), Decimal("0.666666"), 0.0)
    assert not gap.idle_cost_usd
    assert sum(row.idle_cost_usd or Decimal(0) for row in rows.values()) == sum(
        rows[key].cost_usd for key in ("empty", "parked")
    )
    hour = by_key(costs.rows(filled_scope, By.HOUR))["2026-10-05T01:00:00Z"]
    # 40 min of GPU-a empty, 20 min of it unseen, one hour of GPU-b: three thirds of $2 and $2.
    assert (hour.cost_usd, hour.unseen_cost_usd, hour.idle_cost_usd) == (
        Decimal(4),
        Decimal("0.666666"),
        Decimal("1.333334"),
    )


@pytest.mark.parametrize("minutes", [(0, 120), (60, 120), (20, 50), (50, 95), (70, 110)])
def test_a_gpus_page_costs_what_the_table_says(filled_scope: Scope, minutes: tuple[int, int]) -> None:
    start, end = (T0 + minute * MINUTE for minute in minutes)
    table = by_key(
        costs.rows(scope_of(filled_scope.session, filled_scope.settings, NOW, str(iso(start)), str(iso(end))))
    )
    address = Address("/gpus", ())
    asked = View(replace(filled_scope, window=Window(start, end)), address)
    for gpu in fleet.gpus(filled_scope.session):
        uuid = gpu.identity.gpu_uuid
        money, row = gpu_money.money(asked, gpu, f"/gpus/{uuid}"), table.get(uuid)
        said = (money.cost_usd, money.idle_usd, money.unseen_usd)
        assert said == (
            (None,) * 3 if row is None else (row.cost_usd, row.idle_cost_usd, row.unseen_cost_usd)
        )
        assert money.widened is (minutes not in {(0, 120), (60, 120)})


def test_an_unpriced_gpu_has_no_cost(filled_scope: Scope) -> None:
    c = by_key(costs.rows(filled_scope))[C]
    assert (c.cost_usd, c.idle_cost_usd, c.unseen_cost_usd, c.price_basis, c.priced_ratio) == (
        None,
        None,
        None,
        None,
        0.0,
    )
    whole = by_key(costs.rows(filled_scope, By.DAY))["2026-10-05"]
    assert whole.cost_usd == Decimal(8)
    assert whole.priced_ratio == pytest.approx(11 / 14)


def test_without_a_tariff_energy_has_no_cost(filled_scope: Scope) -> None:
    scope = replace(filled_scope, settings=replace(filled_scope.settings, tariff_usd_per_kwh=None))
    row = by_key(costs.rows(scope))[A]
    assert row.energy_cost_usd is None
    assert row.cost_usd == Decimal(4)


def test_a_site_that_pays_for_power_sees_it_in_the_cost(filled_scope: Scope) -> None:
    scope = replace(filled_scope, settings=replace(filled_scope.settings, pays_for_power=True))
    row = by_key(costs.rows(scope))[A]
    assert (row.cost_usd, row.energy_in_cost) == (Decimal("4.052"), True)


def test_carbon_of_the_grid_table_says_code_year_and_method(filled_scope: Scope) -> None:
    given = replace(filled_scope.settings, carbon_g_per_kwh=None, grid_code="DEU")
    row = by_key(costs.rows(replace(filled_scope, settings=given)))[A]
    assert row.carbon_code == "DEU"
    assert row.carbon_year is not None
    assert row.carbon_method
    assert row.carbon_g is not None
    assert 0.52 * 100 < row.carbon_g < 0.52 * 800


@pytest.mark.parametrize("by", list(By))
def test_every_grouping_adds_up_to_the_same_fleet(filled_scope: Scope, by: By) -> None:
    used, drawn, paid = (table.rows(filled_scope, by) for table in (usage, energy, costs))
    assert fsum(row.total_gpu_h for row in used) == pytest.approx(5.0)
    assert fsum(row.active_gpu_h or 0.0 for row in used) == pytest.approx(3.5)
    assert fsum(row.unknown_gpu_h for row in used) == pytest.approx(1 / 3)
    assert fsum(row.energy_j or 0.0 for row in drawn) == pytest.approx(2_688_000.0)
    assert sum(row.cost_usd or Decimal(0) for row in paid) == Decimal(8)
    assert sum(row.unseen_cost_usd or Decimal(0) for row in paid) == Decimal("0.666666")
    assert float(sum(row.idle_cost_usd or Decimal(0) for row in paid)) == pytest.approx(2.333333, abs=2e-6)
    assert len({row.key for row in used}) == len(used)


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        (By.HOST, ["h1", "h2"]),
        (By.MODEL, ["Card Of Nobody", H100]),
        (By.OWNER, [None]),
        (By.USER, ["ann", None]),
        (By.NAMESPACE, [None]),
        (By.ENGINE, [ENGINE, None]),
        (By.HOUR, ["2026-10-05T00:00:00Z", "2026-10-05T01:00:00Z"]),
        (By.WEEK, ["2026-W41"]),
        (By.MONTH, ["2026-10"]),
        (By.ACTIVITY, ["busy", "empty", "memory_bound", "parked", "unknown"]),
    ],
)
def test_keys_are_in_text_order_and_what_cannot_be_said_is_last(
    filled_scope: Scope, by: By, keys: list[str]
) -> None:
    assert [row.key for row in usage.rows(filled_scope, by)] == keys


def test_a_workload_gets_its_own_time_energy_and_money(filled_scope: Scope) -> None:
    key = "process/h1/4242:1791158000000"
    assert by_key(usage.rows(filled_scope, By.WORKLOAD))[key].active_gpu_h == 2.0
    assert by_key(energy.rows(filled_scope, By.WORKLOAD))[key].energy_j == 1_440_000.0
    row = by_key(costs.rows(filled_scope, By.WORKLOAD))[key]
    assert (row.label, row.cost_usd) == ("train.py · process", Decimal(4))


def test_an_engine_is_measured_over_its_busy_time(filled_scope: Scope) -> None:
    (row,) = engines.rows(filled_scope)
    assert (row.engine, row.host, row.kind, row.gpu_uuids, row.join) == (
        ENGINE,
        "h1",
        "vllm",
        (A,),
        "process",
    )
    assert (row.running_mean, row.running_p95, row.waiting_mean) == (8.0, 8.0, 4.0)
    assert (row.tokens_generated, row.tokens_prompt, row.busy_s) == (54_000.0, 18_000.0, 1800.0)
    assert row.tokens_per_s == 30.0
    assert row.tokens_per_j == pytest.approx(54_000 / 900_000)
    assert row.usd_per_million_tokens is not None
    assert float(row.usd_per_million_tokens) == pytest.approx(1.0 / 0.054)
    assert row.itl_s == pytest.approx(0.2)
    assert row.price_basis == PRICE
    assert (row.mbu_ratio, row.mfu_ratio, row.half_batch) == (None, None, None)
    said = " ".join(row.data_quality)
    assert "limit on its batch is not published" in said
    assert "model architecture" in said


def test_hosts_sum_their_gpus(filled_scope: Scope) -> None:
    first, second = hosts.rows(filled_scope)
    assert (first.host, first.gpu_count, first.activities) == ("h1", 2, {"busy": 1, "empty": 1})
    assert (first.power_w, first.price_usd_per_hour) == (270.0, Decimal(4))
    assert first.cost_usd == Decimal(8)
    assert first.idle_cost_usd is not None
    assert float(first.idle_cost_usd) == pytest.approx(7 / 3, abs=2e-6)
    assert (second.host, second.power_w, second.cost_usd, second.price_usd_per_hour) == (
        "h2",
        None,
        None,
        None,
    )


def test_the_funnel_narrows_and_says_what_it_cannot_place(filled_scope: Scope) -> None:
    rows = funnel.rows(filled_scope)
    assert [(row.step, row.gpu_h, row.cost_usd) for row in rows] == [
        ("total", 5.0, Decimal(8)),
        ("allocated", 4.0, Decimal(6)),
        ("active", 3.5, Decimal(5)),
        ("effective", 0.5, Decimal(1)),
    ]
    assert [row.unknown_gpu_h for row in rows] == pytest.approx([0.0, 1 / 3, 1 / 3, 3 + 1 / 3])
    assert [row.ratio for row in rows] == pytest.approx([1.0, 0.8, 0.7, 0.1])


def test_a_window_of_one_hour_holds_that_hour(filled_database: str) -> None:
    with session_scope(make_engine(filled_database)) as session:
        scope = scope_of(
            session, settings_for(filled_database), NOW, "2026-10-05T00:10:00Z", "2026-10-05T00:20:00Z"
        )
        assert scope.window == Window(T0, T0 + HOUR)
        rows = by_key(costs.rows(scope))
    assert rows[A].cost_usd == Decimal(2)
    assert rows[A].unseen_cost_usd == Decimal(0)


def test_the_window_is_clipped_to_the_data_and_ages_count_back_from_its_end(filled_database: str) -> None:
    with session_scope(make_engine(filled_database)) as session:
        assert default_window(session, NOW) == Window(T0, T0 + 2 * HOUR)
        assert default_window(session, NOW, since="1h") == Window(T0 + HOUR, T0 + 2 * HOUR)
        assert default_window(session, NOW, since="2020-01-01") == Window(T0, T0 + 2 * HOUR)
        long_gone = default_window(session, NOW, since="2020-01-01", until="2020-01-02")
        assert long_gone is not None
        assert long_gone.hours == 24
        with pytest.raises(UsageError, match="not before"):
            default_window(session, NOW, since="2026-10-06", until="2026-10-05")
        empty = scope_of(session, settings_for(filled_database), NOW, "2020-01-01", "2020-01-02")
        assert (usage.rows(empty), costs.rows(empty), engines.rows(empty)) == ([], [], [])


def test_two_ages_both_count_back_from_now(filled_database: str) -> None:
    with session_scope(make_engine(filled_database)) as session:
        now = T0 + 50 * HOUR
        long_gone = default_window(session, now, since="2d", until="1d")
        assert long_gone == Window(T0 + 2 * HOUR, T0 + 26 * HOUR)


def test_an_empty_store_has_no_window_and_empty_tables(ready_database: str) -> None:
    with session_scope(make_engine(ready_database)) as session:
        assert default_window(session, NOW) is None
        scope = scope_of(session, settings_for(ready_database), NOW)
        assert [table.rows(scope) for table in (gpus, hosts, usage, energy, costs, engines)] == [[]] * 6
        assert [row.gpu_h for row in funnel.rows(scope)] == [None] * 4


def test_the_catalogue_prices_what_the_user_does_not(ready_database: str) -> None:
    fill(ready_database, price_usd=None)
    with session_scope(make_engine(ready_database)) as session:
        rows = by_key(costs.rows(scope_of(session, settings_for(ready_database), NOW)))
    assert rows[A].price_basis is not None
    assert "median on-demand of H100-SXM5-80GB, " in rows[A].price_basis
    assert rows[A].cost_usd is not None
    assert rows[A].cost_usd > 0
    assert rows[C].cost_usd is None


def test_an_engine_was_not_seen_later_than_its_newest_sample(filled_scope: Scope) -> None:
    with make_engine(filled_scope.settings.database_url).begin() as connection:
        connection.execute(text("UPDATE engine SET seen_until_ms = :ms"), {"ms": T0 + 50 * MINUTE})
    filled_scope.session.rollback()
    (row,) = engines.rows(filled_scope)
    assert row.last_seen_at == from_ms(T0 + 50 * MINUTE)
