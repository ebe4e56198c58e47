"""What the values of one FOCUS row owe to each other: empty together, in the same period, products of each other. Pure.

Sources: FOCUS 1.2, the nullability and consistency rules of each column.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final

from ledger.focus_pairs import flat_pairs
from ledger.focus_services import SERVICES

TOLERANCE: Final = Decimal("1e-9")
TOGETHER: Final = (
    ("ResourceId", "ResourceType"),
    ("RegionId", "RegionName"),
    ("SubAccountId", "SubAccountName"),
    ("PricingQuantity", "PricingUnit"),
    ("ConsumedQuantity", "ConsumedUnit"),
    ("CommitmentDiscountId", "CommitmentDiscountCategory"),
    ("CommitmentDiscountId", "CommitmentDiscountType"),
    ("CommitmentDiscountQuantity", "CommitmentDiscountUnit"),
)
"""Both or neither."""
ONLY_WITH: Final = (
    ("ResourceName", "ResourceId"),
    ("SubAccountType", "SubAccountId"),
    ("SkuMeter", "SkuId"),
    ("SkuPriceDetails", "SkuPriceId"),
    ("CommitmentDiscountName", "CommitmentDiscountId"),
    ("CommitmentDiscountStatus", "CommitmentDiscountId"),
    ("CommitmentDiscountQuantity", "CommitmentDiscountId"),
)
"""The first only where the second is."""
PRICED: Final = (
    "PricingQuantity",
    "ListUnitPrice",
    "ContractedUnitPrice",
    "PricingCategory",
    "SkuId",
    "SkuPriceId",
)
"""Not empty on usage and purchases; empty on tax."""
PRODUCTS: Final = (
    ("ListUnitPrice", "ListCost"),
    ("ContractedUnitPrice", "ContractedCost"),
)
DETAILS: Final = frozenset(
    {
        *("CoreCount", "DiskMaxIops", "DiskSpace", "DiskType", "GpuCount", "InstanceType", "InstanceSeries"),
        *("MemorySize", "NetworkMaxIops", "NetworkMaxThroughput", "OperatingSystem", "Redundancy"),
        "StorageClass",
    }
)
"""Properties of ``SkuPriceDetails`` that FOCUS names; others begin with ``x_``."""
Found = Iterator[tuple[str, str]]


def row_problems(row: Mapping[str, str]) -> Found:
    """Column and what is wrong there, of a row whose values are well written, each for itself."""
    yield from _empty_together(row)
    yield from _by_category(row)
    yield from _periods(row)
    yield from _prices(row)
    yield from _services(row)
    details = flat_pairs(row.get("SkuPriceDetails") or "{}") or {}
    for name in details:
        if name not in DETAILS and not name.startswith("x_"):
            yield "SkuPriceDetails", f"has {name!r}, which is no property of FOCUS: begin your own with x_"


def _empty_together(row: Mapping[str, str]) -> Found:
    for one, other in TOGETHER:
        if one in row and other in row and bool(row[one]) != bool(row[other]):
            missing, there = (other, one) if row[one] else (one, other)
            yield missing, f"is empty, but {there} is not"
    for name, needed in ONLY_WITH:
        if row.get(name) and not row.get(needed):
            yield name, f"is given, but {needed} is not"
    if row.get("ResourceName") and row["ResourceName"] == row.get("ResourceId"):
        yield "ResourceName", "repeats ResourceId: leave it empty where there is no name"


def _by_category(row: Mapping[str, str]) -> Found:
    category, is_correction = row.get("ChargeCategory"), row.get("ChargeClass") == "Correction"
    is_unused = row.get("CommitmentDiscountStatus") == "Unused"
    for name in PRICED:
        if category == "Tax" and row.get(name):
            yield name, "must be empty on tax"
        if category in {"Usage", "Purchase"} and not is_correction and name in row and not row[name]:
            yield name, f"must not be empty on {category}"
    if "ConsumedQuantity" in row:
        if row["ConsumedQuantity"] and (category != "Usage" or is_unused):
            yield "ConsumedQuantity", "must be empty but on usage that was not an unused commitment"
        if not row["ConsumedQuantity"] and category == "Usage" and not is_unused and not is_correction:
            yield "ConsumedQuantity", "must not be empty on usage: 0.0 where nothing was used"
    if category == "Purchase" and row.get("ChargeFrequency") == "Usage-Based":
        yield "ChargeFrequency", "must not be Usage-Based on a purchase"
    if row.get("CommitmentDiscountId"):
        yield from _of_commitment(row, category)


def _of_commitment(row: Mapping[str, str], category: str | None) -> Found:
    status = row.get("CommitmentDiscountStatus")
    if category == "Usage" and not status:
        yield "CommitmentDiscountStatus", "must be Used or Unused on usage of a commitment"
    if category == "Purchase" and status:
        yield "CommitmentDiscountStatus", "must be empty on a purchase"
    if category == "Purchase" and Decimal(row["EffectiveCost"]):
        yield "EffectiveCost", "must be 0.0 where a commitment is bought: its hours have the cost"
    if status and row.get("PricingCategory") not in {"Committed", None}:
        yield "PricingCategory", "must be Committed on usage of a commitment"
    if row.get("ChargeClass") != "Correction" and not row.get("CommitmentDiscountQuantity", "-"):
        yield "CommitmentDiscountQuantity", "must not be empty where there is a commitment"


def _periods(row: Mapping[str, str]) -> Found:
    start, end = row.get("BillingPeriodStart", ""), row.get("BillingPeriodEnd", "")
    if start and end and (not start.endswith("-01T00:00:00Z") or _next_month(start) != end):
        yield "BillingPeriodEnd", f"is {end!r}: with {start!r} it is no calendar month in UTC"
    charge_start, charge_end = row.get("ChargePeriodStart", ""), row.get("ChargePeriodEnd", "")
    if charge_start and charge_end:
        # Times of this form sort as text.
        if charge_start >= charge_end:
            yield "ChargePeriodEnd", f"is {charge_end!r}, which is not after ChargePeriodStart"
        if start and end and not (start <= charge_start and charge_end <= end):
            yield "ChargePeriodStart", "to ChargePeriodEnd is not within the billing period"


def _next_month(start: str) -> str:
    at = datetime.fromisoformat(start)
    year, month = divmod(at.year * 12 + at.month, 12)
    return f"{year:04}-{month + 1:02}-01T00:00:00Z"


def _prices(row: Mapping[str, str]) -> Found:
    if row.get("ChargeClass") != "Correction" and row.get("PricingQuantity"):
        quantity = Decimal(row["PricingQuantity"])
        for price, cost in PRODUCTS:
            if not row.get(price) or cost not in row:
                continue
            product = quantity * Decimal(row[price])
            if abs(product - Decimal(row[cost])) > TOLERANCE:
                yield cost, f"is {row[cost]}, but {price} × PricingQuantity is {product}"
    for price, _ in PRODUCTS:
        if row.get(price) and Decimal(row[price]) < 0:
            yield price, f"is {row[price]}: a unit price is never below 0"
    if row.get("PricingCurrency") and row["PricingCurrency"] == row.get("BillingCurrency"):
        for name in ("ListUnitPrice", "ContractedUnitPrice", "EffectiveCost"):
            own = f"PricingCurrency{name}"
            if row.get(own) and row.get(name) and Decimal(row[own]) != Decimal(row[name]):
                yield own, f"is {row[own]}, but {name} is {row[name]} in the same currency"


def _services(row: Mapping[str, str]) -> Found:
    category, subcategory = row.get("ServiceCategory", ""), row.get("ServiceSubcategory", "")
    if subcategory and subcategory not in SERVICES.get(category, ()):
        yield "ServiceSubcategory", f"is {subcategory!r}, which is none of {category!r}"
