"""Which teams paid for which GPUs in a time, by the ledger: how much of each GPU's known time was whose."""

from collections.abc import Collection

from sqlalchemy import BigInteger, cast, func, select
from sqlalchemy.orm import Session

from core.evidence import Window
from store.models.gpu import GpuRow
from store.models.ledger_day import LedgerDayRow
from store.models.owner import OwnerRow


def payers(
    session: Session, window: Window, gpu_uuids: Collection[str] | None = None
) -> dict[str, dict[str | None, int]]:
    """Milliseconds by GPU and team; team None: nobody's, as idle time of GPUs that no rule claims.

    Whole accounting days of the window; ``gpu_uuids`` None: every GPU.
    """
    line, gpu = LedgerDayRow, GpuRow
    statement = (
        select(line.gpu_id, line.owner_id, cast(func.sum(line.known_ms), BigInteger))
        .where(line.day_ms >= window.from_ms, line.day_ms < window.to_ms, line.booking_id.is_(None))
        .group_by(line.gpu_id, line.owner_id)
    )
    names = select(gpu.id, gpu.gpu_uuid)
    if gpu_uuids is not None:
        names = names.where(gpu.gpu_uuid.in_(gpu_uuids))
        statement = statement.where(line.gpu_id.in_(names.with_only_columns(gpu.id)))
    uuid_of = {row.id: row.gpu_uuid for row in session.execute(names)}
    team_of = {row.id: row.team for row in session.execute(select(OwnerRow.id, OwnerRow.team))}
    found: dict[str, dict[str | None, int]] = {}
    for gpu_id, owner_id, known_ms in session.execute(statement):
        teams = found.setdefault(uuid_of[gpu_id], {})
        team = None if owner_id is None else team_of[owner_id]
        teams[team] = teams.get(team, 0) + int(known_ms)
    return found


def main_payers(found: dict[str, dict[str | None, int]]) -> dict[str, str]:
    """The team that paid for most of each GPU's time, by GPU; without those of which nobody did."""
    most = {}
    for uuid, teams in found.items():
        team, known_ms = max(teams.items(), key=lambda item: item[1])
        if team is not None and 2 * known_ms > sum(teams.values()):
            most[uuid] = team
    return most
