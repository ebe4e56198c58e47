"""Stored lines of the ledger added up by accounting day, host and owner: what forecasts and budgets read."""

from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.ownership import Owner
from store.models.host import HostRow
from store.models.owner import OwnerRow

AT_ONCE: Final = 500
_SUMS: Final = (
    "CAST(sum(line.known_ms) AS bigint), CAST(sum(line.covered_ms) AS bigint), "
    "CAST(sum(CASE WHEN line.rate_id IS NULL THEN 0 ELSE line.known_ms END) AS bigint), "
    "CAST(coalesce(sum(line.cost_usd), 0) + "
    "coalesce(sum(CASE WHEN line.rate_id IS NULL THEN 0 ELSE line.billed_energy_usd END), 0) AS bigint)"
)


class DaySum(NamedTuple):
    """What the GPUs of a host cost an owner (None: nobody) on one accounting day, by its start.

    ``priced_ms`` is the part of ``known_ms`` that has a price; ``micro_usd`` holds what power adds to
    the bill of that part.
    """

    day_ms: int
    host: str | None
    owner: Owner | None
    known_ms: int
    covered_ms: int
    priced_ms: int
    micro_usd: int


def day_sums(
    session: Session, from_day_ms: int, to_day_ms: int, without: Collection[tuple[int, int]] = ()
) -> Iterator[DaySum]:
    """Sums of accounting days that begin in a span, corrections among them.

    Args:
        from_day_ms, to_day_ms: starts of days, inclusive and exclusive.
        without: GPU and start of the day of those to leave out. Their sums come once more with the sign turned, so that
            what is added up is without them.
    """
    hosts = {key: name for key, name in session.execute(select(HostRow.id, HostRow.name))}  # noqa: C416 - rows are no pairs to mypy
    owners = {
        row.id: Owner(row.team, row.project, row.cost_centre) for row in session.scalars(select(OwnerRow))
    }
    where = f"line.day_ms >= {int(from_day_ms)} AND line.day_ms < {int(to_day_ms)}"
    for day_ms, host, owner, *amounts in _rows(session, "", where):
        yield DaySum(day_ms, hosts.get(host), owners.get(owner), *amounts)
    skipped = frozenset(without)
    gpu_ids = sorted({gpu_id for gpu_id, _ in skipped})
    for first in range(0, len(gpu_ids), AT_ONCE):
        listed = ", ".join(str(int(gpu_id)) for gpu_id in gpu_ids[first : first + AT_ONCE])
        for gpu_id, day_ms, host, owner, *amounts in _rows(
            session, "line.gpu_id, ", f"{where} AND line.gpu_id IN ({listed})"
        ):
            if (gpu_id, day_ms) in skipped:
                yield DaySum(day_ms, hosts.get(host), owners.get(owner), *(-amount for amount in amounts))


def _rows(session: Session, more: str, where: str) -> list[Any]:
    keys = f"{more}line.day_ms, gpu.host_id, line.owner_id"
    statement = (
        f"SELECT {keys}, {_SUMS} FROM ledger_day AS line JOIN gpu ON gpu.id = line.gpu_id "
        f"WHERE {where} GROUP BY {keys}"
    )
    return list(session.connection().exec_driver_sql(statement))
