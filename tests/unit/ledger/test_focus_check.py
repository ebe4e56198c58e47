"""The check of a FOCUS file names every departure by line and column, and none where there is none."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from focus_for_tests import AMOUNTS, CHARGE, PRICE

from ledger.focus import Issuer, Row, rows_of
from ledger.focus_check import check
from ledger.focus_columns import COLUMNS, Need, names


def good() -> Row:
    (row,) = rows_of(CHARGE, Issuer())
    return row


def committed() -> Row:
    (row,) = rows_of(CHARGE._replace(price=replace(PRICE, billing="committed", commitment="cud-7")), Issuer())
    return row


def file(rows: Sequence[Row], header: Sequence[str] = names()) -> io.StringIO:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows([row[name] for name in header] for row in rows)
    out.seek(0)
    return out


def test_what_we_write_is_sound() -> None:
    energy = AMOUNTS._replace(billed_energy_usd=1_014_000)
    rows = [good(), committed(), *rows_of(CHARGE._replace(amounts=energy), Issuer())]
    assert list(check(file(rows))) == []


@pytest.mark.parametrize(
    ("changed", "column", "said"),
    [
        ({"BilledCost": "1,000.5"}, "BilledCost", "plain decimal"),
        ({"BilledCost": "1"}, "BilledCost", "plain decimal"),
        ({"BilledCost": "1e3"}, "BilledCost", "plain decimal"),
        ({"BilledCost": "+1.0"}, "BilledCost", "plain decimal"),
        ({"BilledCost": "$1.0"}, "BilledCost", "plain decimal"),
        ({"BilledCost": None}, "BilledCost", "is empty"),
        ({"InvoiceId": "N/A"}, "InvoiceId", "leave it empty"),
        ({"RegionId": "NULL"}, "RegionId", "leave it empty"),
        ({"ProviderName": " "}, "ProviderName", "spaces"),
        ({"BillingCurrency": "usd"}, "BillingCurrency", "ISO 4217"),
        ({"ChargePeriodStart": "2026-10-05 00:00:00"}, "ChargePeriodStart", "2026-10-05T00:00:00Z"),
        ({"ChargePeriodStart": "2026-13-05T00:00:00Z"}, "ChargePeriodStart", "2026-10-05T00:00:00Z"),
        ({"ChargePeriodEnd": "2026-10-05T00:00:00Z"}, "ChargePeriodEnd", "not after"),
        ({"ChargePeriodEnd": "2026-11-01T01:00:00Z"}, "ChargePeriodStart", "not within"),
        ({"BillingPeriodEnd": "2026-10-31T00:00:00Z"}, "BillingPeriodEnd", "no calendar month"),
        ({"ChargeCategory": "usage"}, "ChargeCategory", "is allowed"),
        ({"ChargeClass": "Fix"}, "ChargeClass", "is allowed"),
        ({"PricingCategory": "Spot"}, "PricingCategory", "is allowed"),
        ({"ServiceSubcategory": "Containers"}, "ServiceSubcategory", "none of"),
        ({"ResourceType": None}, "ResourceType", "is empty, but ResourceId is not"),
        ({"ResourceName": "GPU-1"}, "ResourceName", "repeats"),
        ({"RegionName": None}, "RegionName", "is empty, but RegionId is not"),
        ({"SubAccountId": None}, "SubAccountId", "is empty, but SubAccountName is not"),
        ({"SkuPriceId": None}, "SkuPriceId", "must not be empty on Usage"),
        ({"ListUnitPrice": None}, "ListUnitPrice", "must not be empty on Usage"),
        ({"ConsumedQuantity": None, "ConsumedUnit": None}, "ConsumedQuantity", "must not be empty on usage"),
        ({"ListCost": "33.650000002"}, "ListCost", "ListUnitPrice × PricingQuantity"),
        ({"ContractedCost": "27.0"}, "ContractedCost", "ContractedUnitPrice × PricingQuantity"),
        ({"PricingCurrencyEffectiveCost": "1.0"}, "PricingCurrencyEffectiveCost", "same currency"),
        ({"Tags": '{"a":{"b":1}}'}, "Tags", "plain values"),
        ({"Tags": '{"a":1,"a":2}'}, "Tags", "plain values"),
        ({"Tags": "[1]"}, "Tags", "plain values"),
        ({"Tags": '{"a":NaN}'}, "Tags", "plain values"),
        ({"SkuPriceDetails": '{"Watts":1}'}, "SkuPriceDetails", "no property of FOCUS"),
        ({"ChargeCategory": "Purchase"}, "ChargeFrequency", "Usage-Based"),
        ({"ChargeCategory": "Tax"}, "SkuId", "must be empty on tax"),
        ({"CommitmentDiscountStatus": "Used"}, "CommitmentDiscountStatus", "CommitmentDiscountId is not"),
    ],
)
def test_a_departure_is_named(changed: dict[str, str | None], column: str, said: str) -> None:
    found = list(check(file([good(), good() | changed])))
    assert {problem.line for problem in found} == {3}
    assert any(problem.column == column and said in problem.what for problem in found), found


@pytest.mark.parametrize(
    ("changed", "column", "said"),
    [
        ({"CommitmentDiscountStatus": None}, "CommitmentDiscountStatus", "Used or Unused"),
        ({"PricingCategory": "Standard"}, "PricingCategory", "Committed"),
        ({"CommitmentDiscountStatus": "Unused"}, "ConsumedQuantity", "must be empty"),
        ({"CommitmentDiscountCategory": None}, "CommitmentDiscountCategory", "is empty"),
        ({"CommitmentDiscountQuantity": None}, "CommitmentDiscountQuantity", "is empty"),
        ({"ChargeCategory": "Purchase"}, "EffectiveCost", "must be 0.0"),
    ],
)
def test_departures_of_commitments_are_named(changed: dict[str, str | None], column: str, said: str) -> None:
    found = list(check(file([committed() | changed])))
    assert any(problem.column == column and said in problem.what for problem in found), found


@pytest.mark.parametrize("name", [c.name for c in COLUMNS["1.2"] if c.need is Need.MANDATORY])
def test_a_column_that_every_file_has_is_missed(name: str) -> None:
    header = [one for one in names() if one != name]
    found = list(check(file([good()], header)))
    assert (found[0].line, found[0].column) == (1, name)


def test_columns_that_are_none_of_ours_or_stand_in_the_wrong_place_are_named() -> None:
    row = good() | {"Colour": "red", "AvailabilityZone": "a"}
    found = [str(problem) for problem in check(file([row], [*names(), "Colour", "AvailabilityZone"]))]
    assert found[0].startswith("line 1, Colour: is no column")
    assert any("AvailabilityZone: stands behind" in one for one in found)
    assert not any("AvailabilityZone: is no column" in one for one in found)


def test_a_row_of_another_length_and_a_file_that_is_none_are_said() -> None:
    (problem,) = check([",".join(names()), "a,b"])
    assert (problem.line, problem.column) == (2, "row")
    assert len(list(check([]))) == 21
