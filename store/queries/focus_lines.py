"""What an export reads of the ledger: one day's stored lines in a fixed order, and what their keys stand for.

Lines come as the driver gives them, a batch at a time, so that memory stays small whatever the fleet. What keys stand for
(rates, places, owners, bookings) is few and read once; workloads are many and read as they come up.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.clock import to_ms
from core.evidence import Price
from core.ownership import Owner
from core.place import Place
from store.models.ledger_booking import LedgerBookingRow
from store.models.ledger_place import LedgerPlaceRow
from store.models.ledger_rate import LedgerRateRow
from store.models.owner import OwnerRow
from store.models.usage_hour import UsageHourRow

AT_ONCE: Final = 2_000
KEY: Final = (
    *("gpu_id", "from_ms", "to_ms", "kind", "workload_id", "owner_id", "rate_id", "place_id", "booking_id"),
)
"""Columns that come first in a line."""
_ORDER: Final = ", ".join(f"coalesce({name}, 0)" if name.endswith("_id") else name for name in KEY)


@dataclass(frozen=True, slots=True)
class Named:
    """What keys of the ledger stand for. ``bookings``: the time of each, epoch milliseconds."""

    rates: dict[int, Price]
    places: dict[int, Place]
    owners: dict[int, Owner]
    bookings: dict[int, int]


def batches_of_day(
    session: Session, day_ms: int, columns: Sequence[str], without: Collection[int] = ()
) -> Iterator[list[tuple[Any, ...]]]:
    """Lines of one accounting day: ``KEY``, then ``columns``; the same order on every database.

    Args:
        session: open as long as batches are taken. day_ms: start of the accounting day, as in the table.
        columns: of ``ledger_day``, beside ``KEY``. without: GPUs whose lines are left out, by key.
    """
    statement = (
        f"SELECT {', '.join((*KEY, *columns))} FROM ledger_day WHERE day_ms = {int(day_ms)} ORDER BY {_ORDER}"
    )
    left_out = frozenset(without)
    options = {"stream_results": True, "yield_per": AT_ONCE}
    result = session.connection().exec_driver_sql(statement, execution_options=options)
    for rows in result.partitions(AT_ONCE):
        yield [tuple(row) for row in rows if row[0] not in left_out]


def named(session: Session) -> Named:
    """All rates, places, owners and bookings there are."""
    return Named(
        dict(map(_rate, session.scalars(select(LedgerRateRow)))),
        dict(map(_place, session.scalars(select(LedgerPlaceRow)))),
        {row.id: Owner(row.team, row.project, row.cost_centre) for row in session.scalars(select(OwnerRow))},
        {row.id: to_ms(row.booked_at) for row in session.scalars(select(LedgerBookingRow))},
    )


def slices_held(
    session: Session, slice_ids: Collection[int], from_ms: int, to_ms: int
) -> dict[int, list[tuple[int, float]]]:
    """By workload the MIG slices that it held in a span, and for how many seconds; by slice in order."""
    row = UsageHourRow
    statement = (
        select(row.workload_id, row.gpu_id, func.sum(row.allocated_s))
        .where(row.gpu_id.in_(slice_ids), row.hour_ms >= from_ms, row.hour_ms < to_ms)
        .where(row.workload_id.is_not(None))
        .group_by(row.workload_id, row.gpu_id)
        .order_by(row.workload_id, row.gpu_id)
    )
    found: dict[int, list[tuple[int, float]]] = {}
    for workload_id, gpu_id, seconds in session.execute(statement):
        if workload_id is not None and seconds > 0:
            found.setdefault(workload_id, []).append((gpu_id, seconds))
    return found


def _rate(row: LedgerRateRow) -> tuple[int, Price]:
    return row.id, Price(
        usd_per_gpu_hour=row.usd_per_gpu_hour,
        basis=row.basis,
        billing=row.billing,
        gpus_per_unit=row.gpus_per_unit,
        as_of=row.as_of,
        from_user=row.from_user,
        price_id=row.price_id,
        commitment=row.commitment,
        list_usd_per_gpu_hour=row.list_usd_per_gpu_hour,
    )


def _place(row: LedgerPlaceRow) -> tuple[int, Place]:
    return row.id, Place(
        site=row.site,
        usd_per_kwh=row.usd_per_kwh,
        tariff=row.tariff,
        is_time_of_use=row.tariff is not None and row.usd_per_kwh is None,
        pue=row.pue,
        host_share_ratio=row.host_share_ratio,
        host_share_method=row.host_share_method,
        carbon_g_per_kwh=row.carbon_g_per_kwh,
        carbon_code=row.carbon_code,
        carbon_year=row.carbon_year,
        carbon_method=row.carbon_method,
        pays_for_power=row.pays_for_power,
    )
