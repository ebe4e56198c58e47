"""Hours priced on the fly: for parts of days, days that wait to be written, and questions by the hour."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from api.resources.ledger_book import LedgerBook, ledger_book
from api.resources.scope import Scope
from core.evidence import Price
from core.ownership import Owner
from core.place import Place
from core.readings import WorkloadKey
from core.units import HOUR_MS
from ledger.gpu_lines import GpuHours, gpu_lines
from ledger.line import Line
from store.ledger_reader import LedgerGpu, hour_rows, ledger_gpus, use_rows
from store.queries.workloads import workload_keys

HOURS_AT_ONCE: Final = 20_000
"""GPU-hours read together: some 20 MB."""


class PricedLine(NamedTuple):
    """A line of one GPU's hour, with what it was priced with.

    Attributes:
        gpu: whose. hour_ms: start of the hour (UTC). line: time, energy, money; sums of lines are exact.
        workload: who held it; None on the GPU's own lines (see ``line.kind``). owner: who pays; None: unowned.
        price: None: unpriced, and then ``line.cost_usd`` is None. place: where its energy terms are from.
    """

    gpu: LedgerGpu
    hour_ms: int
    line: Line
    workload: WorkloadKey | None
    owner: Owner | None
    price: Price | None
    place: Place


def priced_lines(
    scope: Scope,
    from_ms: int,
    to_ms: int,
    gpu_uuids: Collection[str] | None = None,
    *,
    gpu_ids: Collection[int] | None = None,
    book: LedgerBook | None = None,
) -> Iterator[PricedLine]:
    """Lines of every hour that begins from ``from_ms`` (inclusive) to ``to_ms`` (exclusive), priced now.

    The same code that writes ``ledger_day``: what it gives adds up to the same micro-dollar. Lines come GPU by GPU (in
    no order that matters), each GPU's by time. Costs some 20 µs a GPU-hour: meant for the edges of a window and for
    days that are pending, not for a month of a fleet.

    Args:
        scope: session and settings; its window is not looked at.
        from_ms, to_ms: starts of clock hours (others are moved up to the next).
        gpu_uuids, gpu_ids: only these, by UUID or by key; default all.
        book: prices, places and owners, where they are read already.
    """
    from_ms, to_ms = from_ms + -from_ms % HOUR_MS, to_ms + -to_ms % HOUR_MS
    read = ledger_book(scope.session, scope.settings) if book is None else book
    gpus = [
        gpu
        for gpu in ledger_gpus(scope.session.connection(), gpu_ids)
        if gpu_uuids is None or gpu.identity.gpu_uuid in gpu_uuids
    ]
    at_once = max(1, HOURS_AT_ONCE * HOUR_MS // max(HOUR_MS, to_ms - from_ms))
    for start in range(0, len(gpus), at_once):
        yield from _lines(scope.session, read, gpus[start : start + at_once], from_ms, to_ms)


def _lines(
    session: Session, book: LedgerBook, gpus: Sequence[LedgerGpu], from_ms: int, to_ms: int
) -> Iterator[PricedLine]:
    connection = session.connection()
    ids = [gpu.id for gpu in gpus]
    hours = hour_rows(connection, ids, from_ms, to_ms)
    uses = use_rows(connection, ids, from_ms, to_ms)
    workloads = workload_keys(session, workloads_in(uses.values()))
    for gpu in gpus:
        first_ms = max(gpu.first_ms, gpu.purged_until_ms)
        if gpu.purged_until_ms > from_ms:
            hours[gpu.id] = {at: row for at, row in hours[gpu.id].items() if at >= gpu.purged_until_ms}
        if not hours[gpu.id] and (gpu.until_ms <= from_ms or first_ms >= to_ms):
            continue
        stretches = book.stretches(gpu, from_ms, to_ms)
        known = GpuHours(hours[gpu.id], uses[gpu.id], first_ms, gpu.until_ms)
        for hour_ms, stretch, line in gpu_lines(stretches, known):
            workload_id = line.workload
            yield PricedLine(
                gpu,
                hour_ms,
                line,
                None if workload_id is None else workloads[workload_id],
                book.owner(gpu, workload_id, workloads, hour_ms),
                stretch.price,
                stretch.place,
            )


def workloads_in(uses: Collection[Any]) -> set[int]:
    """Keys of the workloads in usage rows by hour."""
    found = {row[0] for of_gpu in uses for of_hour in of_gpu.values() for row in of_hour}
    return found - {None}
