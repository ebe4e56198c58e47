"""What weekly reports told that arrived: one row per action, audience and period."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite
from sqlalchemy.orm import Session

from core.clock import from_ms
from core.ownership import Owner
from core.units import DAY_MS
from core.verification import Ledger
from store.models.report_told import ReportToldRow

KEPT_MS: Final = 400 * DAY_MS
"""An action that was told longer ago is news again."""


@dataclass(frozen=True, slots=True)
class Told:
    """An action as it was told; ``ledger`` and ``figure`` None: without a figure."""

    fingerprint: str
    ledger: Ledger | None
    figure: float | None


def before(session: Session, audience: Owner | None, period: str) -> dict[str, Told]:
    """What this audience was told in earlier periods, by fingerprint, as it was told last."""
    owner, row = audience or Owner(""), ReportToldRow
    statement = (
        select(row.fingerprint, row.ledger, row.figure)
        .where(row.team == owner.team, row.project == owner.project, row.period < period)
        .order_by(row.period)
    )
    return {
        fingerprint: Told(fingerprint, None if ledger is None else Ledger(ledger), figure)
        for fingerprint, ledger, figure in session.execute(statement)
    }


def put(session: Session, audience: Owner | None, period: str, told: Iterable[Told], now_ms: int) -> None:
    """Keep what a mail told that arrived; another of the same period adds what is new in it."""
    owner = audience or Owner("")
    is_sqlite = session.connection().dialect.name == "sqlite"
    for one in told:
        insert: Any = (insert_sqlite if is_sqlite else insert_postgresql)(ReportToldRow).values(
            team=owner.team,
            project=owner.project,
            fingerprint=one.fingerprint,
            period=period,
            ledger=None if one.ledger is None else one.ledger.value,
            figure=one.figure,
            told_at=from_ms(now_ms),
        )
        session.execute(insert.on_conflict_do_nothing())
    session.execute(delete(ReportToldRow).where(ReportToldRow.told_at < from_ms(now_ms - KEPT_MS)))
