"""A line of the ledger as rows of a FOCUS 1.2 file: one for the GPU, one for the energy where that is a bill of its own. Pure.

    EffectiveCost = the line's cost, to the micro-dollar           PricingQuantity = cost ÷ price, to 12 decimals
    BilledCost    = the same, but for hours that were paid upfront: there only what comes on top
    ListCost      = list price × PricingQuantity                   ContractedCost = contracted price × PricingQuantity

The quantity is written from the cost, so that its product with the price is the cost; it differs from the clock
(``x_KnownGpuHours``) by less than what rounding each hour to a micro-dollar does. A line without a price has no GPU row:
0 would be a price. Sources: cost-model 1 and 6, FOCUS 1.2.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from core.clock import from_ms
from core.evidence import Price
from core.money import to_micro
from core.ownership import Owner
from core.place import Place
from core.readings import WorkloadKey
from core.units import DAY_MS
from core.user_price import COMMITTED, USD
from ledger.focus_columns import names
from ledger.focus_numbers import Quantity, grams, hours, kwh, money
from ledger.whole_shares import split_whole

Row = dict[str, str | None]
GPU_HOURS: Final = "GPU-Hours"
KWH: Final = "kWh"
DEFAULT_ACCOUNT: Final = "gpuwise"
DEFAULT_PROVIDER: Final = "Self-managed"
COMMITMENT_TYPE: Final = "Reserved GPUs"
ALLOCATION: Final = {
    "workload": "allocated",
    "unattributed": "unattributed",
    "idle": "idle",
    "gap": "unknown",
}
"""``x_AllocationType`` by kind of line."""
_PRICING: Final = {"on_demand": "Standard", "spot": "Dynamic", "owned": "Other"}
_JOB_TAGS: Final = ("namespace", "slurm_account", "systemd_unit", "image")
_EMPTY: Final[Row] = dict.fromkeys(names("1.2"))


@dataclass(frozen=True, slots=True)
class Issuer:
    """Who bills: names that only the user knows.

    Attributes:
        account: of ``BillingAccountId`` and ``BillingAccountName``.
        provider: who provides the GPUs where no label ``provider`` of the host says so.
    """

    account: str = DEFAULT_ACCOUNT
    provider: str = DEFAULT_PROVIDER


@dataclass(frozen=True, slots=True)
class Resource:
    """A card, or a MIG slice of one, as far as a row tells of it.

    Attributes:
        resource_id: its UUID. name: host and index; None: no host is known.
        sku: key of the catalogue, else the driver's name.
        labels: what the user says of its host, by name. card_id: of a slice, the card it is cut from.
    """

    resource_id: str
    name: str | None = None
    sku: str = "GPU"
    model: str | None = None
    host: str | None = None
    region: str | None = None
    region_name: str | None = None
    cluster: str | None = None
    instance_type: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    card_id: str | None = None


class Amounts(NamedTuple):
    """What a row needs of a line, under the names of ``ledger_day``; money in whole micro-dollars."""

    share_method: str
    known_ms: int
    covered_ms: int
    allocated_ms: int
    active_ms: int
    effective_ms: int
    effective_unknown_ms: int
    energy_mj: int | None
    energy_method: str | None
    site_energy_mj: int | None
    cost_usd: int | None
    idle_cost_usd: int | None
    energy_usd: int | None
    billed_energy_usd: int | None
    carbon_ug: int | None


class Charge(NamedTuple):
    """A line of the ledger with what it refers to.

    Attributes:
        from_ms, to_ms: its part of a day, within one month in UTC.
        kind: of line. workload: who held it. owner: who pays; None: unowned.
        price: None: unpriced. invoiced: micro-dollars a GPU-hour that are asked for beside what was paid upfront; None:
            nothing was. place: where its energy terms are from.
        correction: number and time (ms) of the booking that added it to a closed month; None: the line itself.
    """

    from_ms: int
    to_ms: int
    resource: Resource
    kind: str
    workload: WorkloadKey | None
    owner: Owner | None
    price: Price | None
    invoiced: int | None
    place: Place
    amounts: Amounts
    correction: tuple[int, int] | None


def rows_of(charge: Charge, issuer: Issuer) -> Iterator[Row]:
    """Rows of one line: of the GPU where it has a price, of its energy where the site is billed for that apart.

    What is measured (energy, carbon) stands on the first of them alone, so that columns can be added up.
    """
    amounts = charge.amounts
    told = False
    if charge.price is not None and amounts.cost_usd is not None:
        row = _common(charge, issuer)
        _gpu(row, charge, charge.price, amounts.cost_usd)
        _measured(row, charge)
        told = True
        yield row
    if amounts.billed_energy_usd is not None:
        row = _common(charge, issuer)
        _energy(row, charge, amounts.billed_energy_usd)
        if not told:
            _measured(row, charge)
        yield row


def is_unpriced(charge: Charge) -> bool:
    """It has no price, so that no row says what its GPU cost."""
    return charge.price is None or charge.amounts.cost_usd is None


def over_slices(charge: Charge, slices: Sequence[tuple[Resource, int]]) -> list[Charge]:
    """A line of a card divided among the slices that its workload held, by weights above 0; the parts add up to it."""
    if len(slices) == 1:
        return [charge._replace(resource=slices[0][0])]
    weights = [weight for _, weight in slices]
    columns = [_divided(value, weights) for value in charge.amounts]
    return [
        charge._replace(resource=resource, amounts=Amounts._make(column[at] for column in columns))
        for at, (resource, _) in enumerate(slices)
    ]


def commitment_of(price: Price) -> str | None:
    """The commitment that a price belongs to; one without a name goes by its number. None: it belongs to none."""
    if price.billing not in COMMITTED:
        return None
    return price.commitment or f"price {price.price_id}"


def sku_price_id(sku: str, price: Price, instance_type: str | None = None) -> str:
    """Of one SKU at one price of the user, or at one of the catalogue."""
    which = f"catalogue-{price.as_of}" if price.price_id is None else f"price-{price.price_id}"
    return "/".join(part for part in (sku, instance_type, price.billing, which) if part)


@lru_cache(maxsize=4_096)
def time_text(at_ms: int) -> str:
    """``2026-10-05T00:00:00Z``."""
    return f"{from_ms(at_ms):%Y-%m-%dT%H:%M:%SZ}"


@lru_cache(maxsize=64)
def billing_period(day_ms: int) -> tuple[str, str]:
    """The calendar month in UTC around a time."""
    at = from_ms(day_ms)
    year, month = divmod(at.year * 12 + at.month, 12)
    return f"{at:%Y-%m}-01T00:00:00Z", f"{year:04}-{month + 1:02}-01T00:00:00Z"


def blank(from_ms_: int, to_ms: int, issuer: Issuer, provider: str | None = None) -> Row:
    """A row with what all rows of a span have; the rest is empty."""
    row = _EMPTY.copy()
    row["BillingAccountId"] = row["BillingAccountName"] = issuer.account
    row["BillingCurrency"] = row["PricingCurrency"] = USD
    row["BillingPeriodStart"], row["BillingPeriodEnd"] = billing_period(from_ms_ - from_ms_ % DAY_MS)
    row["ChargePeriodStart"], row["ChargePeriodEnd"] = time_text(from_ms_), time_text(to_ms)
    row["ProviderName"] = row["PublisherName"] = row["InvoiceIssuerName"] = provider or issuer.provider
    row["ServiceCategory"], row["ServiceSubcategory"] = "AI and Machine Learning", "Machine Learning"
    row["ServiceName"] = "GPU compute"
    row["ChargeCategory"], row["ChargeFrequency"] = "Usage", "Usage-Based"
    return row


def price_row(row: Row, listed: int, contracted: int, quantity: Quantity, effective: str) -> None:
    """Unit prices in micro-dollars, what they come to, and what the charge costs in effect."""
    row["PricingQuantity"] = quantity.text
    row["ListUnitPrice"] = row["PricingCurrencyListUnitPrice"] = money(listed)
    row["ContractedUnitPrice"] = row["PricingCurrencyContractedUnitPrice"] = money(contracted)
    row["ListCost"], row["ContractedCost"] = quantity.cost(listed), quantity.cost(contracted)
    row["EffectiveCost"] = row["PricingCurrencyEffectiveCost"] = effective


def commit(row: Row, name: str, status: str | None, quantity: str) -> None:
    """The commitment that a row belongs to; no status: the row buys it."""
    row["CommitmentDiscountCategory"], row["CommitmentDiscountType"] = "Usage", COMMITMENT_TYPE
    row["CommitmentDiscountId"] = row["CommitmentDiscountName"] = name
    row["CommitmentDiscountStatus"] = status
    row["CommitmentDiscountQuantity"], row["CommitmentDiscountUnit"] = quantity, GPU_HOURS


def price_details(price: Price, gpu_model: str | None, instance_type: str | None) -> str:
    """``SkuPriceDetails``: what FOCUS has a name for, and the rest as ``x_``."""
    told = {"GpuCount": 1, "InstanceType": instance_type, "x_GpuModel": gpu_model, "x_Billing": price.billing}
    return pairs({name: value for name, value in told.items() if value is not None})


def pairs(values: Mapping[str, str | int | bool]) -> str:
    """A flat JSON object."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def _common(charge: Charge, issuer: Issuer) -> Row:
    """What rows of the GPU and of its energy have alike."""
    resource, workload, owner = charge.resource, charge.workload, charge.owner
    row = blank(charge.from_ms, charge.to_ms, issuer, resource.labels.get("provider"))
    row["RegionId"], row["RegionName"] = resource.region, resource.region_name
    row["ResourceId"], row["ResourceName"], row["ResourceType"] = resource.resource_id, resource.name, "GPU"
    row["x_AllocationType"] = ALLOCATION[charge.kind]
    row["x_GpuModel"], row["x_Host"], row["x_Cluster"] = resource.model, resource.host, resource.cluster
    row["x_MigCardId"] = resource.card_id
    if owner is not None:
        row["SubAccountId"] = row["SubAccountName"] = owner.name
        row["SubAccountType"] = "Team"
    if workload is not None:
        row["x_JobId"], row["x_JobName"] = workload.key, workload.name
        row["x_JobKind"], row["x_UserName"] = workload.kind, workload.user
        row["x_ShareMethod"] = charge.amounts.share_method
    if charge.correction is not None:
        row["ChargeClass"] = "Correction"
        row["x_CorrectionId"] = str(charge.correction[0])
        row["x_CorrectionBookedAt"] = time_text(charge.correction[1])
    row["Tags"] = _tags(charge)
    return row


def _tags(charge: Charge) -> str | None:
    """Labels of the host, and above them the team, project, cost centre, and what the job says of itself."""
    found: dict[str, str] = dict(charge.resource.labels)
    workload, owner = charge.workload, charge.owner
    if workload is not None:
        found["job"] = workload.name
        if workload.user is not None:
            found["user"] = workload.user
        found.update((name, value) for name, value in workload.attributes if name in _JOB_TAGS)
    if owner is not None:
        told = (("team", owner.team), ("project", owner.project), ("cost_centre", owner.cost_centre))
        found.update((name, value) for name, value in told if value)
    # A tag without a value is true (FOCUS 1.2, Tags).
    return pairs({name: found[name] or True for name in sorted(found)}) if found else None


def _gpu(row: Row, charge: Charge, price: Price, cost: int) -> None:
    resource, amounts = charge.resource, charge.amounts
    rate = to_micro(price.usd_per_gpu_hour)
    quantity = Quantity.of_cost(cost, rate) if rate else Quantity.of_hours(amounts.known_ms)
    owned = price.billing == "owned" or price.list_usd_per_gpu_hour is None
    listed = rate if owned else to_micro(price.list_usd_per_gpu_hour or price.usd_per_gpu_hour)
    commitment = commitment_of(price)
    # A contracted price leaves out what a commitment takes off: without another deal it is the list's.
    price_row(row, listed, rate if commitment is None else listed, quantity, money(cost))
    row["BilledCost"] = money(cost if charge.invoiced is None else quantity.whole_cost(charge.invoiced))
    row["PricingUnit"] = row["ConsumedUnit"] = GPU_HOURS
    row["ConsumedQuantity"] = hours(amounts.active_ms)
    row["PricingCategory"] = "Committed" if commitment is not None else _PRICING[price.billing]
    if commitment is not None:
        commit(row, commitment, "Used", quantity.text)
    row["SkuId"], row["SkuMeter"] = resource.sku, "GPU time"
    row["SkuPriceId"] = sku_price_id(resource.sku, price, resource.instance_type)
    row["SkuPriceDetails"] = price_details(price, resource.model, resource.instance_type)
    row["x_KnownGpuHours"], row["x_CoveredGpuHours"] = hours(amounts.known_ms), hours(amounts.covered_ms)
    row["x_AllocatedGpuHours"] = hours(amounts.allocated_ms)
    if not amounts.effective_unknown_ms and charge.kind != "gap":
        row["x_EffectiveGpuHours"] = hours(amounts.effective_ms)
    row["x_IdleCost"] = _maybe_money(amounts.idle_cost_usd)
    row["x_PriceBasis"], row["x_PriceDate"] = price.basis, price.as_of
    row["ChargeDescription"] = f"GPU {resource.sku}: {_held(charge)}, {price.billing.replace('_', '-')}"


def _energy(row: Row, charge: Charge, cost: int) -> None:
    """Energy of the site for one line; a price by the hour is the mean of the hours it was used in."""
    place, amounts = charge.place, charge.amounts
    rate = None if place.usd_per_kwh is None else to_micro(place.usd_per_kwh)
    quantity = Quantity.of_cost(cost, rate) if rate else Quantity.of_kwh(amounts.site_energy_mj or 0)
    price = money(rate) if rate is not None else quantity.price_for(cost)
    tariff = place.tariff or place.site
    row["ServiceCategory"], row["ServiceSubcategory"] = "Other", "Other (Other)"
    row["ServiceName"] = "Electricity"
    for name in ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "PricingCurrencyEffectiveCost"):
        row[name] = money(cost)
    for name in ("ListUnitPrice", "ContractedUnitPrice"):
        row[name] = row[f"PricingCurrency{name}"] = price
    row["PricingQuantity"] = row["ConsumedQuantity"] = quantity.text
    row["PricingUnit"] = row["ConsumedUnit"] = KWH
    row["PricingCategory"] = "Standard"
    row["SkuId"], row["SkuMeter"] = "electricity", "Electricity"
    row["SkuPriceId"] = f"electricity/{place.site}/{tariff}"
    row["SkuPriceDetails"] = pairs({"x_Site": place.site, "x_Tariff": tariff})
    row["ChargeDescription"] = f"Electricity of GPU {charge.resource.sku}: {_held(charge)}"


def _measured(row: Row, charge: Charge) -> None:
    """Energy at the GPU and of the site, what it costs anywhere, its carbon."""
    amounts, place = charge.amounts, charge.place
    row["x_EnergyKwh"] = None if amounts.energy_mj is None else kwh(amounts.energy_mj)
    row["x_SiteEnergyKwh"] = None if amounts.site_energy_mj is None else kwh(amounts.site_energy_mj)
    row["x_EnergyCost"], row["x_EnergyMethod"] = _maybe_money(amounts.energy_usd), amounts.energy_method
    if amounts.carbon_ug is not None:
        row["x_CarbonGramsCo2e"] = grams(amounts.carbon_ug)
        told = (place.carbon_code, place.carbon_year, place.carbon_method)
        row["x_CarbonBasis"] = " ".join(str(part) for part in told if part is not None) or None


def _held(charge: Charge) -> str:
    if charge.workload is not None:
        return f"{charge.workload.kind} {charge.workload.name}"
    return {"idle": "held by nobody", "gap": "no samples"}.get(charge.kind, "held, by whom is not known")


def _maybe_money(micro: int | None) -> str | None:
    return None if micro is None else money(micro)


def _divided(value: int | str | None, weights: Sequence[int]) -> list[int | str | None]:
    if not isinstance(value, int):
        return [value] * len(weights)
    parts = split_whole(abs(value), weights)
    return [part if value >= 0 else -part for part in parts]
