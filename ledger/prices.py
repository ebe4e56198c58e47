"""Which price of a GPU-hour is in force: the user's most specific row, else the catalogue's median, else none.

US dollars per GPU-hour. Order of trust: the user's own rows, then the shipped price list (cost-model 1). An
unpriced GPU has no price; it does not cost 0. Source of the fallback: ``catalog.gpu_prices``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from catalog.gpu_prices import median_on_demand
from core.clock import from_ms
from core.evidence import Price


class Scope(StrEnum):
    """What a user's price is for, most specific first."""

    GPU = "gpu_uuid"
    HOST = "host"
    MODEL = "model"
    """The driver's product name or our ``gpu_key``, case ignored."""
    ALL = "all"


BILLINGS: Final = ("on_demand", "reserved", "spot", "owned")
NODE_GPUS: Final = 8
"""Unit of a GPU that is released with its host where the host is not known: an HGX board, so that no saving is
claimed for a part of one."""
_RANK: Final = {scope: rank for rank, scope in enumerate(Scope)}


@dataclass(frozen=True, slots=True)
class PriceRow:
    """A price the user gave.

    Attributes:
        id: of the row in the store; the later row wins where two say the same.
        scope_kind: a ``Scope``. scope_value: UUID, host, model; empty for ``all``.
        usd_per_gpu_hour: dollars; 0 is a price (a sunk machine), not "unknown".
        billing: one of ``BILLINGS``.
        gpus_per_unit: GPUs that can only be released together; None: all of a host.
        valid_from_ms, valid_to_ms: in force from (inclusive) to (exclusive; None: still).
        note: the user's own words.
    """

    id: int
    scope_kind: str
    scope_value: str
    usd_per_gpu_hour: Decimal
    billing: str
    gpus_per_unit: int | None
    valid_from_ms: int
    valid_to_ms: int | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a row that could not be applied. Raises ``ValueError`` with what to do."""
        if self.scope_kind not in tuple(Scope):
            raise ValueError(f"price scope {self.scope_kind!r}: use one of {', '.join(Scope)}")
        if (self.scope_kind == Scope.ALL) == bool(self.scope_value):
            raise ValueError(
                f"price scope {self.scope_kind!r} with value {self.scope_value!r}: name what it is for"
            )
        if self.billing not in BILLINGS:
            raise ValueError(f"price billing {self.billing!r}: use one of {', '.join(BILLINGS)}")
        if not self.usd_per_gpu_hour.is_finite() or self.usd_per_gpu_hour < 0:
            raise ValueError(f"price {self.usd_per_gpu_hour} USD per GPU-hour: give 0 or more")
        if self.gpus_per_unit is not None and self.gpus_per_unit < 1:
            raise ValueError(f"price with {self.gpus_per_unit} GPUs per unit: give 1 or more")
        if self.valid_to_ms is not None and self.valid_to_ms <= self.valid_from_ms:
            raise ValueError("price ends before it starts: give an end after the start, or none")


def price_at(
    rows: Iterable[PriceRow],
    *,
    gpu_uuid: str,
    host: str | None,
    model: str | None,
    gpu_key: str | None,
    at_ms: int,
    host_gpu_count: int | None = None,
) -> Price | None:
    """The price of one GPU-hour in force at an instant.

    Args:
        rows: the user's prices, in any order.
        gpu_uuid, host, model: the GPU, as its driver names it.
        gpu_key: row of the GPU catalogue its model resolves to; None when it resolves to none.
        at_ms: when.
        host_gpu_count: GPUs on its host, the unit of a row that names none; None: not known.

    Returns:
        The most specific user row in force (of equals the one that came into force last, then the one entered last),
        else the catalogue's median on-demand price, else None: no price.
    """
    names = {name.casefold() for name in (model, gpu_key) if name is not None}
    best = max(
        (row for row in rows if _in_force(row, at_ms) and _applies(row, gpu_uuid, host, names)),
        key=lambda row: (-_RANK[Scope(row.scope_kind)], row.valid_from_ms, row.id),
        default=None,
    )
    if best is not None:
        return _of_user(best, host_gpu_count)
    return catalogue_price(gpu_key)


def catalogue_price(gpu_key: str | None) -> Price | None:
    """The catalogue's median on-demand price of a model; None when it lists none."""
    median = median_on_demand(gpu_key)
    if median is None:
        return None
    return Price(
        usd_per_gpu_hour=median.usd_per_gpu_hour,
        basis=median.basis,
        billing="on_demand",
        gpus_per_unit=median.gpus_per_unit,
        as_of=median.as_of,
        from_user=False,
    )


def _in_force(row: PriceRow, at_ms: int) -> bool:
    return row.valid_from_ms <= at_ms and (row.valid_to_ms is None or at_ms < row.valid_to_ms)


def _applies(row: PriceRow, gpu_uuid: str, host: str | None, names: set[str]) -> bool:
    match Scope(row.scope_kind):
        case Scope.GPU:
            return row.scope_value == gpu_uuid
        case Scope.HOST:
            return row.scope_value == host
        case Scope.MODEL:
            return row.scope_value.casefold() in names
        case Scope.ALL:
            return True


def _of_user(row: PriceRow, host_gpu_count: int | None) -> Price:
    day = from_ms(row.valid_from_ms).date().isoformat()
    whom = "" if row.scope_kind == Scope.ALL else f" for {row.scope_value}"
    since = f" of {day}" if row.valid_from_ms > 0 else ""  # without a start it is in force since ever
    return Price(
        usd_per_gpu_hour=row.usd_per_gpu_hour,
        basis=f"your price{whom}{since}",
        billing=row.billing,
        gpus_per_unit=row.gpus_per_unit or host_gpu_count or NODE_GPUS,
        as_of=day,
        from_user=True,
    )
