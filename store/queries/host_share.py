"""Measured shares of hosts: told anew whenever days of a host or of its GPUs are folded, and read by month.

A share that changes marks the ledger's days of the host's GPUs in the same transaction.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from secrets import randbits
from typing import Final

from sqlalchemy import BigInteger, Connection, bindparam, delete, func, select, text
from sqlalchemy.orm import Session

from core.days import day_of
from core.host_share import Drawn, measured_share
from core.readings import SLICE_PREFIX
from core.units import DAY_MS
from store.bulk import replace_rows
from store.models.gpu import GpuRow
from store.models.gpu_day import GpuDayRow
from store.models.host import HostRow
from store.models.host_day import HostDayRow
from store.models.host_share import HostShareRow

BLOCK_DAYS: Final = 32
"""Days read at once: about a month of every host."""
HostDay = tuple[int, int]
"""Key of a host, and a day."""


def follow_days(connection: Connection, folded: Iterable[tuple[str, int, int]]) -> None:
    """Tell shares anew after days were folded, in the transaction that folded them.

    Args:
        folded: kind (``gpu``, ``host``; others do not matter), key and day of each.
    """
    wanted = _host_days(connection, folded)
    if not wanted:
        return
    hosts, days = {host for host, _ in wanted}, [day for _, day in wanted]
    # In order, and until the end: two that fold GPUs of one host must not miss what the other wrote.
    connection.execute(
        select(HostRow.id).where(HostRow.id.in_(hosts)).order_by(HostRow.id).with_for_update(key_share=True)
    )
    first, last = min(days), max(days)
    row = HostShareRow
    stored = {
        (host, day): ratio
        for host, day, ratio in connection.execute(
            select(row.host_id, row.day_ms, row.ratio).where(
                row.host_id.in_(hosts), row.day_ms >= first, row.day_ms <= last
            )
        )
        if (host, day) in wanted
    }
    told = {at: ratio for at, ratio in _told(connection, hosts, first, last).items() if at in wanted}
    changed = sorted(at for at in told.keys() | stored.keys() if told.get(at) != stored.get(at))
    _write(connection, changed, told)


@dataclass(slots=True)
class HostShares:
    """Measured share of a host on a UTC day, read when asked for; None: not measured."""

    session: Session
    _blocks: dict[int, dict[tuple[str, int], float]] = field(init=False, default_factory=dict)

    def __call__(self, host: str, at_ms: int) -> float | None:
        """Share of that host on the day of that time."""
        day_ms = day_of(at_ms)
        number = day_ms // (BLOCK_DAYS * DAY_MS)
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = self._read(number * BLOCK_DAYS * DAY_MS)
        return block.get((host, day_ms))

    def _read(self, from_ms: int) -> dict[tuple[str, int], float]:
        row = HostShareRow
        statement = (
            select(HostRow.name, row.day_ms, row.ratio)
            .join(HostRow, HostRow.id == row.host_id)
            .where(row.day_ms >= from_ms, row.day_ms < from_ms + BLOCK_DAYS * DAY_MS)
        )
        return {(name, day_ms): ratio for name, day_ms, ratio in self.session.execute(statement)}

    def borders(self) -> range:
        """Starts of the days from the first with a share to the one after the last."""
        first, last = self.session.execute(
            select(func.min(HostShareRow.day_ms), func.max(HostShareRow.day_ms))
        ).one()
        return range(0) if first is None else range(first, last + 2 * DAY_MS, DAY_MS)


def _host_days(connection: Connection, folded: Iterable[tuple[str, int, int]]) -> set[HostDay]:
    """Hosts and days whose share may be another now."""
    by_kind: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for kind, key, day_ms in folded:
        by_kind[kind].append((key, day_ms))
    wanted = set(by_kind["host"])
    gpus = {key for key, _ in by_kind["gpu"]}
    if gpus:
        row = GpuRow
        found = connection.execute(
            select(row.id, row.host_id).where(row.id.in_(gpus), row.host_id.is_not(None))
        )
        host_of: dict[int, int] = dict(found.all())  # type: ignore[arg-type]  # the query leaves out NULL
        wanted |= {(host_of[key], day_ms) for key, day_ms in by_kind["gpu"] if key in host_of}
    return wanted


def _told(connection: Connection, hosts: set[int], first: int, last: int) -> dict[HostDay, float]:
    """Shares of hosts with known power over some days."""
    day = HostDayRow
    powers = {
        (host, day_ms): Drawn(power_w, covered_s)
        for host, day_ms, power_w, covered_s in connection.execute(
            select(day.host_id, day.day_ms, day.host_power_w, day.covered_s).where(
                day.host_id.in_(hosts),
                day.day_ms >= first,
                day.day_ms <= last,
                day.host_power_w.is_not(None),
            )
        )
        if power_w is not None
    }
    if not powers:
        return {}
    gpu = GpuDayRow
    drawn: dict[HostDay, list[Drawn | None]] = defaultdict(list)
    for host, day_ms, energy_j, covered_s in connection.execute(
        select(GpuRow.host_id, gpu.day_ms, gpu.energy_j, gpu.energy_covered_s)
        .join(GpuRow, GpuRow.id == gpu.gpu_id)
        .where(
            GpuRow.host_id.in_({host for host, _ in powers}),
            GpuRow.gpu_uuid.not_like(f"{SLICE_PREFIX}%"),
            gpu.day_ms >= first,
            gpu.day_ms <= last,
        )
        .order_by(gpu.gpu_id, gpu.day_ms)
    ):
        if host is not None:
            known = energy_j is not None and covered_s > 0
            drawn[host, day_ms].append(Drawn((energy_j or 0.0) / covered_s, covered_s) if known else None)
    told = {at: measured_share(power, drawn.get(at, ())) for at, power in powers.items()}
    return {at: ratio for at, ratio in told.items() if ratio is not None}


def _write(connection: Connection, changed: Sequence[HostDay], told: dict[HostDay, float]) -> None:
    if not changed:
        return
    row = HostShareRow
    gone = [{"h": host, "d": day_ms} for host, day_ms in changed if (host, day_ms) not in told]
    if gone:
        connection.execute(
            delete(row).where(row.host_id == bindparam("h"), row.day_ms == bindparam("d")), gone
        )
    replace_rows(
        connection,
        row.__table__,
        [
            {"host_id": host, "day_ms": day_ms, "ratio": told[host, day_ms]}
            for host, day_ms in changed
            if (host, day_ms) in told
        ],
    )
    connection.execute(
        text(
            "INSERT INTO ledger_pending (gpu_id, day_ms, mark) "
            "SELECT id, CAST(:day_ms AS bigint), CAST(:mark AS bigint) FROM gpu "
            "WHERE host_id = :host_id AND first_sample_ms < :end_ms AND seen_until_ms > :day_ms "
            "ON CONFLICT (gpu_id, day_ms) DO UPDATE SET mark = excluded.mark"
        ).bindparams(bindparam("mark", type_=BigInteger), bindparam("day_ms", type_=BigInteger)),
        [
            {"host_id": host, "day_ms": day_ms, "end_ms": day_ms + DAY_MS, "mark": randbits(62)}
            for host, day_ms in changed
        ],
    )
