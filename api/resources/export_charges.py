"""Lines of the ledger with all they refer to, day by day: stored ones, and those of days that wait, priced on the fly.

A closed month is what was booked: its stored lines, corrections among them, also while further changes wait.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final

from api.resources.ledger_book import LedgerBook, ledger_book
from api.resources.ledger_hours import PricedLine, priced_lines
from api.resources.ledger_reading import Reading, reading
from api.resources.pricing import spec_of
from api.resources.scope import Scope
from catalog.cloud_regions import regions
from core.evidence import Price, Window
from core.ownership import HostFacts
from core.place import Place
from core.readings import GpuIdentity, WorkloadKey
from core.user_price import UserPrice
from ledger.calendar import Span, utc_month_parts
from ledger.day_lines import REST, DayLines
from ledger.exchange import Exchange
from ledger.focus import Amounts, Charge, Resource, over_slices
from ledger.focus_commitments import invoiced
from ledger.gpu_lines import Stretch
from store.known import known_gpus
from store.ledger_reader import LedgerGpu
from store.mig_slices import slices_of_cards
from store.queries import exchange_rates, ledger_months, prices
from store.queries.focus_lines import Named, batches_of_day, named, slices_held
from store.queries.host_facts import host_facts
from store.queries.workloads import workload_keys

WORKLOADS_KEPT: Final = 20_000
"""Then they are read anew: a fleet has many jobs in a month, and few of them on more than a day or two."""
_AT: Final = tuple(REST.index(name) for name in Amounts._fields)


@dataclass(slots=True)
class Charges:
    """What an export of a window reads.

    Attributes:
        scope: session, settings, now; its window is that of the export, whole accounting days.
        days: accounting days in it. found: which of them are read where.
        closed: spans of closed months. book: prices, places and owners now.
        known: what keys of stored lines stand for. resources: cards and slices by key.
        cards: of each card the keys of its slices, with their share of its compute.
        user_prices: by key. exchange: rates of their currencies.
    """

    scope: Scope
    days: list[Span]
    found: Reading
    closed: list[tuple[int, int]]
    book: LedgerBook
    known: Named
    resources: dict[int, Resource]
    cards: dict[int, dict[int, float]]
    user_prices: dict[int, UserPrice]
    exchange: Exchange
    _workloads: dict[int, WorkloadKey] = field(init=False, default_factory=dict)
    _waiting: dict[int, set[int]] = field(init=False, default_factory=dict)
    _asked: dict[tuple[int, int], int | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Sort by day what is priced on the fly."""
        for gpu_id, day_ms in self.found.without:
            self._waiting.setdefault(day_ms, set()).add(gpu_id)

    def is_closed(self, day: Span) -> bool:
        """The day is in a month that was closed."""
        return any(start <= day.from_ms < end for start, end in self.closed)

    @property
    def waiting_in_closed(self) -> int:
        """GPU-days of closed months with changes that are not booked yet."""
        spans = {day.start_ms for day in self.days if self.is_closed(day)}
        return sum(len(gpus) for day_ms, gpus in self._waiting.items() if day_ms in spans)

    def of_day(self, day: Span) -> Iterator[Charge]:
        """Lines of a day, those on MIG slices divided among them."""
        held = self._slices_held(day)
        for gpu_id, workload_id, charge in self._lines(day):
            slices = held.get((gpu_id, workload_id)) if workload_id is not None else None
            if slices is None:
                yield charge
            else:
                yield from over_slices(charge, slices)

    def _lines(self, day: Span) -> Iterator[tuple[int, int | None, Charge]]:
        closed = self.is_closed(day)
        stored = self.found.stored
        if closed or (stored is not None and stored[0] <= day.start_ms < stored[1]):
            without = () if closed else self._waiting.get(day.start_ms, ())
            for rows in batches_of_day(self.scope.session, day.start_ms, Amounts._fields, without):
                self._read_workloads({row[4] for row in rows if row[4] is not None})
                for row in rows:
                    yield row[0], row[4], self._stored(row)
        if closed:
            return
        for from_ms, to_ms, gpu_ids in self.found.on_the_fly:
            start, end = max(from_ms, day.from_ms), min(to_ms, day.to_ms)
            if start < end:
                yield from self._on_the_fly(start, end, gpu_ids)

    def _stored(self, row: Sequence[Any]) -> Charge:
        gpu_id, from_ms, to_ms, kind, workload_id, owner_id, rate_id, place_id, booking_id = row[:9]
        known = self.known
        price = None if rate_id is None else known.rates[rate_id]
        return Charge(
            from_ms=from_ms,
            to_ms=to_ms,
            resource=self.resources[gpu_id],
            kind=kind,
            workload=None if workload_id is None else self._workloads[workload_id],
            owner=None if owner_id is None else known.owners[owner_id],
            price=price,
            invoiced=self._invoiced(price, from_ms),
            place=known.places[place_id],
            amounts=Amounts(*row[9:]),
            correction=None if booking_id is None else (booking_id, known.bookings[booking_id]),
        )

    def _on_the_fly(
        self, from_ms: int, to_ms: int, gpu_ids: Collection[int] | None
    ) -> Iterator[tuple[int, int | None, Charge]]:
        """Hours of a day priced now and added up as stored lines are."""
        lines = priced_lines(self.scope, from_ms, to_ms, gpu_ids=gpu_ids, book=self.book)
        for gpu_id, of_gpu in groupby(lines, key=lambda one: one.gpu.id):
            parts: _Parts | None = None
            total = DayLines()
            whose: dict[tuple[Any, ...], tuple[PricedLine, int, int]] = {}
            for one in of_gpu:
                if parts is None:
                    parts = _Parts(self.book, one.gpu, from_ms, to_ms)
                start, end = parts.around(one.hour_ms)
                key = (start, end, one.line.kind, one.line.workload, one.owner, one.price, _kept(one.place))
                whose.setdefault(key, (one, start, end))
                total.add(key, one.line)
            for key, row in total.rows().items():
                one, start, end = whose[key]
                yield (
                    gpu_id,
                    one.line.workload,
                    Charge(
                        from_ms=start,
                        to_ms=end,
                        resource=self.resources[gpu_id],
                        kind=one.line.kind,
                        workload=one.workload,
                        owner=one.owner,
                        price=one.price,
                        invoiced=self._invoiced(one.price, start),
                        place=_kept(one.place),
                        amounts=Amounts(*(row[at] for at in _AT)),
                        correction=None,
                    ),
                )

    def _invoiced(self, price: Price | None, at_ms: int) -> int | None:
        """What is asked for an hour beside the upfront, by the price as it is kept now; None: nothing was paid upfront."""
        if price is None or price.price_id is None:
            return None
        key = (price.price_id, at_ms)
        if key not in self._asked:
            of_user = self.user_prices.get(price.price_id)
            per_unit = None if of_user is None else self.exchange.usd_per_unit(of_user.currency, at_ms)
            known = of_user is not None and per_unit is not None
            self._asked[key] = invoiced(of_user, per_unit) if known and of_user and per_unit else None
        return self._asked[key]

    def _read_workloads(self, ids: set[int]) -> None:
        if len(self._workloads) > WORKLOADS_KEPT:
            self._workloads.clear()
        new = sorted(ids.difference(self._workloads))
        self._workloads.update(workload_keys(self.scope.session, new))

    def _slices_held(self, day: Span) -> dict[tuple[int, int], list[tuple[Resource, int]]]:
        """By card and workload the slices that it held on a day, with weights: compute × time."""
        found: dict[tuple[int, int], list[tuple[Resource, int]]] = {}
        if not self.cards:
            return found
        card_of = {slice_id: card for card, slices in self.cards.items() for slice_id in slices}
        held = slices_held(self.scope.session, list(card_of), day.from_ms, day.to_ms)
        for workload_id, slices in held.items():
            for slice_id, seconds in slices:
                card = card_of[slice_id]
                weight = max(1, round(seconds * 1000 * self.cards[card][slice_id]))
                found.setdefault((card, workload_id), []).append((self.resources[slice_id], weight))
        return found


class _Parts:
    """Spans of a GPU's day in which its price is the same, within one month in UTC."""

    def __init__(self, book: LedgerBook, gpu: LedgerGpu, from_ms: int, to_ms: int) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in utc_month_parts(from_ms, to_ms):
            before: Stretch | None = None
            for stretch in book.stretches(gpu, start, end):
                if before is not None and stretch.price == before.price:
                    self._ends[-1] = stretch.to_ms
                else:
                    self._starts.append(stretch.from_ms)
                    self._ends.append(stretch.to_ms)
                before = stretch

    def around(self, hour_ms: int) -> tuple[int, int]:
        """The span that an hour lies in."""
        at = bisect_right(self._starts, hour_ms) - 1
        return self._starts[at], self._ends[at]


def read_charges(scope: Scope, data: Window) -> Charges:
    """Everything an export of the scope's window needs but its lines; ``data``: when anything was known."""
    session = scope.session
    window = Window(max(scope.window.from_ms, data.from_ms), min(scope.window.to_ms, data.to_ms))
    book = ledger_book(session, scope.settings)
    gpus = known_gpus(session.connection())
    facts = host_facts(session)
    places = slices_of_cards(gpu.identity for gpu in gpus)
    ids = {gpu.identity.gpu_uuid: gpu.id for gpu in gpus}
    cards: dict[int, dict[int, float]] = {}
    for uuid, place in places.items():
        cards.setdefault(ids[place.card_uuid], {})[ids[uuid]] = place.share
    return Charges(
        scope=scope,
        days=book.calendar.days(window.from_ms, window.to_ms),
        found=reading(scope),
        closed=[(month.from_ms, month.to_ms) for month in ledger_months.listing(session)],
        book=book,
        known=named(session),
        resources={
            gpu.id: resource_of(
                gpu.identity,
                facts.get(gpu.identity.host or ""),
                places[gpu.identity.gpu_uuid].card_uuid if gpu.identity.gpu_uuid in places else None,
            )
            for gpu in gpus
        },
        cards=cards,
        user_prices={price.id: price for price in prices.listing(session)},
        exchange=Exchange(exchange_rates.listing(session)),
    )


def resource_of(gpu: GpuIdentity, facts: HostFacts | None, card_id: str | None = None) -> Resource:
    """A card or slice as rows name it."""
    spec = spec_of(gpu)
    name = None if gpu.host is None else f"{gpu.host}/gpu{'' if gpu.index is None else gpu.index}"
    if gpu.is_slice and name is not None:
        name = f"{name}/{(gpu.model or '').rpartition(' MIG ')[2] or 'slice'}"
    region = None if facts is None else facts.region
    labels: Mapping[str, str] = {} if facts is None else dict(facts.labels)
    return Resource(
        resource_id=gpu.gpu_uuid,
        name=name,
        sku=spec.gpu_key if spec is not None else gpu.model or "GPU",
        model=None if gpu.model is None else gpu.model.partition(" MIG ")[0],
        host=gpu.host,
        region=region,
        region_name=None if region is None else _region_name(region, labels.get("provider")),
        cluster=None if facts is None else facts.cluster,
        instance_type=None if facts is None else facts.instance_type,
        labels=labels,
        card_id=card_id,
    )


def _region_name(region: str, provider: str | None) -> str:
    """Where a cloud's region is, as its provider says; its own name where that cannot be told."""
    named_so = [
        row
        for row in regions()
        if row.region == region and provider in {None, row.provider, row.provider.upper()}
    ]
    return named_so[0].location if len(named_so) == 1 else region


def _kept(place: Place) -> Place:
    """A place by time of use without the price of one hour, as stored lines have it."""
    return replace(place, usd_per_kwh=None) if place.is_time_of_use else place
