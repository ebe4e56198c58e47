"""Prices and exchange rates as the user gives them: checked when made. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from core.money import MICRO
from core.units import DAY_MS

USD: Final = "USD"
LARGEST: Final = Decimal(1_000_000_000)
"""Amounts of one GPU-hour above it are typing errors in any currency; whole micro-units then fit the database."""
LARGEST_UPFRONT: Final = Decimal(1_000_000_000_000)
RATE_PLACES: Final = 12
"""Decimals of an exchange rate that are kept: a Vietnamese dong is 0.00004 dollars."""


class Scope(StrEnum):
    """What a price is for, most specific first."""

    GPU = "gpu_uuid"
    HOST = "host"
    LABEL = "label"
    """A label of the host, ``key=value``."""
    INSTANCE_TYPE = "instance_type"
    CLUSTER = "cluster"
    MODEL = "model"
    """The driver's product name or our ``gpu_key``, case ignored."""
    ALL = "all"


BILLINGS: Final = ("on_demand", "reserved", "spot", "committed", "owned")
COMMITTED: Final = ("reserved", "committed")
"""Billings that may belong to a commitment."""


@dataclass(frozen=True, slots=True)
class UserPrice:
    """Price of one GPU-hour for a scope and a span of time.

    Attributes:
        id: of the row in the store; 0 before it is there.
        scope_kind: a ``Scope``. scope_value: UUID, host, ``key=value``, …; empty for ``all``.
        amount_per_gpu_hour: in ``currency``; 0 is a price (a sunk machine), not "unknown".
        billing: one of ``BILLINGS``.
        gpus_per_unit: GPUs that can only be released together; None: all of a host.
        valid_from_ms, valid_to_ms: in force from (inclusive) to (exclusive; None: still).
        note: the user's own words. currency: ISO 4217.
        commitment: name of the reservation it belongs to. committed_gpus: GPUs of it. upfront: paid at its start in
            ``currency``, for all its GPUs and all its hours; ``amount_per_gpu_hour`` is what comes on top.
        inputs: what the amount was figured from (``owned``), or what interrupts it (``spot``), by name.
    """

    id: int
    scope_kind: str
    scope_value: str
    amount_per_gpu_hour: Decimal
    billing: str
    gpus_per_unit: int | None
    valid_from_ms: int
    valid_to_ms: int | None = None
    note: str = ""
    currency: str = USD
    commitment: str | None = None
    committed_gpus: int | None = None
    upfront: Decimal | None = None
    inputs: Mapping[str, float | bool] | None = None

    def __post_init__(self) -> None:
        """Refuse a price that could not be applied. Raises ``ValueError``: field, value, what to do."""
        if self.scope_kind not in tuple(Scope):
            raise ValueError(f"price scope {self.scope_kind!r}: use one of {', '.join(Scope)}")
        if (self.scope_kind == Scope.ALL) == bool(self.scope_value):
            raise ValueError(
                f"price scope {self.scope_kind!r} with value {self.scope_value!r}: name what it is for"
            )
        key, equals, _ = self.scope_value.partition("=")
        if self.scope_kind == Scope.LABEL and not (key and equals):
            raise ValueError(f"price scope_value {self.scope_value!r} of a label: give key=value")
        if self.billing not in BILLINGS:
            raise ValueError(f"price billing {self.billing!r}: use one of {', '.join(BILLINGS)}")
        _amount("amount_per_gpu_hour", self.amount_per_gpu_hour, self.currency, LARGEST)
        if self.gpus_per_unit is not None and self.gpus_per_unit < 1:
            raise ValueError(f"price with {self.gpus_per_unit} GPUs per unit: give 1 or more")
        if self.valid_to_ms is not None and self.valid_to_ms <= self.valid_from_ms:
            raise ValueError("price ends before it starts: give an end after the start, or none")
        self._check_commitment()
        if self.inputs is not None and self.billing not in {"owned", "spot"}:
            raise ValueError(f"price billing {self.billing!r} with inputs: only owned and spot have any")

    def _check_commitment(self) -> None:
        if self.commitment is None and (self.committed_gpus is not None or self.upfront is not None):
            raise ValueError("price with committed_gpus or upfront but no commitment: name the commitment")
        if self.commitment is None:
            return
        if not self.commitment or self.billing not in COMMITTED:
            raise ValueError(
                f"price commitment {self.commitment!r} with billing {self.billing!r}: "
                f"give it a name, and use {' or '.join(COMMITTED)}"
            )
        if self.committed_gpus is not None and self.committed_gpus < 1:
            raise ValueError(f"price committed_gpus {self.committed_gpus}: give 1 or more")
        if self.upfront is None:
            return
        _amount("upfront", self.upfront, self.currency, LARGEST_UPFRONT)
        if self.committed_gpus is None or self.valid_to_ms is None:
            raise ValueError(
                f"price upfront {self.upfront} {self.currency}: give committed_gpus and valid_to, over which it is spread"
            )

    @property
    def what(self) -> str:
        """Its scope for people: ``host h1``."""
        return f"{self.scope_kind} {self.scope_value}".strip()

    @property
    def key(self) -> tuple[Scope, str]:
        """Scope and value such that two prices for the same thing have the same."""
        return scope_key(Scope(self.scope_kind), self.scope_value)

    def overlaps(self, other: "UserPrice") -> bool:
        """Both are for the same thing and in force at some time together."""
        return (
            (other.valid_to_ms is None or self.valid_from_ms < other.valid_to_ms)
            and (self.valid_to_ms is None or other.valid_from_ms < self.valid_to_ms)
            and self.key == other.key
        )


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """Dollars for one unit of a currency, in force from a UTC day until the next rate of that currency.

    Attributes:
        id: of the row in the store; 0 before it is there. currency: ISO 4217.
        from_ms: start of the day. usd_per_unit: dollars, to ``RATE_PLACES`` decimals.
    """

    id: int
    currency: str
    from_ms: int
    usd_per_unit: Decimal

    def __post_init__(self) -> None:
        """Refuse a rate that could not be applied. Raises ``ValueError``: field, value, what to do."""
        if self.currency == USD:
            raise ValueError("rate of USD: a dollar is a dollar, give rates of other currencies")
        if self.from_ms % DAY_MS:
            raise ValueError("rate from a time within a day: give a day such as 2026-10-05")
        if not self.usd_per_unit.is_finite() or not 0 < self.usd_per_unit < LARGEST // 1000:
            raise ValueError(
                f"rate usd_per_unit {self.usd_per_unit} of {self.currency}: give the dollars of one unit, above 0"
            )
        if self.usd_per_unit != round(self.usd_per_unit, RATE_PLACES):
            raise ValueError(
                f"rate usd_per_unit {self.usd_per_unit} of {self.currency}: give {RATE_PLACES} decimals at most"
            )


def scope_key(scope: Scope, value: str) -> tuple[Scope, str]:
    """How a scope and its value are compared: makers and providers do not agree on the case of what they sell."""
    folds = scope in {Scope.MODEL, Scope.INSTANCE_TYPE}
    return scope, value.casefold() if folds else value


def _amount(name: str, amount: Decimal, currency: str, largest: Decimal) -> None:
    if not amount.is_finite() or not 0 <= amount <= largest:
        raise ValueError(f"price {name} {amount} {currency}: give 0 or more, at most {largest:,}")
    if amount * MICRO != (amount * MICRO).to_integral_value():
        raise ValueError(f"price {name} {amount} {currency}: give 6 decimals at most")
