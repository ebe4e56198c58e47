"""Whether what was done saved what was claimed: evidence of before and after from the store, the answer into it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from sqlalchemy.orm import Session

from advisor.limits_book import LimitsBook, limits_book
from advisor.rules import RULES
from advisor.site_run import SiteRun
from advisor.track_record import TrackRecord, track_record
from api.resources.before_after import compare, engines_of
from api.resources.columns import about
from api.resources.evidence import read_evidence
from api.resources.rule_settings import with_kept
from api.resources.scope import Scope
from core.clock import from_ms
from core.evidence import Window
from core.finding import Finding, Range, Status
from core.settings import Settings
from core.units import DAY_MS
from core.verification import Ledger, TraceDay, Verdict, Verification
from store.queries import hours, recommendations
from store.queries import verifications as kept

STILL_THERE_MS: Final = 7 * DAY_MS
"""So much of the time after the action a rule must see before it may say that its finding is still there."""


@dataclass(frozen=True, slots=True)
class VerificationView:
    """One comparison of before and after."""

    id: Annotated[int, about("Number of the verification.")]
    recommendation_id: Annotated[int, about("Of which recommendation.")]
    rule_id: Annotated[str, about("Of which rule.")]
    acted_at: Annotated[datetime, about("When it was done, UTC.")]
    checked_at: Annotated[datetime, about("When it was last compared, UTC.")]
    verdict: Annotated[Verdict, about("How it ended; without a figure it is a refusal with its reason.")]
    sentence: Annotated[str, about("The same for people, with the numbers.")]
    ledger: Annotated[Ledger | None, about("What was to fall; null: nothing was claimed.")]
    unit: Annotated[str | None, about("Name and unit of saving and predicted_p50.")]
    saving: Annotated[Range | None, about("Measured, a month, at equal load; negative: more than before.")]
    predicted_p50: Annotated[float | None, about("What had been claimed.")]
    realised_ratio: Annotated[float | None, about("Verified over predicted.")]
    slo_regressions: Annotated[tuple[str, ...], about("Latency that got worse.")]
    facts: Annotated[Mapping[str, Any], about("What it rests on, units in the names.")]
    days: Annotated[
        tuple[TraceDay, ...],
        about("Day by day, in the ledger's unit a day: measured, expected of its load, and peers."),
    ]


@dataclass(frozen=True, slots=True)
class TrackRecordView:
    """How a rule's claims came true so far."""

    rule_id: Annotated[str, about("Which rule.")]
    cases: Annotated[int, about("Verifications with a figure.")]
    ratio: Annotated[Range, about("Verified over predicted that the next claim may expect.")]
    applied: Annotated[bool, about("Whether claims are scaled by it: from the first case on.")]
    sentence: Annotated[str, about("The same for people.")]


def due(session: Session) -> list[tuple[int, int]]:
    """Recommendations that are done, by id and when that was said."""
    return sorted(kept.acted_ms(session).items())


def check(session: Session, settings: Settings, now_ms: int, recommendation_id: int, acted_ms: int) -> str:
    """Compare once, keep the answer, and move the recommendation on.

    Returns:
        ``verified``, ``reopened`` (the finding is still there after the action) or ``waiting``.
    """
    recommendation = recommendations.get(session, recommendation_id)
    if recommendation is None or recommendation.status is not Status.DONE:
        return "waiting"
    finding = recommendation.acted_finding or recommendation.finding
    made = compare(session, settings, now_ms, finding, acted_ms)
    kept.put(
        session,
        recommendation_id=recommendation_id,
        rule_id=finding.rule_id,
        acted_ms=acted_ms,
        now_ms=now_ms,
        made=made,
    )
    if made.verdict is Verdict.SAVED:
        note = " ".join((made.sentence, *made.slo_regressions))
        recommendations.set_status(session, recommendation_id, Status.VERIFIED, now_ms, note=note)
        return "verified"
    if is_still_there(session, settings, now_ms, finding, acted_ms):
        note = f"still found in the time since it was done. {made.sentence}"
        recommendations.set_status(session, recommendation_id, Status.REOPENED, now_ms, note=note)
        return "reopened"
    return "waiting"


def is_still_there(
    session: Session, settings: Settings, now_ms: int, finding: Finding, acted_ms: int
) -> bool:
    """Whether its rule says the same of the time after the action alone."""
    data = hours.bounds(session)
    end_ms = now_ms if data is None else min(now_ms, data.to_ms)
    start_ms = max(acted_ms, end_ms - 30 * DAY_MS)
    if end_ms - start_ms < STILL_THERE_MS:
        return False
    book = limits_book(with_kept(session, settings, now_ms).rules)
    rules = [rule for rule in RULES if rule.id == finding.rule_id]
    # As the run over the fleet has it: its thresholds here, and a node as one. Not its exclusions: those say nothing of what is.
    run = SiteRun(
        LimitsBook(
            {rule.id: book.fleet[rule.id] for rule in rules if rule.id in book.fleet},
            tuple(one for one in book.scopes if one.rule in rules),
        ),
        now=from_ms(now_ms),
        rules=rules,
        followed={finding.fingerprint},
    )
    engines = engines_of(session, finding)
    uuids = set(finding.gpu_uuids).union(*(engine.gpu_uuids for engine in engines))
    whole_fleet = any(rule.scope == "fleet" for rule in rules)
    scope = Scope(session, settings, now_ms, Window(start_ms, end_ms))
    run.feed(read_evidence(scope, gpu_uuids=None if whole_fleet or not uuids else uuids))
    return any(found.fingerprint == finding.fingerprint for found in run.advice().findings)


def rows(
    session: Session, recommendation_id: int | None = None, rule_id: str | None = None
) -> list[VerificationView]:
    """Comparisons, newest action first."""
    return [_view(one) for one in kept.listing(session, recommendation_id, rule_id)]


def _view(one: kept.KeptVerification) -> VerificationView:
    made = one.verification
    return VerificationView(
        id=one.id,
        recommendation_id=one.recommendation_id,
        rule_id=one.rule_id,
        acted_at=from_ms(one.acted_ms),
        checked_at=from_ms(one.checked_ms),
        verdict=made.verdict,
        sentence=made.sentence,
        ledger=made.ledger,
        unit=None if made.ledger is None else made.ledger.field,
        saving=made.saving,
        predicted_p50=made.predicted_p50,
        realised_ratio=made.realised_ratio,
        slo_regressions=made.slo_regressions,
        facts=made.facts,
        days=made.days,
    )


def records(session: Session, rule_id: str | None = None) -> dict[str, TrackRecord]:
    """Track record of every rule (or of one) that has a verified case, by rule."""
    by_rule: dict[str, list[Verification]] = {}
    for one in kept.listing(session, rule_id=rule_id):
        by_rule.setdefault(one.rule_id, []).append(one.verification)
    return {rule: made for rule, cases in by_rule.items() if (made := track_record(cases)).cases > 0}


def record_rows(session: Session) -> list[TrackRecordView]:
    """Track record of every rule, whether it has a case or not."""
    known = records(session)
    return [record_view(rule.id, known.get(rule.id)) for rule in RULES]


def record_view(rule_id: str, known: TrackRecord | None) -> TrackRecordView:
    """One rule's, ``known`` None: nothing was verified yet."""
    made = known or track_record(())
    return TrackRecordView(rule_id, made.cases, made.ratio, made.cases > 0, made.sentence)
