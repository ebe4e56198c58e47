"""The price of a GPU at a time, asked often: what was found once is kept until the next border."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from catalog.gpu_prices import stale_borders_ms, stale_from_ms
from core.evidence import Price
from core.ownership import HostFacts
from core.readings import GpuIdentity
from core.user_price import UserPrice
from ledger.exchange import Exchange
from ledger.prices import PriceBook, PricedGpu, Unpriced, borders_of, price_of


@dataclass(slots=True)
class _Course:
    """The price of GPUs that are priced alike, over time."""

    ranks: tuple[tuple[UserPrice, ...], ...]
    gpu: PricedGpu
    borders: list[int]
    known: dict[int, Price | Unpriced] = field(default_factory=dict)


@dataclass(slots=True)
class PriceLookup:
    """Price of a GPU at a time: the user's most specific row in force, else the catalogue's median, else None.

    A price changes only at one of ``borders`` (ascending): where a row begins or ends, a rate of a currency in use
    changes, or a catalogue price grows older than 90 days. GPUs that the same rows are for share what was found, so
    that a fleet of one kind is priced once per border, however many cards it has.

    Attributes:
        rows: the user's prices. exchange: rates of their currencies.
        host_gpu_counts: cards by host, the unit of a row that names none. facts: what the user says about hosts, by name.
    """

    rows: Sequence[UserPrice] = ()
    exchange: Exchange = field(default_factory=Exchange)
    host_gpu_counts: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, HostFacts] = field(default_factory=dict)
    borders: list[int] = field(init=False)
    _book: PriceBook = field(init=False)
    _by_gpu: dict[tuple[str, str | None], _Course] = field(init=False, default_factory=dict)
    _alike: dict[object, _Course] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Collect the times at which any price changes."""
        self._book = PriceBook(self.rows, self.exchange)
        self.borders = sorted(self._borders(self.rows) | stale_borders_ms())

    def __call__(self, identity: GpuIdentity, gpu_key: str | None, at_ms: int) -> Price | None:
        """Price in force at ``at_ms``; a MIG slice has none, because its card is priced."""
        found = self.answer(identity, gpu_key, at_ms)
        return found if isinstance(found, Price) else None

    def answer(self, identity: GpuIdentity, gpu_key: str | None, at_ms: int) -> Price | Unpriced:
        """The price, or why there is none."""
        if identity.is_slice:
            return Unpriced("a slice has no price: its card is priced")
        course = self._by_gpu.get((identity.gpu_uuid, gpu_key))
        if course is None:
            course = self._by_gpu[identity.gpu_uuid, gpu_key] = self._course(identity, gpu_key)
        index = bisect_right(course.borders, at_ms)
        found = course.known.get(index)
        if found is None:
            found = course.known[index] = price_of(course.ranks, self.exchange, course.gpu, at_ms)
        return found

    def _course(self, identity: GpuIdentity, gpu_key: str | None) -> _Course:
        host = identity.host
        gpu = PricedGpu(
            gpu_uuid=identity.gpu_uuid,
            host=host,
            model=identity.model,
            gpu_key=gpu_key,
            facts=None if host is None else self.facts.get(host),
            host_gpu_count=None if host is None else self.host_gpu_counts.get(host),
        )
        ranks = self._book.rows_for(gpu)
        rows = [row for rank in ranks for row in rank]
        model = identity.model if gpu_key is None else None  # the catalogue's sentence names it
        alike = (tuple(row.id for row in rows), tuple(map(len, ranks)), gpu_key, model, gpu.host_gpu_count)
        course = self._alike.get(alike)
        if course is None:
            aged_ms = stale_from_ms(gpu_key)
            borders = self._borders(rows) | (set() if aged_ms is None else {aged_ms})
            course = self._alike[alike] = _Course(ranks, gpu, sorted(borders))
        return course

    def _borders(self, rows: Sequence[UserPrice]) -> set[int]:
        found = self.exchange.borders({row.currency for row in rows})
        return found.union(*(borders_of(row) for row in rows))
