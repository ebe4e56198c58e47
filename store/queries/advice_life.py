"""Steps that recommendations took in a time: done, set aside, verified, reopened, gone."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.clock import from_ms, to_ms
from core.finding import Status
from store.models.recommendation_event import RecommendationEventRow


@dataclass(frozen=True, slots=True)
class LifeStep:
    """One step of one recommendation; ``who`` None: the rules."""

    recommendation_id: int
    at_ms: int
    status: Status
    who: str | None


def steps(session: Session, from_ms_: int, to_ms_: int) -> list[LifeStep]:
    """Every step from ``from_ms_`` to before ``to_ms_``, oldest first."""
    row = RecommendationEventRow
    statement = (
        select(row.recommendation_id, row.at, row.status_to, row.who)
        .where(row.at >= from_ms(from_ms_), row.at < from_ms(to_ms_))
        .order_by(row.at, row.id)
    )
    return [
        LifeStep(id_, to_ms(at), Status(status), who) for id_, at, status, who in session.execute(statement)
    ]
