"""What every page says of the fleet in one line: how many, how fresh, how complete. Sums in SQL, never a row a GPU."""

from dataclasses import dataclass

from sqlalchemy import Float, case, cast, distinct, func, not_, select
from sqlalchemy.orm import Session

from core.evidence import Window
from core.finding import Status
from core.readings import SLICE_PREFIX
from core.units import HOUR_MS
from store.models.gpu import GpuRow
from store.models.gpu_hour import GpuHourRow
from store.models.recommendation import RecommendationRow


@dataclass(frozen=True, slots=True)
class FleetState:
    """The fleet in one line.

    Attributes:
        gpus: cards; MIG instances are parts of one. hosts: that have one.
        newest_ms: end of the newest sample; None: nothing stored.
    """

    gpus: int
    hosts: int
    newest_ms: int | None


def fleet_state(session: Session) -> FleetState:
    """Counts and freshness."""
    is_card = not_(GpuRow.gpu_uuid.startswith(SLICE_PREFIX))
    statement = select(
        func.sum(case((is_card, 1), else_=0)),
        func.count(distinct(GpuRow.host_id)),
        func.max(GpuRow.seen_until_ms),
    )
    gpus, hosts, newest = session.execute(statement).one()
    return FleetState(int(gpus or 0), hosts, newest)


def coverage_ratio(session: Session, window: Window) -> float | None:
    """Covered over known GPU time of the clock hours of a window; a GPU is known from its first to its last sample."""
    from_ms = window.from_ms - window.from_ms % HOUR_MS
    hour, gpu = GpuHourRow.__table__.c, GpuRow
    # GPU by GPU through the key: the index of hours finds every row by itself, three times as long.
    of_hours = select(func.sum(cast(hour.covered_s, Float))).where(
        hour.gpu_id == gpu.id, hour.hour_ms >= from_ms, hour.hour_ms < window.to_ms
    )
    covered = session.execute(
        select(func.sum(of_hours.correlate(gpu).scalar_subquery())).select_from(gpu)
    ).scalar()
    start = case((gpu.first_sample_ms > from_ms, gpu.first_sample_ms), else_=from_ms)
    end = case((gpu.seen_until_ms < window.to_ms, gpu.seen_until_ms), else_=window.to_ms)
    known_ms = session.execute(
        select(func.sum(end - start)).where(gpu.seen_until_ms > from_ms, gpu.first_sample_ms < window.to_ms)
    ).scalar()
    return min(1.0, float(covered or 0.0) * 1000 / float(known_ms)) if known_ms else None


def recommendation_count(session: Session, statuses: tuple[Status, ...]) -> int:
    """How many recommendations have one of these statuses."""
    row = RecommendationRow
    statement = select(func.count(row.id)).where(row.status.in_([status.value for status in statuses]))
    return session.execute(statement).scalar() or 0
