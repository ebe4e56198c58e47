"""Engines' hours and days added up by the database: what needs no histogram."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.days import day_of
from core.evidence import Window
from store.models.engine import EngineRow
from store.models.engine_day import EngineDayRow
from store.models.engine_hour import EngineHourRow
from store.queries.hours import within


@dataclass(frozen=True, slots=True)
class EngineSum:
    """Days of one engine added up; fields as in ``core.hours.EngineHour``."""

    busy_s: float
    generated_tokens: float | None
    busy_generated_tokens: float | None
    preemption_count: float | None
    busy_energy_j: float | None


def engine_sums(session: Session, window: Window) -> Mapping[str, EngineSum]:
    """Every engine with days in the window, whole days: enough to put engines in order."""
    row = EngineDayRow
    columns = [func.sum(getattr(row, name)) for name in EngineSum.__dataclass_fields__]
    statement = (
        select(EngineRow.engine, *columns)
        .join(EngineRow, EngineRow.id == row.engine_id)
        .where(row.day_ms >= day_of(window.from_ms), row.day_ms < window.to_ms)
        .group_by(EngineRow.engine)
    )
    return {name: EngineSum(*values) for name, *values in session.execute(statement)}


def tokens_and_joules(
    session: Session, window: Window, engines: Collection[str]
) -> Mapping[str, tuple[float, float]]:
    """Busy tokens and busy joules of some engines over the hours that know both."""
    row = EngineHourRow
    statement = (
        select(EngineRow.engine, func.sum(row.busy_generated_tokens), func.sum(row.busy_energy_j))
        .join(EngineRow, EngineRow.id == row.engine_id)
        .where(
            EngineRow.engine.in_(engines),
            *within(row.hour_ms, window),
            row.busy_generated_tokens.is_not(None),
            row.busy_energy_j.is_not(None),
        )
        .group_by(EngineRow.engine)
    )
    return {name: (tokens or 0.0, joules or 0.0) for name, tokens, joules in session.execute(statement)}
