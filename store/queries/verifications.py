"""Verifications: the newest comparison for each action."""

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.clock import from_ms, to_ms
from core.finding import Range, Status
from core.verification import Ledger, TraceDay, Verdict, Verification
from store.models.recommendation import RecommendationRow
from store.models.recommendation_event import RecommendationEventRow
from store.models.verification import VerificationRow


@dataclass(frozen=True, slots=True)
class KeptVerification:
    """A comparison as stored: of which recommendation's action, and when it was last made."""

    id: int
    recommendation_id: int
    rule_id: str
    acted_ms: int
    checked_ms: int
    verification: Verification


def put(
    session: Session, *, recommendation_id: int, rule_id: str, acted_ms: int, now_ms: int, made: Verification
) -> None:
    """Keep a comparison; a former one of the same action is replaced."""
    acted_at = from_ms(acted_ms)
    row = session.scalars(
        select(VerificationRow).where(
            VerificationRow.recommendation_id == recommendation_id, VerificationRow.acted_at == acted_at
        )
    ).one_or_none()
    if row is None:
        row = VerificationRow(recommendation_id=recommendation_id, rule_id=rule_id, acted_at=acted_at)
        session.add(row)
    row.checked_at = from_ms(now_ms)
    row.verdict = made.verdict.value
    row.sentence = made.sentence
    row.ledger = None if made.ledger is None else made.ledger.value
    row.saving_p10 = None if made.saving is None else made.saving.p10
    row.saving_p50 = None if made.saving is None else made.saving.p50
    row.saving_p90 = None if made.saving is None else made.saving.p90
    row.predicted_p50 = made.predicted_p50
    row.report = json.dumps(
        {
            "facts": dict(made.facts),
            "slo_regressions": list(made.slo_regressions),
            "days": [astuple(day) for day in made.days],
        }
    )
    session.flush()


def listing(
    session: Session, recommendation_id: int | None = None, rule_id: str | None = None
) -> list[KeptVerification]:
    """Comparisons (default of every recommendation and rule), newest action first."""
    statement = select(VerificationRow).order_by(VerificationRow.acted_at.desc(), VerificationRow.id)
    if recommendation_id is not None:
        statement = statement.where(VerificationRow.recommendation_id == recommendation_id)
    if rule_id is not None:
        statement = statement.where(VerificationRow.rule_id == rule_id)
    return [_kept(row) for row in session.scalars(statement)]


def acted_ms(session: Session) -> dict[int, int]:
    """When each recommendation that is done was said to be done the last time, by its id."""
    row, event = RecommendationRow, RecommendationEventRow
    statement = (
        select(row.id, func.max(event.at))
        .join(event, event.recommendation_id == row.id)
        .where(row.status == Status.DONE.value, event.status_to == Status.DONE.value)
        .group_by(row.id)
    )
    return {id_: to_ms(at) for id_, at in session.execute(statement)}


def _kept(row: VerificationRow) -> KeptVerification:
    report: Mapping[str, Any] = json.loads(row.report)
    saving = None
    if row.saving_p10 is not None and row.saving_p50 is not None and row.saving_p90 is not None:
        saving = Range(row.saving_p10, row.saving_p50, row.saving_p90)
    return KeptVerification(
        id=row.id,
        recommendation_id=row.recommendation_id,
        rule_id=row.rule_id,
        acted_ms=to_ms(row.acted_at),
        checked_ms=to_ms(row.checked_at),
        verification=Verification(
            verdict=Verdict(row.verdict),
            sentence=row.sentence,
            ledger=None if row.ledger is None else Ledger(row.ledger),
            saving=saving,
            predicted_p50=row.predicted_p50,
            facts=report["facts"],
            slo_regressions=tuple(report["slo_regressions"]),
            # Comparisons that were kept before there was anything to draw have none.
            days=tuple(TraceDay(*day) for day in report.get("days", ())),
        ),
    )
