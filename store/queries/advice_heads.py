"""Recommendations without their evidence and charts: what a table of many GPUs says of each."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.finding import Finding, Status
from store import finding_json
from store.models.recommendation import RecommendationRow
from store.queries.finding_heads import head


@dataclass(frozen=True, slots=True)
class AdviceHead:
    """A recommendation; ``finding`` has neither evidence nor chart."""

    id: int
    finding: Finding


def advice_heads(
    session: Session, statuses: Collection[Status], subject_kind: str | None = None
) -> list[AdviceHead]:
    """Recommendations of these statuses (and about subjects of a kind), the oldest first."""
    row = RecommendationRow
    statement = (
        select(row.id, head(session, row.finding))
        .where(row.status.in_([status.value for status in statuses]))
        .order_by(row.id)
    )
    if subject_kind is not None:
        statement = statement.where(row.subject_kind == subject_kind)
    return [AdviceHead(key, finding_json.from_head(text)) for key, text in session.execute(statement)]
