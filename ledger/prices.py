"""Which price of a GPU-hour is in force: the user's most specific row, else the catalogue's median, else none.

US dollars per GPU-hour. Order of trust: the user's own rows, then the shipped price list (cost-model 1). An
unpriced GPU has no price; it does not cost 0. Source of the fallback: ``catalog.gpu_prices``.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from catalog.gpu_prices import is_stale_at, median_on_demand
from core.clock import from_ms
from core.evidence import Price
from core.ownership import HostFacts
from core.user_price import USD, ExchangeRate, Scope, UserPrice, scope_key
from ledger.exchange import Exchange
from ledger.price_terms import effective_amount
from ledger.share import rounded

NODE_GPUS: Final = 8
"""Unit of a GPU that is released with its host where the host is not known: an HGX board, so that no saving is
claimed for a part of one."""
Key = tuple[Scope, str]


@dataclass(frozen=True, slots=True)
class PricedGpu:
    """What prices are looked up by.

    Attributes:
        gpu_uuid, host, model: the GPU, as its driver names it.
        gpu_key: row of the GPU catalogue its model resolves to; None when it resolves to none.
        facts: what the user says about its host; None: nothing.
        host_gpu_count: GPUs on its host, the unit of a row that names none; None: not known.
    """

    gpu_uuid: str
    host: str | None = None
    model: str | None = None
    gpu_key: str | None = None
    facts: HostFacts | None = None
    host_gpu_count: int | None = None

    def ranks(self) -> list[list[Key]]:
        """What a price of it may be for, most specific first; what is alike in that stands together."""
        facts = self.facts
        labels = () if facts is None else facts.labels
        named: dict[Scope, list[str | None]] = {
            Scope.GPU: [self.gpu_uuid],
            Scope.HOST: [self.host],
            Scope.LABEL: [f"{key}={value}" for key, value in labels],
            Scope.INSTANCE_TYPE: [None if facts is None else facts.instance_type],
            Scope.CLUSTER: [None if facts is None else facts.cluster],
            Scope.MODEL: [self.model, self.gpu_key],
            Scope.ALL: [""],
        }
        return [[scope_key(scope, value) for value in named[scope] if value is not None] for scope in Scope]


@dataclass(frozen=True, slots=True)
class Unpriced:
    """Why a GPU-hour has no price, and what to do."""

    why: str


class PriceBook:
    """The user's prices by what they are for."""

    __slots__ = ("_by_key", "exchange")

    def __init__(self, rows: Iterable[UserPrice], exchange: Exchange | None = None) -> None:
        self.exchange = exchange or Exchange()
        self._by_key: dict[Key, list[UserPrice]] = defaultdict(list)
        for row in rows:
            self._by_key[row.key].append(row)

    def rows_for(self, gpu: PricedGpu) -> tuple[tuple[UserPrice, ...], ...]:
        """Rows that are for this GPU at any time, most specific first; those of one rank together."""
        ranks = []
        for keys in gpu.ranks() if self._by_key else ():  # asked of every GPU, also where nobody gave a price
            found = {row.id: row for key in keys for row in self._by_key.get(key, ())}
            if found:
                ranks.append(tuple(found.values()))
        return tuple(ranks)

    def at(self, gpu: PricedGpu, at_ms: int) -> Price | Unpriced:
        """The price of one GPU-hour in force at an instant, or why there is none.

        The most specific user row in force (of equals the one that came into force last, then the one entered last),
        else the catalogue's median on-demand price. A row in a currency without a rate is not passed over for a
        less specific one: what the user said is not priced otherwise.
        """
        return price_of(self.rows_for(gpu), self.exchange, gpu, at_ms)


def price_of(
    ranks: Sequence[Sequence[UserPrice]], exchange: Exchange, gpu: PricedGpu, at_ms: int
) -> Price | Unpriced:
    """The price at an instant from the rows that are for a GPU (``PriceBook.rows_for``)."""
    for rank in ranks:
        row = max(
            (row for row in rank if _in_force(row, at_ms)),
            key=lambda row: (row.valid_from_ms, row.id),
            default=None,
        )
        if row is not None:
            return _of_user(row, exchange, gpu, at_ms)
    return catalogue_price(gpu.gpu_key, at_ms) or Unpriced(_no_price(gpu))


def catalogue_price(gpu_key: str | None, at_ms: int) -> Price | None:
    """The catalogue's median on-demand price of a model for an hour; None when it lists none.

    Its basis warns where the hour is more than 90 days after the price's date.
    """
    median = median_on_demand(gpu_key)
    if median is None:
        return None
    usd_per_gpu_hour = rounded(median.usd_per_gpu_hour)
    aged = ", over 90 days old by then: give your own price" if is_stale_at(median, at_ms) else ""
    return Price(
        usd_per_gpu_hour=usd_per_gpu_hour,
        basis=f"{median.basis}{aged}",
        billing="on_demand",
        gpus_per_unit=median.gpus_per_unit,
        as_of=median.as_of,
        from_user=False,
        list_usd_per_gpu_hour=usd_per_gpu_hour,
    )


def borders_of(row: UserPrice) -> set[int]:
    """When a row begins and ends."""
    return {row.valid_from_ms} | (set() if row.valid_to_ms is None else {row.valid_to_ms})


def _in_force(row: UserPrice, at_ms: int) -> bool:
    return row.valid_from_ms <= at_ms and (row.valid_to_ms is None or at_ms < row.valid_to_ms)


def _of_user(row: UserPrice, exchange: Exchange, gpu: PricedGpu, at_ms: int) -> Price | Unpriced:
    usd_per_unit = exchange.usd_per_unit(row.currency, at_ms)
    if usd_per_unit is None:
        return Unpriced(f"price {row.id} ({row.what}) is in {row.currency}, {exchange.missing(row.currency)}")
    day = from_ms(row.valid_from_ms).date().isoformat()
    median = median_on_demand(gpu.gpu_key)
    return Price(
        usd_per_gpu_hour=rounded(effective_amount(row) * usd_per_unit),
        basis=_basis(row, day, exchange.rate(row.currency, at_ms)),
        billing=row.billing,
        gpus_per_unit=row.gpus_per_unit or gpu.host_gpu_count or NODE_GPUS,
        as_of=day,
        from_user=True,
        price_id=row.id or None,
        commitment=row.commitment,
        list_usd_per_gpu_hour=None if median is None else rounded(median.usd_per_gpu_hour),
    )


def _basis(row: UserPrice, day: str, rate: ExchangeRate | None) -> str:
    whom = "" if row.scope_kind == Scope.ALL else f" for {row.scope_value}"
    since = f" of {day}" if row.valid_from_ms > 0 else ""  # without a start it is in force since ever
    spread = "" if row.upfront is None else ", with what was paid upfront spread over its term"
    foreign = ""
    if row.currency != USD and rate is not None:
        amount = plain(rounded(effective_amount(row)))
        foreign = (
            f", {amount} {row.currency} at {plain(rate.usd_per_unit)} USD of {from_ms(rate.from_ms).date()}"
        )
    return f"your price{whom}{since}{foreign}{spread}"


def plain(amount: Decimal) -> str:
    """A figure without exponent and trailing zeros, to 12 decimals at most."""
    return f"{round(amount, 12).normalize():f}"


def _no_price(gpu: PricedGpu) -> str:
    if gpu.gpu_key is None:
        return f"{gpu.model or 'a GPU of unknown model'} is in no price list of ours: give your own price"
    return f"the catalogue lists no price of {gpu.gpu_key}: give your own price"
