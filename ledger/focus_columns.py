"""Columns of a FOCUS file by version of the specification: name, kind, whether it may be empty, what it may say. Pure.

Source: FinOps Open Cost and Usage Specification 1.2 (2025-05-29), dataset Cost and Usage, and its rules as data
(``model-1.2.0.1.json`` of focus-validator 2.2.1). Our own columns begin with ``x_`` and come last, as it asks.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from ledger.focus_services import SERVICES

DEFAULT_VERSION: Final = "1.2"


class Kind(StrEnum):
    """How a value is written."""

    TEXT = "text"
    NUMBER = "number"
    TIME = "time"
    PAIRS = "pairs"
    """A JSON object without objects or lists in it."""
    CURRENCY = "currency"


class Need(StrEnum):
    """Whether a file must have the column."""

    MANDATORY = "mandatory"
    RECOMMENDED = "recommended"
    CONDITIONAL = "conditional"
    CUSTOM = "custom"


class Column(NamedTuple):
    """One column. ``allowed``: its values, where they are given; ``nullable``: a row may leave it empty."""

    name: str
    kind: Kind
    need: Need
    nullable: bool
    allowed: tuple[str, ...] = ()


CHARGE_CATEGORIES: Final = ("Usage", "Purchase", "Tax", "Credit", "Adjustment")
NOT_WRITTEN: Final = (
    "AvailabilityZone",
    "BillingAccountType",
    "CapacityReservationId",
    "CapacityReservationStatus",
)
"""Columns of 1.2 that others may have: we know no zones, no types of accounts, and no reservations of capacity alone."""

_TEXT, _NUMBER, _TIME = Kind.TEXT, Kind.NUMBER, Kind.TIME


def _given(kind: Kind, *names: str, need: Need = Need.MANDATORY) -> tuple[Column, ...]:
    return tuple(Column(name, kind, need, nullable=False) for name in names)


def _maybe(kind: Kind, *names: str, need: Need = Need.CONDITIONAL) -> tuple[Column, ...]:
    return tuple(Column(name, kind, need, nullable=True) for name in names)


def _one_of(name: str, *allowed: str, need: Need = Need.MANDATORY, nullable: bool = False) -> Column:
    return Column(name, _TEXT, need, nullable, allowed)


_V1_2: Final = (
    *_given(_NUMBER, "BilledCost", "EffectiveCost", "ListCost", "ContractedCost"),
    *_given(_TEXT, "BillingAccountId"),
    *_maybe(_TEXT, "BillingAccountName", need=Need.MANDATORY),
    Column("BillingCurrency", Kind.CURRENCY, Need.MANDATORY, nullable=False),
    *_given(_TIME, "BillingPeriodStart", "BillingPeriodEnd"),
    _one_of("ChargeCategory", *CHARGE_CATEGORIES),
    _one_of("ChargeClass", "Correction", nullable=True),
    *_maybe(_TEXT, "ChargeDescription", need=Need.MANDATORY),
    _one_of("ChargeFrequency", "One-Time", "Recurring", "Usage-Based", need=Need.RECOMMENDED),
    *_given(_TIME, "ChargePeriodStart", "ChargePeriodEnd"),
    *_given(_TEXT, "InvoiceIssuerName"),
    *_maybe(_TEXT, "InvoiceId", need=Need.RECOMMENDED),
    *_maybe(_NUMBER, "PricingQuantity", need=Need.MANDATORY),
    *_maybe(_TEXT, "PricingUnit", need=Need.MANDATORY),
    *_given(_TEXT, "ProviderName", "PublisherName"),
    _one_of("ServiceCategory", *SERVICES),
    *_given(_TEXT, "ServiceName"),
    _one_of(
        "ServiceSubcategory", *(sub for subs in SERVICES.values() for sub in subs), need=Need.RECOMMENDED
    ),
    *_maybe(_TEXT, "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType"),
    *_maybe(_TEXT, "SubAccountId", "SubAccountName", "SubAccountType"),
    *_maybe(_TEXT, "SkuId", "SkuMeter", "SkuPriceId"),
    *_maybe(Kind.PAIRS, "SkuPriceDetails"),
    *_maybe(_NUMBER, "ListUnitPrice", "ContractedUnitPrice"),
    _one_of(
        "PricingCategory",
        *("Standard", "Dynamic", "Committed", "Other"),
        need=Need.CONDITIONAL,
        nullable=True,
    ),
    Column("PricingCurrency", Kind.CURRENCY, Need.CONDITIONAL, nullable=False),
    *_maybe(
        _NUMBER,
        "PricingCurrencyListUnitPrice",
        "PricingCurrencyContractedUnitPrice",
        "PricingCurrencyEffectiveCost",
    ),
    *_maybe(_NUMBER, "ConsumedQuantity"),
    *_maybe(_TEXT, "ConsumedUnit"),
    _one_of("CommitmentDiscountCategory", "Spend", "Usage", need=Need.CONDITIONAL, nullable=True),
    *_maybe(_TEXT, "CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountType"),
    _one_of("CommitmentDiscountStatus", "Used", "Unused", need=Need.CONDITIONAL, nullable=True),
    *_maybe(_NUMBER, "CommitmentDiscountQuantity"),
    *_maybe(_TEXT, "CommitmentDiscountUnit"),
    *_maybe(Kind.PAIRS, "Tags"),
    *_maybe(_TEXT, "x_AllocationType", "x_GpuModel", "x_Host", "x_Cluster", "x_MigCardId", need=Need.CUSTOM),
    *_maybe(_TEXT, "x_JobId", "x_JobName", "x_JobKind", "x_UserName", "x_ShareMethod", need=Need.CUSTOM),
    *_maybe(_NUMBER, "x_KnownGpuHours", "x_CoveredGpuHours", "x_AllocatedGpuHours", need=Need.CUSTOM),
    *_maybe(_NUMBER, "x_EffectiveGpuHours", "x_IdleCost", need=Need.CUSTOM),
    *_maybe(_NUMBER, "x_EnergyKwh", "x_SiteEnergyKwh", "x_EnergyCost", "x_CarbonGramsCo2e", need=Need.CUSTOM),
    *_maybe(_TEXT, "x_EnergyMethod", "x_CarbonBasis", "x_PriceBasis", "x_PriceDate", need=Need.CUSTOM),
    *_maybe(_TEXT, "x_CorrectionId", need=Need.CUSTOM),
    *_maybe(_TIME, "x_CorrectionBookedAt", need=Need.CUSTOM),
)

COLUMNS: Final = {"1.2": _V1_2}
"""Columns of a file by version, in its order. 1.3 adds ``AllocatedMethodId`` and others beside these (cost-model 6)."""


def names(version: str = DEFAULT_VERSION) -> tuple[str, ...]:
    """The header of a file."""
    return tuple(column.name for column in COLUMNS[version])
