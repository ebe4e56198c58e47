"""All that a priced hour depends on besides its samples: prices, places, owners, accounting days, as of one moment."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from api.resources.ownership import OwnerLookup, owner_lookup
from api.resources.places import PlaceLookup, place_lookup
from api.resources.pricing import PriceLookup, price_lookup, spec_of
from core.ownership import Owner
from core.readings import WorkloadKey
from core.settings import Settings
from core.units import HOUR_MS
from ledger.calendar import Calendar
from ledger.gpu_lines import Stretch
from ledger.line import Terms, terms_of
from store.ledger_reader import LedgerGpu


@dataclass(slots=True)
class LedgerBook:
    """Price and place of a GPU's hours, and the owner of a line.

    Price, place and owner of an hour are those in force at its start.
    """

    prices: PriceLookup
    places: PlaceLookup
    owners: OwnerLookup
    calendar: Calendar
    _terms: dict[tuple[int, int], Terms] = field(init=False, default_factory=dict)
    _kept: list[object] = field(init=False, default_factory=list)
    _owned: dict[tuple[int | None, str | None, int], Owner | None] = field(init=False, default_factory=dict)

    def stretches(self, gpu: LedgerGpu, from_ms: int, to_ms: int) -> list[Stretch]:
        """Whole hours from ``from_ms`` to ``to_ms``, cut where the price, place or owner of a line may change."""
        spec = spec_of(gpu.identity)
        gpu_key = None if spec is None else spec.gpu_key
        starts = {from_ms, *_hours_after(self.prices.borders, from_ms, to_ms)}
        starts.update(_hours_after(self.places.borders, from_ms, to_ms))
        starts.update(_hours_after(self.owners.borders, from_ms, to_ms))
        edges = [*sorted(starts), to_ms]
        found: list[Stretch] = []
        for at, start in enumerate(edges[:-1]):
            end = edges[at + 1]
            price = self.prices(gpu.identity, gpu_key, start)
            place = self.places(gpu.identity.host, start)
            if not place.is_time_of_use:
                found.append(Stretch(start, end, price, place, self._terms_of(price, place)))
                continue
            for hour_ms in range(start, end, HOUR_MS):
                place = self.places(gpu.identity.host, hour_ms)
                found.append(Stretch(hour_ms, hour_ms + HOUR_MS, price, place, self._terms_of(price, place)))
        return found

    def owner(
        self, gpu: LedgerGpu, workload_id: int | None, workloads: Mapping[int, WorkloadKey], hour_ms: int
    ) -> Owner | None:
        """Owner of a workload's line, or (None) of the GPU's own; None: unowned."""
        host = gpu.identity.host
        key = (workload_id, host, bisect_right(self.owners.borders, hour_ms))
        if key not in self._owned:
            workload = None if workload_id is None else workloads[workload_id]
            self._owned[key] = self.owners(workload, host, hour_ms)
        return self._owned[key]

    def _terms_of(self, price: object, place: object) -> Terms:
        # By identity: lookups give the same object for the same answer, and hashing it costs more than an hour's lines.
        key = (id(price), id(place))
        terms = self._terms.get(key)
        if terms is None:
            self._kept += [price, place]  # so that no other object can take their place in memory
            terms = self._terms[key] = terms_of(price, place)  # type: ignore[arg-type]
        return terms


def ledger_book(session: Session, settings: Settings) -> LedgerBook:
    """The book as everything stands now."""
    return LedgerBook(
        price_lookup(session, settings),
        place_lookup(session, settings),
        owner_lookup(session),
        Calendar(settings.accounting_time_zone),
    )


def _hours_after(borders: Sequence[int], from_ms: int, to_ms: int) -> list[int]:
    """First hours after borders, within a span."""
    first, last = bisect_right(borders, from_ms), bisect_left(borders, to_ms)
    starts = (border + -border % HOUR_MS for border in borders[first:last])
    return [start for start in starts if start < to_ms]
