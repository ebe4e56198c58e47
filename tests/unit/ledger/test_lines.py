"""A GPU's hour is priced once, and its lines add up to it."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hours_for_tests import PLACE, T0, hour, hours, price, use
from hypothesis import given
from hypothesis import strategies as st

from core.activity import Activity
from core.units import HOUR_MS
from ledger.line import ACTIVITIES, EMPTY, PARKED, UNKNOWN, Hour, Line, Terms, Use, terms_of
from ledger.lines import known_ms, lines_of_gap, lines_of_hour
from ledger.whole_shares import rounded_ratio

TERMS = terms_of(price("2.50"), PLACE)
UNPRICED = terms_of(None, PLACE)
KINDS = ("workload", "unattributed", "idle", "gap")
Case = tuple[Hour, list[Use], int, Terms]


def _total(lines: list[Line], name: str) -> int | None:
    known = [getattr(line, name) for line in lines if getattr(line, name) is not None]
    return sum(known) if known else None


@given(hours())
def test_lines_add_up_to_the_hour(case: Case) -> None:
    of, uses, known, terms = case
    lines = lines_of_hour(of, uses, known, terms)
    covered = round(of.covered_s * 1000)
    assert (_total(lines, "known_ms") or 0) == known
    assert (_total(lines, "covered_ms") or 0) == covered
    rate = terms.micro_usd_per_hour
    expected = None if rate is None or known == 0 else rounded_ratio(rate * known, HOUR_MS)
    assert _total(lines, "cost_usd") == expected
    assert (_total(lines, "effective_ms") or 0) == round(of.effective_s * 1000)
    assert (_total(lines, "effective_unknown_ms") or 0) == round(of.effective_unknown_s * 1000)
    if covered and of.energy_j is not None:
        assert _total(lines, "energy_mj") == round(of.energy_j * 1000)
        site = round(round(of.energy_j * 1000) * terms.site_factor)
        assert _total(lines, "site_energy_mj") == site
        tariff = terms.micro_usd_per_kwh
        assert _total(lines, "energy_usd") == (
            None if tariff is None else rounded_ratio(site * tariff, 3_600_000_000)
        )


@given(hours())
def test_activities_of_every_line_add_up_to_its_time_and_its_cost(case: Case) -> None:
    of, uses, known, terms = case
    lines = lines_of_hour(of, uses, known, terms)
    for line in lines:
        assert sum(ms for _, ms, _ in line.spent) == line.known_ms
        assert all(ms > 0 for _, ms, _ in line.spent)
        if line.cost_usd is not None:
            assert sum(micro or 0 for _, _, micro in line.spent) == line.cost_usd
        assert (line.cost_usd is None) == (terms.micro_usd_per_hour is None)
        assert (
            line.effective_ms + line.effective_unknown_ms
            <= line.active_ms
            <= line.allocated_ms
            <= line.known_ms
        )
    seen = [
        sum(ms for line in lines if line.kind != "gap" for at, ms, _ in line.spent if at == n)
        for n in range(9)
    ]
    assert seen == [round(getattr(of, f"{a.value}_s", 0.0) * 1000) for a in ACTIVITIES[:8]] + [
        round(of.covered_s * 1000) - sum(seen[:8])
    ]


@given(hours())
def test_only_who_held_the_hour_is_charged_for_it(case: Case) -> None:
    of, uses, known, terms = case
    lines = lines_of_hour(of, uses, known, terms)
    asked = {one.workload: round(one.allocated_s * 1000) for one in uses}
    got = {line.workload: line.known_ms for line in lines if line.kind == "workload"}
    assert got == {workload: ms for workload, ms in asked.items() if ms}


@given(hours())
def test_a_gap_is_neither_idle_nor_free(case: Case) -> None:
    of, uses, known, terms = case
    gaps = [line for line in lines_of_hour(of, uses, known, terms) if line.kind == "gap"]
    assert sum(line.known_ms for line in gaps) == known - round(of.covered_s * 1000)
    for line in gaps:
        assert (line.covered_ms, line.allocated_ms, line.idle_cost_usd, line.energy_mj) == (0, 0, None, None)
        assert line.spent == ((UNKNOWN, line.known_ms, line.cost_usd),)


@given(hours())
def test_idle_money_is_that_of_empty_and_parked_time(case: Case) -> None:
    of, uses, known, terms = case
    for line in lines_of_hour(of, uses, known, terms):
        if line.idle_cost_usd is None:
            assert line.cost_usd is None or {at for at, _, _ in line.spent} == {UNKNOWN}
            continue
        idle = sum(micro or 0 for at, _, micro in line.spent if at in {EMPTY, PARKED})
        assert line.idle_cost_usd == idle
        if line.kind == "idle":
            assert line.idle_cost_usd == line.cost_usd


@given(hours())
def test_without_a_price_nothing_has_a_cost(case: Case) -> None:
    of, uses, known, terms = case
    for line in lines_of_hour(of, uses, known, terms._replace(micro_usd_per_hour=None)):
        assert (line.cost_usd, line.idle_cost_usd) == (None, None)
        assert all(micro is None for _, _, micro in line.spent)


@given(hours())
def test_how_usage_was_shared_changes_no_total(case: Case) -> None:
    of, uses, known, terms = case
    shared = lines_of_hour(of, uses, known, terms)
    alone = lines_of_hour(of, [], known, terms)
    for name in (
        "known_ms",
        "covered_ms",
        "active_ms",
        "effective_ms",
        "energy_mj",
        "site_energy_mj",
        "cost_usd",
        "energy_usd",
        "carbon_ug",
    ):
        assert _total(shared, name) == _total(alone, name)


def test_a_holder_all_along_has_the_hour() -> None:
    of = hour(parked=600.0, memory_bound=3000.0, effective_s=3000.0, energy_j=1_500_000.0)
    (line,) = lines_of_hour(of, [use(7, 3600.0, 3000.0, memory_byte_s=2.0**50)], HOUR_MS, TERMS)
    assert (line.kind, line.workload, line.known_ms, line.active_ms) == ("workload", 7, HOUR_MS, 3_000_000)
    assert (line.cost_usd, line.idle_cost_usd) == (2_500_000, 416_666)
    assert line.spent == ((PARKED, 600_000, 416_666), (4, 3_000_000, 2_083_334))
    # 1.5 MJ × 1.3 × 1.3 = 0.704167 kWh
    assert (line.site_energy_mj, line.energy_usd, line.billed_energy_usd) == (2_535_000_000, 84_500, None)
    assert line.carbon_ug == round(2_535_000_000 / 3.6e9 * 383.5 * 1e6)
    assert line.memory_byte_s == 2.0**50


def test_what_nobody_held_is_idle_and_what_somebody_unknown_held_is_not() -> None:
    of = hour(empty=1800.0, busy=1200.0, unknown=600.0, energy_j=900_000.0, empty_j=126_000.0)
    held, idle = lines_of_hour(of, [], HOUR_MS, TERMS)
    assert (held.kind, held.known_ms, held.allocated_ms, held.energy_mj) == (
        "unattributed",
        1_800_000,
        1_200_000,
        774_000_000,
    )
    assert (idle.kind, idle.known_ms, idle.allocated_ms, idle.energy_mj) == (
        "idle",
        1_800_000,
        0,
        126_000_000,
    )
    assert (held.idle_cost_usd, idle.idle_cost_usd) == (0, 1_250_000)


def test_parked_time_is_charged_to_its_holder() -> None:
    of = hour(parked=1800.0, empty=1800.0)
    held, idle = lines_of_hour(of, [use(3, 1800.0, 0.0)], HOUR_MS, TERMS)
    assert (held.workload, held.cost_usd, held.idle_cost_usd) == (3, 1_250_000, 1_250_000)
    assert (idle.kind, idle.cost_usd) == ("idle", 1_250_000)


def test_effective_time_that_cannot_be_told_goes_to_whose_active_time_is_not_told() -> None:
    of = hour(memory_bound=1800.0, busy=1800.0, effective_s=1800.0, effective_unknown_s=1800.0)
    known = use(1, 1800.0, 1800.0, effective_s=1800.0)
    unknown = use(2, 1800.0, 1800.0)
    lines = lines_of_hour(of, [known, unknown], HOUR_MS, TERMS)
    assert [(line.effective_ms, line.effective_unknown_ms) for line in lines] == [
        (1_800_000, 0),
        (0, 1_800_000),
    ]


def test_power_is_billed_only_where_the_site_pays_for_it() -> None:
    of = hour(busy=3600.0, energy_j=1_000_000.0)
    (apart,) = lines_of_hour(of, [], HOUR_MS, terms_of(price("2.50"), replace(PLACE, pays_for_power=True)))
    (inside,) = lines_of_hour(of, [], HOUR_MS, TERMS)
    assert apart.billed_energy_usd == apart.energy_usd == inside.energy_usd
    assert inside.billed_energy_usd is None


def test_an_hour_without_samples_is_a_gap_that_costs() -> None:
    (line,) = lines_of_gap(HOUR_MS // 2, TERMS)
    assert (line.kind, line.cost_usd, line.covered_ms) == ("gap", 1_250_000, 0)
    assert lines_of_gap(0, TERMS) == []
    assert lines_of_hour(hour(), [], HOUR_MS // 2, TERMS) == [line]
    (unpriced,) = lines_of_gap(HOUR_MS, UNPRICED)
    assert unpriced.cost_usd is None


def test_an_hour_is_known_between_the_first_and_the_last_sample() -> None:
    assert known_ms(T0, T0 + 600_000, T0 + 10 * HOUR_MS) == 3_000_000
    assert known_ms(T0, T0 - HOUR_MS, T0 + 1) == 1
    assert known_ms(T0, T0 + HOUR_MS, T0 + 2 * HOUR_MS) == 0


@pytest.mark.parametrize(("usd", "ms", "micro"), [("0.000001", 1_800_000, 0), ("0.000003", 1_800_000, 2)])
def test_half_a_micro_dollar_is_rounded_to_even(usd: str, ms: int, micro: int) -> None:
    (line,) = lines_of_gap(ms, terms_of(price(usd), PLACE))
    assert line.cost_usd == micro
    assert terms_of(price(usd), PLACE).micro_usd_per_hour == int(Decimal(usd) * 1_000_000)


@st.composite
def sliced(draw: st.DrawFn) -> Case:
    """An hour of a card in MIG slices: holders by slice, and the rest that nobody is known to have held."""
    of, uses, known, terms = draw(hours())
    uses = [one._replace(share_method="mig_slice") for one in uses]
    left = round(of.covered_s * 1000) - sum(round(one.allocated_s * 1000) for one in uses)
    worked = sum(
        round(getattr(of, f"{a.value}_s") * 1000)
        for a in ACTIVITIES[:8]
        if a not in {Activity.EMPTY, Activity.PARKED}
    )
    worked -= sum(round(one.active_s * 1000) for one in uses)
    unknown = draw(st.integers(0, max(0, min(left, worked))))
    free = Use(None, left / 1000, unknown / 1000, 0.0, None, None, "mig_slice")
    return of, [*uses, free], known, terms


@given(sliced())
def test_what_nobody_had_of_a_card_in_slices_is_idle_on_its_own_line(case: Case) -> None:
    of, uses, known, terms = case
    lines = lines_of_hour(of, uses, known, terms)
    *held, free = uses
    covered = round(of.covered_s * 1000)
    rate = terms.micro_usd_per_hour
    assert (_total(lines, "known_ms") or 0) == known
    assert (_total(lines, "covered_ms") or 0) == covered
    assert _total(lines, "cost_usd") == (
        None if rate is None or not known else rounded_ratio(rate * known, HOUR_MS)
    )
    if covered and of.energy_j is not None:
        assert _total(lines, "energy_mj") == round(of.energy_j * 1000)
    by_kind = {kind: sum(line.known_ms for line in lines if line.kind == kind) for kind in KINDS}
    assert by_kind["workload"] == sum(round(one.allocated_s * 1000) for one in held)
    assert by_kind["unattributed"] == round(free.active_s * 1000)
    assert by_kind["idle"] == round(free.allocated_s * 1000) - round(free.active_s * 1000)
    for line in lines:
        if line.kind == "idle":
            assert line.spent == ((EMPTY, line.known_ms, line.cost_usd),)
            assert (line.allocated_ms, line.active_ms, line.idle_cost_usd) == (0, 0, line.cost_usd)
            assert line.share_method == "mig_slice"
        assert (
            line.effective_ms + line.effective_unknown_ms
            <= line.active_ms
            <= line.allocated_ms
            <= line.known_ms
        )
        if line.cost_usd is not None:
            assert sum(micro or 0 for _, _, micro in line.spent) == line.cost_usd


def test_an_unused_slice_of_a_busy_card_was_not_busy() -> None:
    of = hour(busy=3600.0, effective_s=3600.0, energy_j=700_000.0)
    three = use(1, 1542.857, 1542.857, effective_s=1542.857, energy_j=300_000.0, share_method="mig_slice")
    free = Use(None, 2057.143, 0.0, 0.0, None, 400_000.0, "mig_slice")
    held, idle = lines_of_hour(of, [three, free], HOUR_MS, TERMS)
    assert (held.kind, held.cost_usd, held.idle_cost_usd, held.effective_ms) == (
        "workload",
        1_071_428,
        0,
        1_542_857,
    )
    assert (idle.kind, idle.cost_usd, idle.idle_cost_usd) == ("idle", 1_428_572, 1_428_572)
    assert (held.energy_mj, idle.energy_mj) == (300_000_000, 400_000_000)


@given(hours(), st.floats(1.0, 3.0), st.integers(1, HOUR_MS))
def test_no_hour_is_longer_than_the_clock_says(case: Case, longer: float, known: int) -> None:
    of, uses, _, terms = case
    scaled = of._replace(
        **{
            name: round(value * longer, 3)
            for name, value in of._asdict().items()
            if name.endswith("_s") and name != "covered_s"
        }
    )
    scaled = scaled._replace(covered_s=round(of.covered_s * longer, 3))
    more = [
        one._replace(allocated_s=round(one.allocated_s * longer, 3), active_s=round(one.active_s * longer, 3))
        for one in uses
    ]
    lines = lines_of_hour(scaled, more, known, terms)
    assert _total(lines, "known_ms") == known
    rate = terms.micro_usd_per_hour
    assert _total(lines, "cost_usd") == (None if rate is None else rounded_ratio(rate * known, HOUR_MS))
    for line in lines:
        assert sum(ms for _, ms, _ in line.spent) == line.known_ms
        assert (
            line.effective_ms + line.effective_unknown_ms
            <= line.active_ms
            <= line.allocated_ms
            <= line.known_ms
        )
    if scaled.covered_s and scaled.energy_j is not None:
        assert _total(lines, "energy_mj") == round(scaled.energy_j * 1000)


def test_samples_over_the_end_of_the_hour_make_it_no_dearer() -> None:
    of = hour(busy=3648.0, energy_j=1000.0)
    (alone,) = lines_of_hour(of, [use(1, 3648.0, 3648.0)], HOUR_MS, TERMS)
    assert (alone.known_ms, alone.cost_usd, alone.energy_mj) == (HOUR_MS, 2_500_000, 1_000_000)
    both = lines_of_hour(of, [use(1, 1824.0, 1824.0), use(2, 1824.0, 1824.0)], HOUR_MS, TERMS)
    assert [(line.workload, line.known_ms) for line in both] == [(1, HOUR_MS // 2), (2, HOUR_MS // 2)]


def test_holders_that_claim_more_than_there_is_share_it() -> None:
    of = hour(busy=1800.0, parked=1800.0)
    both = lines_of_hour(of, [use(1, 3600.0, 1800.0), use(2, 3600.0, 1800.0)], HOUR_MS, TERMS)
    assert [(line.workload, line.known_ms, line.active_ms) for line in both] == [
        (1, HOUR_MS // 2, 900_000),
        (2, HOUR_MS // 2, 900_000),
    ]
