"""What GPU-hours cost: covered time only, by activity, unknown apart, unpriced is not free."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.activity import Activity
from core.evidence import Price, Site
from core.hours import GpuHour
from core.samples import EnergyMethod
from ledger.cost import HourCost, add, add_usd, cost_usd, price_hours, total

HOUR_MS = 3_600_000
PRICE = Price(Decimal("3.60"), "your price of 2026-09-01", "on_demand", 1, "2026-09-01", from_user=True)
SITE = Site(
    tariff_usd_per_kwh=0.12,
    pue=1.3,
    host_share_ratio=0.0,
    carbon_g_per_kwh=383.5,
    pays_for_power=False,
    billing="on_demand",
)


def _hour(seconds: Mapping[Activity, float], covered_s: float | None = None, **more: object) -> GpuHour:
    covered = sum(seconds.values()) if covered_s is None else covered_s
    hour = GpuHour(
        gpu_uuid="GPU-1",
        hour_ms=0,
        covered_s=covered,
        seconds=seconds,
        joules={},
        energy_j=None,
        energy_method=None,
        energy_covered_s=0.0,
        allocated_s=0.0,
        active_s=0.0,
        effective_s=0.0,
        effective_unknown_s=0.0,
    )
    return replace(hour, **more)


def _cost(hour: GpuHour, price: Price | None = PRICE, site: Site = SITE) -> HourCost:
    (line,) = price_hours([hour], lambda _gpu, _hour: price, site)
    return line


def test_an_hour_costs_its_covered_seconds_and_idle_is_empty_and_parked() -> None:
    line = _cost(
        _hour({Activity.MEMORY_BOUND: 1000, Activity.EMPTY: 500, Activity.PARKED: 300, Activity.UNKNOWN: 200})
    )
    assert line.cost_usd == Decimal("2.000000")
    assert line.idle_usd == Decimal("0.800000")
    assert line.unknown_usd == Decimal("0.200000")
    assert line.by_activity[Activity.MEMORY_BOUND] == Decimal("1.000000")


def test_time_without_samples_is_unknown_and_its_price_is_in_no_other_figure() -> None:
    line = _cost(_hour({Activity.BUSY: 900}))
    assert line.uncovered_s == 2700
    assert line.uncovered_usd == Decimal("2.700000")
    assert (line.cost_usd, line.idle_usd, line.unknown_usd) == (Decimal("0.900000"), 0, 0)


def test_covered_seconds_without_an_activity_are_unknown() -> None:
    line = _cost(_hour({Activity.BUSY: 900}, covered_s=1800))
    assert line.cost_usd == Decimal("1.800000")
    assert line.unknown_usd == Decimal("0.900000")


def test_an_unpriced_gpu_has_no_cost_but_energy_all_the_same() -> None:
    line = _cost(
        _hour({Activity.PARKED: 3600}, energy_j=3.6e6, energy_method=EnergyMethod.COUNTER), price=None
    )
    assert (line.cost_usd, line.idle_usd, line.unknown_usd, line.uncovered_usd) == (None, None, None, None)
    assert (line.priced_s, dict(line.by_activity)) == (0.0, {})
    assert line.energy_cost_usd == Decimal("0.156000")
    assert line.carbon_g == pytest.approx(1.3 * 383.5)


def test_energy_is_beside_the_cost_and_unknown_without_joules_tariff_or_factor() -> None:
    with_energy = _cost(_hour({Activity.BUSY: 3600}, energy_j=1.8e6))
    without = _cost(_hour({Activity.BUSY: 3600}))
    bare = _cost(
        _hour({Activity.BUSY: 3600}, energy_j=1.8e6),
        site=replace(SITE, tariff_usd_per_kwh=None, carbon_g_per_kwh=None),
    )
    assert with_energy.cost_usd == without.cost_usd == bare.cost_usd
    assert (without.energy_cost_usd, without.carbon_g) == (None, None)
    assert (bare.energy_cost_usd, bare.carbon_g) == (None, None)


def test_an_hour_without_samples_costs_nothing_that_is_known() -> None:
    line = _cost(_hour({}))
    assert (line.cost_usd, line.idle_usd) == (Decimal(0), Decimal(0))
    assert line.uncovered_usd == Decimal("3.600000")


def test_the_price_is_asked_for_each_gpu_and_hour() -> None:
    dear = replace(PRICE, usd_per_gpu_hour=Decimal("7.20"), basis="dear")
    hours = [
        _hour({Activity.BUSY: 3600}),
        _hour({Activity.BUSY: 3600}, hour_ms=HOUR_MS),
        _hour({Activity.BUSY: 3600}, gpu_uuid="GPU-2"),
    ]
    asked = {("GPU-1", 0): PRICE, ("GPU-1", HOUR_MS): dear}
    lines = price_hours(hours, lambda gpu, hour_ms: asked.get((gpu, hour_ms)), SITE)
    assert [line.cost_usd for line in lines] == [Decimal("3.60"), Decimal("7.20"), None]
    whole = total(lines)
    assert whole.cost_usd == Decimal("10.80")
    assert whole.priced_ratio == pytest.approx(2 / 3)
    assert whole.price_basis == "dear; your price of 2026-09-01"


def test_a_total_of_nothing_is_unknown() -> None:
    whole = total([])
    assert (whole.cost_usd, whole.idle_usd, whole.energy_cost_usd, whole.carbon_g) == (None, None, None, None)
    assert (whole.priced_ratio, whole.price_basis) == (None, None)
    assert add([None, 1.0, None, 2.0]) == 3.0
    assert add([None]) is None
    assert add_usd([None, Decimal(1)]) == 1


SECONDS = st.dictionaries(st.sampled_from(list(Activity)), st.floats(0, 400, allow_nan=False), max_size=9)
RATES = st.decimals(min_value=0, max_value=50, places=6, allow_nan=False)


@given(st.lists(st.tuples(SECONDS, RATES), max_size=6))
def test_parts_add_up_to_the_whole_to_the_micro_dollar(
    hours: list[tuple[dict[Activity, float], Decimal]],
) -> None:
    lines = [_cost(_hour(seconds), replace(PRICE, usd_per_gpu_hour=rate)) for seconds, rate in hours]
    for line in lines:
        assert line.cost_usd is not None
        assert sum(line.by_activity.values()) == line.cost_usd
    whole = total(lines)
    expected = sum((line.cost_usd or Decimal(0) for line in lines), Decimal(0))
    assert (whole.cost_usd or Decimal(0)) == expected == sum(whole.by_activity.values())
    if whole.cost_usd is not None and whole.idle_usd is not None and whole.unknown_usd is not None:
        work = sum(
            amount
            for activity, amount in whole.by_activity.items()
            if activity not in {Activity.EMPTY, Activity.PARKED, Activity.UNKNOWN}
        )
        assert whole.idle_usd + whole.unknown_usd + work == whole.cost_usd


@given(st.lists(SECONDS, min_size=1, max_size=8), st.integers(0, 8))
def test_splitting_a_window_changes_nothing(hours: list[dict[Activity, float]], cut: int) -> None:
    lines = [_cost(_hour(seconds)) for seconds in hours]
    parts = [total(lines[:cut]), total(lines[cut:])]
    assert add_usd(part.cost_usd for part in parts) == total(lines).cost_usd
    assert add_usd(part.idle_usd for part in parts) == total(lines).idle_usd


def test_a_cost_is_seconds_times_rate_in_whole_micro_dollars() -> None:
    assert cost_usd(3600, PRICE) == Decimal("3.60")
    assert cost_usd(1, PRICE) == Decimal("0.001")
    third = replace(PRICE, usd_per_gpu_hour=Decimal(1) / 3)
    assert cost_usd(3600, third) == Decimal("0.333333")
