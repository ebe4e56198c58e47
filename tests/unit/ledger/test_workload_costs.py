"""A GPU-hour shared out: workloads pay for what they held, nobody's line keeps the rest, all of it adds up."""

from dataclasses import replace
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from core.activity import Activity
from core.evidence import Price, Site
from core.hours import UsageHour
from core.readings import WorkloadKey
from ledger.cost import HourCost
from ledger.share import split_usd
from ledger.workload_cost import share_hour

PRICE = Price(Decimal("3.60"), "b", "on_demand", 1, "2026-09-01", from_user=True)
SITE = Site(
    tariff_usd_per_kwh=0.10,
    pue=1.0,
    host_share_ratio=0.0,
    carbon_g_per_kwh=100.0,
    pays_for_power=False,
    billing="on_demand",
)


def _priced(seconds: dict[Activity, float], price: Price | None = PRICE) -> HourCost:
    covered = sum(seconds.values())
    cost = (
        None
        if price is None
        else (price.usd_per_gpu_hour * Decimal(str(covered)) / 3600).quantize(Decimal("0.000001"))
    )
    return HourCost(
        gpu_uuid="GPU-1",
        hour_ms=0,
        price=price,
        covered_s=covered,
        uncovered_s=3600 - covered,
        cost_usd=cost,
        by_activity={} if cost is None else split_usd(cost, seconds),
        uncovered_usd=None,
        seconds=seconds,
        energy_j=None,
        energy_cost_usd=None,
        carbon_g=None,
    )


def _use(name: str | None, allocated_s: float, active_s: float, energy_j: float | None = None) -> UsageHour:
    return UsageHour(
        workload=None if name is None else WorkloadKey("process", name, name),
        gpu_uuid="GPU-1",
        hour_ms=0,
        allocated_s=allocated_s,
        active_s=active_s,
        effective_s=0.0,
        memory_byte_s=0.0,
        energy_j=energy_j,
        share_method="whole",
    )


def test_a_workload_pays_for_what_it_held_and_nobody_for_the_rest() -> None:
    hour = _priced({Activity.BUSY: 1000, Activity.PARKED: 1000, Activity.EMPTY: 1600})
    train, nobody = share_hour(hour, [_use("train", 2000, 1000, energy_j=3.6e6)], SITE)
    assert (train.cost_usd, train.idle_usd) == (Decimal("2.0"), Decimal("1.0"))
    assert (train.energy_cost_usd, train.carbon_g) == (Decimal("0.10"), 100.0)
    assert nobody.workload is None
    assert (nobody.cost_usd, nobody.idle_usd, nobody.energy_cost_usd) == (
        Decimal("1.6"),
        Decimal("1.6"),
        None,
    )


def test_time_that_nobody_can_name_is_on_nobodys_line_and_not_idle() -> None:
    hour = _priced({Activity.UNKNOWN: 3600})
    (nobody,) = share_hour(hour, [], SITE)
    assert (nobody.workload, nobody.cost_usd, nobody.idle_usd) == (None, Decimal("3.6"), Decimal(0))


def test_a_gpu_held_for_the_whole_hour_has_no_line_of_nobody() -> None:
    hour = _priced({Activity.BUSY: 3600})
    lines = share_hour(hour, [_use("a", 1800, 1800), _use("b", 1800, 1800)], SITE)
    assert [line.cost_usd for line in lines] == [Decimal("1.8"), Decimal("1.8")]


def test_nobodys_energy_is_kept() -> None:
    hour = _priced({Activity.EMPTY: 3600})
    (nobody,) = share_hour(hour, [_use(None, 0, 0, energy_j=7.2e5)], SITE)
    assert nobody.energy_j == 7.2e5
    assert nobody.energy_cost_usd == Decimal("0.02")


def test_an_unpriced_hour_has_lines_without_cost() -> None:
    hour = _priced({Activity.BUSY: 3600}, price=None)
    (line,) = share_hour(hour, [_use("a", 3600, 3600)], SITE)
    assert (line.cost_usd, line.idle_usd) == (None, None)


def test_usage_of_other_gpus_and_hours_is_not_charged() -> None:
    hour = _priced({Activity.EMPTY: 3600})
    others = [replace(_use("a", 3600, 0), gpu_uuid="GPU-2"), replace(_use("b", 3600, 0), hour_ms=3_600_000)]
    (nobody,) = share_hour(hour, others, SITE)
    assert nobody.cost_usd == hour.cost_usd


@given(
    st.dictionaries(st.sampled_from(list(Activity)), st.floats(0.1, 400), min_size=1),
    st.lists(st.tuples(st.floats(0, 3600), st.floats(0, 1)), max_size=5),
)
def test_lines_add_up_to_the_hours_cost_and_idle_cost(
    seconds: dict[Activity, float], held: list[tuple[float, float]]
) -> None:
    hour = _priced(seconds)
    uses = [_use(str(i), allocated, allocated * share) for i, (allocated, share) in enumerate(held)]
    lines = share_hour(hour, uses, SITE)
    assert sum((line.cost_usd or Decimal(0) for line in lines), Decimal(0)) == hour.cost_usd
    assert sum((line.idle_usd or Decimal(0) for line in lines), Decimal(0)) == hour.idle_usd
