"""What a GPU costs to rent: the price list, and the median on-demand price of a model.

US dollars for one GPU-hour. List prices are for a whole instance; they are divided by its GPU count, host included.
The median gives every provider one vote (first the median of a provider's own rows), because one provider lists
twenty shapes of a card and another one. Rows that are no on-demand price of a usable machine (``not_comparable``: the
cheapest offer of a marketplace, a GPU without its host) and rows that do not say which card they are for have no vote.

Source: ``catalog/data/gpu_prices.csv``; provider price APIs and pages, SkyPilot catalogue, tardellirs/gpu-pricing
(MIT), dated row by row. Shipped prices age: always show ``as_of`` and warn above 90 days.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from statistics import median
from typing import Final

from catalog.loader import Cells, first_day, packaged, read_rows
from catalog.price_keys import GPU_KEYS, MARKET_OF
from core.clock import to_ms

FILE: Final = "gpu_prices.csv"
COLUMNS: Final = (
    "provider",
    "instance_type",
    "gpu_model",
    "form_factor",
    "gpu_memory_gb",
    "gpu_count",
    "region",
    "on_demand_usd_per_hour",
    "spot_usd_per_hour",
    "reserved_1y_usd_per_hour",
    "reserved_3y_usd_per_hour",
    "on_demand_usd_per_gpu_hour",
    "as_of_date",
    "source",
    "confidence",
    "not_comparable",
    "notes",
)
STALE_DAYS: Final = 90
"""Specialist clouds moved H100 rates by 20-33 % within six months of 2026 (cost-model 1)."""
_SAME_USD: Final = Decimal("0.00001")


@dataclass(frozen=True, slots=True)
class CatalogPrice:
    """One row of the price list, per GPU-hour; None: not offered or not known.

    Attributes:
        gpu_key: the card it is for; None when the row says too little (``catalog.price_keys.UNMAPPED``).
        gpu_count: GPUs of the instance; they are rented together.
        as_of: ISO date, possibly only the year or month.
        not_comparable: why the row has no vote in the median; None: it has one.
    """

    provider: str
    instance_type: str
    gpu_model: str
    form_factor: str
    memory_gb: float
    gpu_count: int
    region: str
    on_demand_usd_per_gpu_hour: Decimal | None
    spot_usd_per_gpu_hour: Decimal | None
    reserved_1y_usd_per_gpu_hour: Decimal | None
    reserved_3y_usd_per_gpu_hour: Decimal | None
    as_of: str
    source: str
    confidence: str
    not_comparable: str | None
    notes: str

    @property
    def gpu_key(self) -> str | None:
        """Key of the GPU spec this price is for."""
        return GPU_KEYS.get((self.gpu_model, self.form_factor, self.memory_gb))


@dataclass(frozen=True, slots=True)
class MedianPrice:
    """What one GPU-hour of a model costs on demand.

    Attributes:
        usd_per_gpu_hour: median over providers. low, high: cheapest and dearest provider.
        row_count, provider_count: rows and providers behind it.
        as_of: date of the newest row, ISO, possibly reduced.
        gpus_per_unit: GPUs rented together in most rows; on a tie the larger, so that no saving is claimed for part of a node.
        market_key: the model whose market it is (another one for a card that nobody rents out).
        basis: for people; names the card, because several prices stand side by side.
    """

    gpu_key: str
    usd_per_gpu_hour: Decimal
    low: Decimal
    high: Decimal
    row_count: int
    provider_count: int
    as_of: str
    gpus_per_unit: int
    market_key: str
    basis: str


def _parse(cells: Cells) -> CatalogPrice:
    count = cells.whole("gpu_count", low=1)

    def per_gpu(column: str) -> Decimal | None:
        usd = cells.money_or_none(column)
        return None if usd is None else usd / count

    on_demand = per_gpu("on_demand_usd_per_hour")
    stated = cells.money_or_none("on_demand_usd_per_gpu_hour")
    if (on_demand is None) != (stated is None) or (
        on_demand is not None and stated is not None and abs(on_demand - stated) > _SAME_USD
    ):
        raise cells.bad(
            "on_demand_usd_per_gpu_hour",
            "is not the instance's price over its GPU count",
            "correct one of the three",
        )
    return CatalogPrice(
        provider=cells.text("provider"),
        instance_type=cells.text("instance_type"),
        gpu_model=cells.text("gpu_model"),
        form_factor=cells.values["form_factor"],
        memory_gb=cells.number("gpu_memory_gb", low=1.0),
        gpu_count=count,
        region=cells.text("region"),
        on_demand_usd_per_gpu_hour=on_demand,
        spot_usd_per_gpu_hour=per_gpu("spot_usd_per_hour"),
        reserved_1y_usd_per_gpu_hour=per_gpu("reserved_1y_usd_per_hour"),
        reserved_3y_usd_per_gpu_hour=per_gpu("reserved_3y_usd_per_hour"),
        as_of=cells.day_text("as_of_date"),
        source=cells.text("source"),
        confidence=cells.choice("confidence", ("high", "medium", "low")),
        not_comparable=cells.text_or_none("not_comparable"),
        notes=cells.values["notes"],
    )


@cache
def prices() -> tuple[CatalogPrice, ...]:
    """All rows of the price list, in the file's order."""
    return read_rows(packaged(FILE), COLUMNS, _parse)


def votes(gpu_key: str) -> tuple[tuple[CatalogPrice, Decimal], ...]:
    """Rows with a vote in the on-demand median of that model, and their price."""
    return tuple(
        (row, row.on_demand_usd_per_gpu_hour)
        for row in prices()
        if row.gpu_key == gpu_key
        and row.on_demand_usd_per_gpu_hour is not None
        and row.not_comparable is None
    )


@cache
def median_on_demand(gpu_key: str | None) -> MedianPrice | None:
    """Median on-demand price of a model; None when the list has no comparable row of it."""
    if gpu_key is None:
        return None
    market_key = MARKET_OF.get(gpu_key, gpu_key)
    rows = votes(market_key)
    if not rows:
        return None
    by_provider: dict[str, list[Decimal]] = {}
    for row, usd in rows:
        by_provider.setdefault(row.provider, []).append(usd)
    medians = [median(own) for own in by_provider.values()]
    as_of = max(row.as_of for row, _ in rows)
    where = "1 provider" if len(medians) == 1 else f"{len(medians)} providers"
    stand_in = "" if market_key == gpu_key else f" ({gpu_key} has no market of its own)"
    return MedianPrice(
        gpu_key=gpu_key,
        usd_per_gpu_hour=median(medians),
        low=min(medians),
        high=max(medians),
        row_count=len(rows),
        provider_count=len(medians),
        as_of=as_of,
        gpus_per_unit=_commonest(row.gpu_count for row, _ in rows),
        market_key=market_key,
        basis=f"catalogue: median on-demand of {market_key}{stand_in}, {where}, {as_of}",
    )


def _commonest(counts: Iterable[int]) -> int:
    tally = Counter(counts)
    return max(tally, key=lambda count: (tally[count], count))


def age_days(as_of: str, now: date) -> int:
    """Days since ``as_of``; a date without day or month counts from its first day."""
    return (now - first_day(as_of)).days


def is_stale_at(price: MedianPrice, at_ms: int) -> bool:
    """Whether an hour is more than 90 days after the newest row behind a price."""
    return at_ms >= _stale_from_ms(price)


def stale_from_ms(gpu_key: str | None) -> int | None:
    """From when on the price of a model is older than 90 days; None when the list has none."""
    price = median_on_demand(gpu_key)
    return None if price is None else _stale_from_ms(price)


@cache
def stale_borders_ms() -> frozenset[int]:
    """When the price of any model grows older than 90 days."""
    found = (stale_from_ms(gpu_key) for gpu_key in {*GPU_KEYS.values(), *MARKET_OF})
    return frozenset(at_ms for at_ms in found if at_ms is not None)


def _stale_from_ms(price: MedianPrice) -> int:
    last = first_day(price.as_of) + timedelta(days=STALE_DAYS + 1)
    return to_ms(datetime(last.year, last.month, last.day, tzinfo=UTC))
