"""Rows of commitments beside the hours they covered: the purchase of what is paid upfront, and hours that nobody used. Pure.

A commitment is one ``Purchase`` row (EffectiveCost 0.0) where something is paid upfront, and ``Used`` and ``Unused`` usage
whose EffectiveCost adds up to it, and to what comes on top, over its term (cost-model 6). ``Used`` are the ledger's own
lines (``ledger.focus``); ``Unused`` is what of the committed GPU-hours of a day no GPU was seen in.
"""

from dataclasses import dataclass
from decimal import Decimal

from core.evidence import Price
from core.money import to_micro
from core.units import HOUR_MS
from core.user_price import COMMITTED, UserPrice
from ledger.focus import (
    GPU_HOURS,
    Issuer,
    Resource,
    Row,
    blank,
    commit,
    commitment_of,
    price_details,
    price_row,
    sku_price_id,
)
from ledger.focus_numbers import Quantity, hours, money
from ledger.price_terms import effective_amount
from ledger.share import rounded


@dataclass(frozen=True, slots=True)
class Seen:
    """One of the GPUs that a commitment covered: its SKU and prices stand for those of hours nobody used."""

    resource: Resource
    price: Price


@dataclass(frozen=True, slots=True)
class Commitment:
    """A price with ``committed_gpus`` at a time.

    Attributes:
        price: of the user. usd_per_unit: dollars for one unit of its currency then.
        seen: a GPU that it covered lately; None: none was seen so far.
    """

    price: UserPrice
    usd_per_unit: Decimal
    seen: Seen | None = None

    @property
    def resource(self) -> Resource:
        """The kind of GPU that it is of."""
        return Resource("") if self.seen is None else self.seen.resource


def is_counted(price: UserPrice) -> bool:
    """How many GPUs it commits to is known, so that hours which nobody used can be told."""
    return price.billing in COMMITTED and price.committed_gpus is not None


def invoiced(price: UserPrice, usd_per_unit: Decimal) -> int | None:
    """Micro-dollars a GPU-hour that are asked for beside the upfront; None: nothing was paid upfront."""
    return None if price.upfront is None else to_micro(rounded(price.amount_per_gpu_hour * usd_per_unit))


def in_force(price: UserPrice, from_ms: int, to_ms: int) -> tuple[int, int] | None:
    """The whole hours of a span in which a price holds: from the first after its start; None: in none."""
    start = max(from_ms, price.valid_from_ms + -price.valid_from_ms % HOUR_MS)
    end = to_ms if price.valid_to_ms is None else min(to_ms, price.valid_to_ms + -price.valid_to_ms % HOUR_MS)
    return (start, end) if start < end else None


def unused_row(of: Commitment, span: tuple[int, int], used_ms: int, issuer: Issuer) -> Row | None:
    """Committed GPU-hours of a span in which no GPU was seen; None: all were used.

    Args:
        of: the commitment in the span. span: whole hours in which it holds.
        used_ms: GPU-time seen in them at this price. issuer: who bills.
    """
    price = of.price
    assert price.committed_gpus is not None, "asked only where it is known"
    left_ms = price.committed_gpus * (span[1] - span[0]) - used_ms
    if left_ms <= 0:
        return None
    rate = to_micro(rounded(effective_amount(price) * of.usd_per_unit))
    listed = None if of.seen is None else of.seen.price.list_usd_per_gpu_hour
    quantity = Quantity.of_hours(left_ms)
    row = blank(*span, issuer, of.resource.labels.get("provider"))
    list_rate = rate if listed is None else to_micro(listed)
    price_row(row, list_rate, list_rate, quantity, money(quantity.whole_cost(rate)))
    asked = invoiced(price, of.usd_per_unit)
    row["BilledCost"] = money(quantity.whole_cost(rate if asked is None else asked))
    row["PricingUnit"], row["PricingCategory"] = GPU_HOURS, "Committed"
    _name(row, of, "Unused", quantity.text)
    row["ChargeDescription"] = f"Committed GPU-hours that nobody used: {row['CommitmentDiscountName']}"
    row["x_AllocationType"] = "unused"
    return row


def purchase_row(of: Commitment, issuer: Issuer) -> Row:
    """What was paid upfront, on the hour in which the commitment begins."""
    price = of.price
    assert price.upfront is not None, "asked only where something is paid upfront"
    assert price.committed_gpus is not None, "checked when made"
    assert price.valid_to_ms is not None, "checked when made"
    start = price.valid_from_ms - price.valid_from_ms % HOUR_MS
    paid = to_micro(rounded(price.upfront * of.usd_per_unit))
    row = blank(start, start + HOUR_MS, issuer, of.resource.labels.get("provider"))
    row["ChargeCategory"], row["ChargeFrequency"] = "Purchase", "One-Time"
    price_row(row, paid, paid, Quantity.of_hours(HOUR_MS), "0.0")
    row["BilledCost"] = money(paid)
    row["PricingUnit"], row["PricingCategory"] = "Units", "Standard"
    _name(row, of, None, hours(price.committed_gpus * (price.valid_to_ms - price.valid_from_ms)))
    row["ChargeDescription"] = f"Paid upfront: {row['CommitmentDiscountName']}"
    return row


def _name(row: Row, of: Commitment, status: str | None, quantity: str) -> None:
    """The commitment as resource, and the SKU that it is of."""
    price, resource = of.price, of.resource
    stands_for = Price(
        usd_per_gpu_hour=Decimal(0),
        basis="",
        billing=price.billing,
        gpus_per_unit=1,
        as_of="",
        from_user=True,
        price_id=price.id,
        commitment=price.commitment,
    )
    name = commitment_of(stands_for)
    assert name is not None, "its billing is one of a commitment"
    commit(row, name, status, quantity)
    row["ResourceId"], row["ResourceType"] = name, "Commitment"
    row["SkuId"] = resource.sku
    row["RegionId"], row["RegionName"] = resource.region, resource.region_name
    row["SkuMeter"] = "GPU time"
    if status is None:
        row["SkuMeter"] = "Commitment"
        row["SkuId"] = f"{resource.sku}/commitment"
    row["SkuPriceId"] = sku_price_id(row["SkuId"] or "", stands_for, resource.instance_type)
    row["SkuPriceDetails"] = price_details(stands_for, resource.model, resource.instance_type)
    row["x_GpuModel"], row["x_Cluster"] = resource.model, resource.cluster
