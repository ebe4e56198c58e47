"""A line of the ledger in FOCUS: costs, quantities, what is told of it, and what is not invented."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from focus_for_tests import AMOUNTS, CHARGE, DAY_MS, PLACE, PRICE, RESOURCE
from hypothesis import given
from hypothesis import strategies as st

from core.units import HOUR_MS
from core.user_price import UserPrice
from ledger.focus import Charge, Issuer, Resource, Row, over_slices, rows_of
from ledger.focus_check_rows import row_problems
from ledger.focus_columns import COLUMNS, Kind, Need, names
from ledger.focus_commitments import (
    Commitment,
    Seen,
    in_force,
    invoiced,
    purchase_row,
    unused_row,
)
from ledger.focus_numbers import Quantity, money, plain

ISSUER = Issuer("site-1", "Acme")
COMMITTED = replace(PRICE, billing="committed", commitment="cud-7")
YEAR_H = 8_760


def rows(charge: Charge) -> list[Row]:
    return list(rows_of(charge, ISSUER))


def problems(row: Row) -> list[tuple[str, str]]:
    return list(row_problems({name: value or "" for name, value in row.items()}))


def amount(row: Row, name: str) -> Decimal:
    return Decimal(row[name] or "")


def commitment(**changed: object) -> UserPrice:
    values: dict[str, object] = {
        "id": 7,
        "scope_kind": "all",
        "scope_value": "",
        "amount_per_gpu_hour": Decimal("0.50"),
        "billing": "committed",
        "gpus_per_unit": 8,
        "valid_from_ms": DAY_MS,
        "valid_to_ms": DAY_MS + YEAR_H * HOUR_MS,
        "commitment": "cud-7",
        "committed_gpus": 16,
        "upfront": Decimal(140_160),
    }
    return UserPrice(**(values | changed))  # type: ignore[arg-type]


def test_a_line_is_one_row_with_every_column_in_order() -> None:
    (row,) = rows(CHARGE)
    assert tuple(row) == names()
    assert problems(row) == []
    told = {name: value for name, value in row.items() if not name.startswith("x_")}
    assert told["BilledCost"] == told["EffectiveCost"] == told["ContractedCost"] == "26.9"
    assert (told["ListCost"], told["ListUnitPrice"], told["ContractedUnitPrice"]) == (
        "33.65",
        "3.365",
        "2.69",
    )
    assert (told["PricingQuantity"], told["ConsumedQuantity"]) == ("10.0", "8.0")
    assert told["PricingUnit"] == told["ConsumedUnit"] == "GPU-Hours"
    assert (told["BillingPeriodStart"], told["BillingPeriodEnd"]) == (
        "2026-10-01T00:00:00Z",
        "2026-11-01T00:00:00Z",
    )
    assert (told["ChargePeriodStart"], told["ChargePeriodEnd"]) == (
        "2026-10-05T00:00:00Z",
        "2026-10-06T00:00:00Z",
    )
    assert (told["SubAccountId"], told["RegionName"], told["ProviderName"]) == (
        "research / llm",
        "Frankfurt",
        "Acme",
    )
    assert json.loads(told["Tags"] or "") == {
        "blue": True,
        "cost_centre": "cc-12",
        "job": "train-0",
        "namespace": "ml",
        "pool": "train",
        "project": "llm",
        "team": "research",
        "user": "ann",
    }
    assert json.loads(told["SkuPriceDetails"] or "")["InstanceType"] == "p5.48xlarge"
    assert (row["x_EnergyKwh"], row["x_SiteEnergyKwh"], row["x_CarbonGramsCo2e"]) == ("5.0", "8.45", "2535.0")


def test_december_is_billed_until_january() -> None:
    at_ms = 1_798_675_200_000  # 2026-12-31
    (row,) = rows(CHARGE._replace(from_ms=at_ms, to_ms=at_ms + 24 * HOUR_MS))
    assert (row["BillingPeriodStart"], row["BillingPeriodEnd"]) == (
        "2026-12-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
    )
    assert problems(row) == []


def test_a_line_without_a_price_has_no_row_instead_of_one_of_nothing() -> None:
    bare = AMOUNTS._replace(cost_usd=None, idle_cost_usd=None)
    assert rows(CHARGE._replace(price=None, amounts=bare)) == []


def test_energy_that_is_billed_apart_is_a_row_of_its_own_and_measured_once() -> None:
    gpu, power = rows(CHARGE._replace(amounts=AMOUNTS._replace(billed_energy_usd=1_014_000)))
    assert (gpu["BilledCost"], power["BilledCost"]) == ("26.9", "1.014")
    assert (power["PricingQuantity"], power["PricingUnit"], power["ListUnitPrice"]) == ("8.45", "kWh", "0.12")
    assert power["ServiceName"] == "Electricity"
    assert (gpu["x_EnergyKwh"], power["x_EnergyKwh"]) == ("5.0", None)
    assert problems(power) == []


def test_energy_of_an_unpriced_gpu_is_billed_all_the_same() -> None:
    bare = AMOUNTS._replace(cost_usd=None, idle_cost_usd=None, billed_energy_usd=1_014_000)
    (power,) = rows(CHARGE._replace(price=None, amounts=bare))
    assert (power["BilledCost"], power["x_EnergyKwh"]) == ("1.014", "5.0")


def test_energy_at_prices_by_the_hour_has_their_mean() -> None:
    place = replace(PLACE, usd_per_kwh=None, is_time_of_use=True)
    charge = CHARGE._replace(place=place, amounts=AMOUNTS._replace(billed_energy_usd=1_234_567))
    power = rows(charge)[1]
    assert amount(power, "ListUnitPrice") == pytest.approx(Decimal(1_234_567) / 8_450_000)
    assert problems(power) == []


@pytest.mark.parametrize(
    ("kind", "said"),
    [("idle", "idle"), ("gap", "unknown"), ("unattributed", "unattributed"), ("workload", "allocated")],
)
def test_a_row_says_who_held_the_gpu(kind: str, said: str) -> None:
    held = CHARGE.workload if kind == "workload" else None
    (row,) = rows(CHARGE._replace(kind=kind, workload=held, owner=None))
    assert (row["x_AllocationType"], row["SubAccountId"], row["SubAccountName"]) == (said, None, None)
    assert problems(row) == []


@pytest.mark.parametrize(
    ("billing", "category"), [("on_demand", "Standard"), ("spot", "Dynamic"), ("owned", "Other")]
)
def test_billing_is_a_pricing_category(billing: str, category: str) -> None:
    (row,) = rows(CHARGE._replace(price=replace(PRICE, billing=billing)))
    assert row["PricingCategory"] == category
    assert problems(row) == []


def test_an_owned_gpu_has_one_rate_in_all_four_costs() -> None:
    (row,) = rows(CHARGE._replace(price=replace(PRICE, billing="owned")))
    assert {row[name] for name in ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")} == {"26.9"}


def test_hours_of_a_commitment_name_it_and_leave_its_discount_to_the_effective_cost() -> None:
    (row,) = rows(CHARGE._replace(price=COMMITTED))
    assert (row["PricingCategory"], row["CommitmentDiscountStatus"]) == ("Committed", "Used")
    assert (row["CommitmentDiscountId"], row["CommitmentDiscountQuantity"]) == ("cud-7", "10.0")
    assert (row["ContractedCost"], row["EffectiveCost"], row["BilledCost"]) == ("33.65", "26.9", "26.9")
    assert problems(row) == []


def test_hours_that_were_paid_upfront_are_not_asked_for_again() -> None:
    (row,) = rows(CHARGE._replace(price=COMMITTED, invoiced=0))
    assert (row["BilledCost"], row["EffectiveCost"]) == ("0.0", "26.9")


def test_a_correction_says_when_it_was_booked() -> None:
    less = AMOUNTS._replace(cost_usd=-2_690_000, known_ms=-HOUR_MS, active_ms=0)
    (row,) = rows(CHARGE._replace(amounts=less, correction=(3, DAY_MS)))
    assert (row["ChargeClass"], row["BilledCost"], row["PricingQuantity"]) == ("Correction", "-2.69", "-1.0")
    assert (row["x_CorrectionId"], row["x_CorrectionBookedAt"]) == ("3", "2026-10-05T00:00:00Z")
    assert problems(row) == []


def test_slices_are_resources_and_add_up_to_their_card() -> None:
    slices = [(Resource(f"MIG-{at}", card_id="GPU-1"), weight) for at, weight in enumerate((3, 2, 2))]
    parts = over_slices(CHARGE._replace(amounts=AMOUNTS._replace(cost_usd=26_900_001)), slices)
    assert [part.resource.resource_id for part in parts] == ["MIG-0", "MIG-1", "MIG-2"]
    assert sum(part.amounts.cost_usd or 0 for part in parts) == 26_900_001
    assert sum(part.amounts.known_ms for part in parts) == AMOUNTS.known_ms
    assert over_slices(CHARGE, slices[:1])[0].amounts == AMOUNTS
    negative = over_slices(CHARGE._replace(amounts=AMOUNTS._replace(cost_usd=-100)), slices)
    assert sum(part.amounts.cost_usd or 0 for part in negative) == -100


@given(
    price=st.integers(0, 10**15),
    hours=st.lists(st.integers(1, HOUR_MS), min_size=1, max_size=20),
    listed=st.integers(0, 10**8) | st.none(),
)
def test_what_is_written_multiplies_to_the_cost_and_adds_up_to_the_ledger(
    price: int, hours: list[int], listed: int | None
) -> None:
    cost = sum(round(Decimal(ms) * price / HOUR_MS) for ms in hours)
    charge = CHARGE._replace(
        price=replace(
            PRICE,
            usd_per_gpu_hour=Decimal(price).scaleb(-6),
            list_usd_per_gpu_hour=None if listed is None else Decimal(listed).scaleb(-6),
        ),
        amounts=AMOUNTS._replace(cost_usd=cost, known_ms=sum(hours)),
    )
    (row,) = rows(charge)
    assert problems(row) == []
    assert amount(row, "BilledCost") * 10**6 == amount(row, "EffectiveCost") * 10**6 == cost
    if price:
        # Rounding an hour to a micro-dollar moves it by half of one at most.
        moved = abs(amount(row, "PricingQuantity") * HOUR_MS - sum(hours))
        assert moved <= Decimal(len(hours)) * HOUR_MS / 2 / price + 1


@given(mj=st.integers(0, 10**15), micro=st.integers(0, 10**12))
def test_energy_multiplies_to_its_cost(mj: int, micro: int) -> None:
    place = replace(PLACE, usd_per_kwh=None, is_time_of_use=True)
    micro = micro if mj else 0
    charge = CHARGE._replace(
        place=place, amounts=AMOUNTS._replace(billed_energy_usd=micro, site_energy_mj=mj)
    )
    power = rows(charge)[1]
    assert [what for column, what in problems(power) if column.endswith("Cost")] == []


def test_numbers_are_plain_decimals_with_a_point() -> None:
    assert (money(0), money(1), money(-1_500_000), money(10**15)) == (
        "0.0",
        "0.000001",
        "-1.5",
        "1000000000.0",
    )
    assert plain(-5, 12) == "-0.000000000005"
    assert Quantity.of_cost(1, 3).text == "0.333333333333"
    assert Quantity.of_hours(0).price_for(5) is None


def test_used_and_unused_hours_and_the_upfront_add_up_over_the_term() -> None:
    price = commitment()
    of = Commitment(price, Decimal(1), Seen(RESOURCE, COMMITTED))
    bought = purchase_row(of, ISSUER)
    # 140,160 USD over 16 GPUs and 8,760 hours is one dollar a GPU-hour, and 0.50 comes on top.
    used = CHARGE._replace(
        price=replace(COMMITTED, usd_per_gpu_hour=Decimal("1.50")),
        invoiced=invoiced(price, Decimal(1)),
        amounts=AMOUNTS._replace(cost_usd=15_000_000 * YEAR_H, known_ms=10 * YEAR_H * HOUR_MS),
    )
    (used_row,) = rows(used)
    span = in_force(price, 0, 2**50)
    assert span == (DAY_MS, DAY_MS + YEAR_H * HOUR_MS)
    left = unused_row(of, (DAY_MS, DAY_MS + 24 * HOUR_MS), 10 * 24 * HOUR_MS, ISSUER)
    assert left is not None
    assert (left["PricingQuantity"], left["EffectiveCost"], left["BilledCost"]) == ("144.0", "216.0", "72.0")
    assert (bought["BilledCost"], bought["EffectiveCost"]) == ("140160.0", "0.0")
    assert amount(used_row, "BilledCost") == Decimal("0.50") * 10 * YEAR_H
    effective = amount(used_row, "EffectiveCost") + amount(left, "EffectiveCost") * YEAR_H / 24
    billed = amount(bought, "BilledCost") + amount(used_row, "BilledCost")
    assert effective == billed + amount(left, "BilledCost") * YEAR_H / 24
    for row in (bought, left, used_row):
        assert problems(row) == []
    assert (left["ConsumedQuantity"], left["x_AllocationType"]) == (None, "unused")


def test_a_commitment_that_was_all_used_leaves_nothing() -> None:
    of = Commitment(commitment(), Decimal(1))
    day = (DAY_MS, DAY_MS + 24 * HOUR_MS)
    assert unused_row(of, day, 16 * 24 * HOUR_MS, ISSUER) is None
    assert unused_row(of, day, 17 * 24 * HOUR_MS, ISSUER) is None


def test_a_commitment_holds_from_the_first_whole_hour_until_its_end() -> None:
    price = commitment(valid_from_ms=DAY_MS + 1, valid_to_ms=None, upfront=None)
    assert in_force(price, DAY_MS, DAY_MS + 2 * HOUR_MS) == (DAY_MS + HOUR_MS, DAY_MS + 2 * HOUR_MS)
    assert in_force(price, DAY_MS, DAY_MS + HOUR_MS) is None
    assert invoiced(price, Decimal(1)) is None


def test_columns_of_our_own_come_last_and_say_so() -> None:
    (columns,) = COLUMNS.values()
    custom = [column.name.startswith("x_") for column in columns]
    assert custom == sorted(custom)
    assert all((column.need is Need.CUSTOM) == column.name.startswith("x_") for column in columns)
    assert sum(column.need is Need.MANDATORY for column in columns) == 21
    assert {column.name for column in columns if column.kind is Kind.PAIRS} == {"SkuPriceDetails", "Tags"}
