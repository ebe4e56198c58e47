"""Whether what was done saved what was claimed: evidence of before and after from the store, the answer into it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from sqlalchemy.orm import Session

from advisor.engine import AdviceRun
from advisor.rules import RULES
from advisor.track_record import TrackRecord, track_record
from advisor.verification import LONGEST_MS, verify
from advisor.verify.outcome import latencies, ledger_of, load_hours, released
from advisor.verify.series import Case, Happening, LoadHour
from api.resources.columns import about
from api.resources.evidence import read_evidence
from api.resources.pricing import price_lookup
from api.resources.scope import Scope
from catalog.gpu_specs import resolve
from core.clock import from_ms
from core.evidence import Window
from core.finding import Finding, Range, Status
from core.hours import EngineHour, GpuHour
from core.settings import Settings
from core.units import DAY_MS
from core.verification import Ledger, Verdict, Verification
from store.queries import events, fleet, hours, recommendations
from store.queries import verifications as kept
from store.queries.fleet import FleetGpu

RESETS: Final = frozenset({"driver", "mig", "mode"})
"""Events that make before and after two different machines; a new power limit may be the action itself."""
MOST_PEERS: Final = 32
"""More neighbours make the control no better."""
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
    if _is_still_there(session, settings, now_ms, finding, acted_ms):
        note = f"still found in the time since it was done. {made.sentence}"
        recommendations.set_status(session, recommendation_id, Status.REOPENED, now_ms, note=note)
        return "reopened"
    return "waiting"


def compare(
    session: Session, settings: Settings, now_ms: int, finding: Finding, acted_ms: int
) -> Verification:
    """Before and after of one finding's GPUs, from the store's hours."""
    ledger = ledger_of(finding)
    data = hours.bounds(session)
    if ledger is None:
        why = finding.no_figure or "it claimed none"
        return Verification(Verdict.NOT_MEASURABLE, f"There is no saving to be measured: {why}")
    claimed: Range = getattr(finding.saving, ledger.field)
    if data is None or not finding.gpu_uuids:
        return Verification(
            Verdict.NOT_MEASURABLE, "No GPU of it is known to the store.", ledger, None, claimed.p50
        )
    until_ms = min(now_ms, data.to_ms)
    gpus = fleet.gpus(session)
    engines = _engines_of(session, finding)
    treated = set(finding.gpu_uuids).union(*(engine.gpu_uuids for engine in engines))
    if ledger is Ledger.CASH or (ledger is Ledger.CAPACITY and finding.stage in {"stop", "schedule"}):
        treated = set(finding.gpu_uuids)
    window = Window(acted_ms - LONGEST_MS, min(until_ms, acted_ms + LONGEST_MS))
    engine_hours = [
        hour for engine in engines for hour in hours.engine_hours(session, window, engine.identity.engine)
    ]
    prices = _prices(session, settings, gpus, acted_ms)
    last_seen = {
        gpu.identity.gpu_uuid: gpu.last_seen_ms
        for gpu in gpus
        if gpu.identity.gpu_uuid in treated and gpu.last_seen_ms is not None
    }
    gone = released(last_seen, acted_ms, until_ms) if ledger is Ledger.CASH else None
    series, names = load_hours(
        hours.gpu_hours(session, window, treated),
        engine_hours,
        finding=finding,
        ledger=ledger,
        price_of=prices,
        released_ms=gone,
    )
    return verify(
        Case(
            ledger=ledger,
            predicted_p50=claimed.p50,
            action_ms=acted_ms,
            until_ms=until_ms,
            hours=series,
            load_names=names,
            peers=_peers(session, finding, ledger, gpus=gpus, treated=treated, window=window),
            happenings=[
                Happening(one.ts_ms, one.message)
                for one in events.gpu_events(session, window)
                if one.gpu_uuid in treated and one.kind in RESETS
            ],
            latencies=latencies(engine_hours),
        )
    )


def _engines_of(session: Session, finding: Finding) -> list[fleet.FleetEngine]:
    """Engines on the finding's GPUs, and those that serve the same model: they share its traffic."""
    every = fleet.engines(session)
    on_gpus = [engine for engine in every if set(engine.gpu_uuids) & set(finding.gpu_uuids)]
    models = {engine.identity.model for engine in on_gpus if engine.identity.model is not None}
    return [engine for engine in every if engine in on_gpus or engine.identity.model in models]


def _prices(session: Session, settings: Settings, gpus: Sequence[FleetGpu], at_ms: int) -> dict[str, float]:
    """Dollars of a GPU-hour on the day of the action, before and after alike: a new price is no saving."""
    lookup = price_lookup(session, settings)
    found = {}
    for gpu in gpus:
        spec = resolve(gpu.identity.model, gpu.identity.memory_total_bytes) if gpu.identity.model else None
        price = lookup(gpu.identity, None if spec is None else spec.gpu_key, at_ms)
        if price is not None:
            found[gpu.identity.gpu_uuid] = float(price.usd_per_gpu_hour)
    return found


def _peers(
    session: Session,
    finding: Finding,
    ledger: Ledger,
    *,
    treated: Collection[str],
    gpus: Sequence[FleetGpu],
    window: Window,
) -> list[LoadHour]:
    """Untreated cards of the same model whose recommendations nobody acted on, together."""
    if ledger is Ledger.CASH:
        return []
    models = {gpu.identity.model for gpu in gpus if gpu.identity.gpu_uuid in treated}
    acted = {
        uuid
        for one in recommendations.listing(session, [Status.DONE, Status.VERIFIED, Status.CLAIMED])
        for uuid in one.finding.gpu_uuids
    }
    chosen = [
        gpu.identity.gpu_uuid
        for gpu in gpus
        if gpu.identity.model in models
        and gpu.identity.gpu_uuid not in treated
        and gpu.identity.gpu_uuid not in acted
        and not gpu.identity.is_slice
    ][:MOST_PEERS]
    if not chosen:
        return []
    found: list[GpuHour] = hours.gpu_hours(session, window, chosen)
    none: list[EngineHour] = []
    return load_hours(found, none, finding=finding, ledger=ledger, price_of={})[0]


def _is_still_there(
    session: Session, settings: Settings, now_ms: int, finding: Finding, acted_ms: int
) -> bool:
    """Whether its rule says the same of the time after the action alone."""
    data = hours.bounds(session)
    end_ms = now_ms if data is None else min(now_ms, data.to_ms)
    start_ms = max(acted_ms, end_ms - 30 * DAY_MS)
    if end_ms - start_ms < STILL_THERE_MS:
        return False
    rules = AdviceRun([rule for rule in RULES if rule.id == finding.rule_id])
    engines = _engines_of(session, finding)
    uuids = set(finding.gpu_uuids).union(*(engine.gpu_uuids for engine in engines))
    whole_fleet = any(rule.id == finding.rule_id and rule.scope == "fleet" for rule in RULES)
    scope = Scope(session, settings, now_ms, Window(start_ms, end_ms))
    rules.feed(read_evidence(scope, gpu_uuids=None if whole_fleet or not uuids else uuids))
    return any(found.fingerprint == finding.fingerprint for found in rules.advice().findings)


def rows(session: Session, recommendation_id: int | None = None) -> list[VerificationView]:
    """Comparisons, newest action first."""
    return [_view(one) for one in kept.listing(session, recommendation_id)]


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
    )


def records(session: Session) -> dict[str, TrackRecord]:
    """Track record of every rule that has a verified case, by rule."""
    by_rule: dict[str, list[Verification]] = {}
    for one in kept.listing(session):
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
