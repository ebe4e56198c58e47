"""Recommendations: findings followed over time. Every change of status is kept as an event."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from core.clock import from_ms, to_ms
from core.errors import StoreError
from core.finding import Advice, Finding, NotEvaluated, Status
from core.units import DAY_MS
from core.verification import Ledger
from store import finding_json
from store.models.recommendation import RecommendationRow
from store.models.recommendation_event import RecommendationEventRow
from store.queries.finding_heads import head

_LIVE: Final = frozenset({Status.OPEN.value, Status.REOPENED.value})
"""Nobody has acted: gone when no longer found."""
_FOUND_AGAIN: Final = {
    Status.DONE.value: (Status.REOPENED, "still found a month after it was done"),
    Status.VERIFIED.value: (Status.REOPENED, "found again after it was verified"),
    Status.GONE.value: (Status.OPEN, "found again"),
}
DONE_GRACE_MS: Final = 30 * DAY_MS
"""How long a done finding stays done while it is still found: a run looks back thirty days, so until then it may be
found from the days before somebody acted. Verification looks at the days after alone, and reopens it sooner."""
_SET_ASIDE: Final = frozenset({Status.SNOOZED.value, Status.DISMISSED.value})
_DECIDED: Final = frozenset({Status.CLAIMED, Status.DONE, Status.SNOOZED, Status.DISMISSED})
GROWN_RATIO: Final = 1.25
"""A saving that grew by more than a quarter since somebody set it aside is another decision."""
_NAMED: Final = frozenset({"gpu", "engine"})
"""Kinds of subject that have hours of their own; any other is judged by its GPUs, or by those there are."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A finding as last found, and what became of it.

    Attributes:
        id: its key. finding: as last found. status: see ``core.finding.Status``.
        opened_at_ms: first found. seen_at_ms: last found.
        snoozed_until_ms: when a snoozed one comes back; None otherwise. note: the last thing people wrote.
        acted_finding: as it was when somebody last took a step; None while nobody has.
    """

    id: int
    finding: Finding
    status: Status
    opened_at_ms: int
    seen_at_ms: int
    snoozed_until_ms: int | None
    note: str | None
    acted_finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class RecommendationEvent:
    """One change: to ``status``, from ``before`` (None: found for the first time); ``who`` None: the rules."""

    at_ms: int
    status: Status
    before: Status | None
    note: str | None
    who: str | None = None


def record(
    session: Session, advice: Advice, now_ms: int, judged: Collection[tuple[str, str]] | None = None
) -> None:
    """Take over one run of the rules.

    A finding keeps its status while it is found again; one that was done is reopened when it is still found
    ``DONE_GRACE_MS`` later, and one that was set aside returns when the facts changed: it saves more than
    ``GROWN_RATIO`` times what it did then, or its cause is another one (a finding of its own). An open one that is no longer found is gone, unless its subject was not judged in this
    run; where the data deny it, the reason is kept. A snooze that ran out ends.

    Args:
        session: where.
        advice: what the rules said.
        now_ms: when.
        judged: GPUs and engines (kind, id) with data in the run's window; None: every one of them.
    """
    now = from_ms(now_ms)
    rows = {row.fingerprint: row for row in session.scalars(select(RecommendationRow).with_for_update())}
    found = {finding.fingerprint: finding for finding in advice.findings}
    at_rest = _lately_done(session, now_ms)
    for fingerprint, finding in found.items():
        row = rows.get(fingerprint)
        if row is None:
            _open(session, finding, now, _other_cause(finding, rows.values()))
            continue
        row.finding = finding_json.to_text(finding)
        row.seen_at = now
        if row.status in _FOUND_AGAIN and row.id not in at_rest:
            status, note = _FOUND_AGAIN[row.status]
            _change(session, row, status, now, note)
        elif row.status in _SET_ASIDE and (grown := _grown(row, finding)) is not None:
            row.snoozed_until = None
            _change(
                session, row, Status.REOPENED, now, f"the facts changed since it was {row.status}: {grown}"
            )
    refused = {(item.rule_id, item.subject.kind, item.subject.id): item for item in advice.not_evaluated}
    silent = {key for key, item in refused.items() if not item.denies}
    inside = {
        (finding.rule_id, uuid): finding.subject.label
        for finding in advice.findings
        if finding.subject.kind == "host"
        for uuid in finding.gpu_uuids
    }
    mute = {item.rule_id for item in advice.not_evaluated if _is_whole_rule(item)}
    for fingerprint, row in rows.items():
        if row.status == Status.SNOOZED.value and row.snoozed_until is not None and row.snoozed_until <= now:
            row.snoozed_until = None
            _change(session, row, Status.OPEN, now, "snooze ran out")
        told = row.rule_id not in mute and (row.rule_id, row.subject_kind, row.subject_id) not in silent
        if fingerprint not in found and told and row.status in _LIVE and _was_judged(row, judged):
            host = inside.get((row.rule_id, row.subject_id))
            note = "no longer found" if host is None else f"part of what is found of {host} as a whole"
            denied = refused.get((row.rule_id, row.subject_kind, row.subject_id))
            note = note if denied is None else denied.why
            _change(session, row, Status.GONE, now, note)
    session.flush()


def _lately_done(session: Session, now_ms: int) -> set[int]:
    """Recommendations, verified since or not, that were done less than ``DONE_GRACE_MS`` ago."""
    row, event = RecommendationRow, RecommendationEventRow
    statement = (
        select(row.id)
        .join(event, event.recommendation_id == row.id)
        .where(
            row.status.in_([Status.DONE.value, Status.VERIFIED.value]), event.status_to == Status.DONE.value
        )
        .group_by(row.id)
        .having(func.max(event.at) > from_ms(now_ms - DONE_GRACE_MS))
    )
    return set(session.scalars(statement))


def _grown(row: RecommendationRow, finding: Finding) -> str | None:
    """What grew since somebody set it aside; None when nothing did, or what it was then is not known."""
    if row.acted_finding is None:
        return None
    then = finding_json.from_text(row.acted_finding).saving
    for ledger in Ledger:
        before, now = getattr(then, ledger.field), getattr(finding.saving, ledger.field)
        if now is None or now.p50 <= (0.0 if before is None else before.p50 * GROWN_RATIO):
            continue
        was = "not claimed" if before is None else f"{before.p50:.4g}"
        return f"{ledger.field} is {now.p50:.4g}, was {was}"
    return None


def _other_cause(finding: Finding, rows: Iterable[RecommendationRow]) -> str | None:
    """That the same rule said the same subject for another cause before, and people set that aside."""
    key = (finding.rule_id, finding.subject.kind, finding.subject.id)
    for row in rows:
        if row.status in _SET_ASIDE and (row.rule_id, row.subject_kind, row.subject_id) == key:
            why = f": {row.note}" if row.note else ""
            return f"the cause changed since recommendation {row.id} was {row.status}{why}"
    return None


def _was_judged(row: RecommendationRow, judged: Collection[tuple[str, str]] | None) -> bool:
    """Its subject had data to be judged by: without any, not being found says nothing."""
    if judged is None:
        return True
    if row.subject_kind in _NAMED:
        return (row.subject_kind, row.subject_id) in judged
    uuids = finding_json.from_text(row.finding).gpu_uuids
    if uuids:
        return any(("gpu", uuid) in judged for uuid in uuids)
    return any(kind == "gpu" for kind, _ in judged)


def _is_whole_rule(item: NotEvaluated) -> bool:
    """The rule failed, or had nothing to judge by: that says nothing about any of its findings."""
    return item.subject.kind == "fleet" and item.subject.id in {"fleet", f"rule:{item.rule_id}"}


def listing(
    session: Session, statuses: Collection[Status] | None = None, *, brief: bool = False
) -> list[Recommendation]:
    """Recommendations (default of every status), newest first.

    ``brief`` leaves evidence and charts out of their findings: most of the text, and of the time it takes to read.
    """
    row = RecommendationRow
    findings: list[Any] = [row.finding, row.acted_finding]
    if brief:
        findings = [head(session, one).label(one.key) for one in findings]
    # Columns, not objects: of a thousand rows the objects take longer to make than the findings.
    statement = select(
        row.id, row.status, row.opened_at, row.seen_at, row.snoozed_until, row.note, *findings
    ).order_by(row.opened_at.desc(), row.id)
    if statuses is not None:
        statement = statement.where(row.status.in_([status.value for status in statuses]))
    return [_recommendation(one, brief=brief) for one in session.execute(statement)]


def counts(session: Session) -> dict[Status, int]:
    """How many there are of each status; a status without any is not in it."""
    statement = select(RecommendationRow.status, func.count()).group_by(RecommendationRow.status)
    return {Status(status): count for status, count in session.execute(statement)}


def counts_by_rule(session: Session) -> dict[tuple[str, Status], int]:
    """How many there are of each rule and status; without any: not in it."""
    row = RecommendationRow
    statement = select(row.rule_id, row.status, func.count()).group_by(row.rule_id, row.status)
    return {(rule, Status(status)): count for rule, status, count in session.execute(statement)}


def several(session: Session, ids: Collection[int]) -> list[Recommendation]:
    """Those of some keys, in their order; what there is none of is left out."""
    rows = session.scalars(select(RecommendationRow).where(RecommendationRow.id.in_(ids)))
    found = {row.id: _recommendation(row) for row in rows}
    return [found[id_] for id_ in ids if id_ in found]


def claimants(session: Session) -> dict[int, str]:
    """Who has each one that is claimed, by its key; without those of whom no name was told."""
    row, event = RecommendationRow, RecommendationEventRow
    statement = (
        select(row.id, event.who)
        .join(event, event.recommendation_id == row.id)
        .where(row.status == Status.CLAIMED.value, event.status_to == Status.CLAIMED.value)
        .order_by(event.id)
    )
    return {id_: who for id_, who in session.execute(statement) if who}


def get(session: Session, recommendation_id: int) -> Recommendation | None:
    """One recommendation; None when there is none of that key."""
    row = session.get(RecommendationRow, recommendation_id)
    return None if row is None else _recommendation(row)


def set_status(
    session: Session,
    recommendation_id: int,
    status: Status,
    now_ms: int,
    *,
    note: str | None = None,
    until_ms: int | None = None,
    who: str | None = None,
) -> Recommendation:
    """Change a status by hand.

    Args:
        session: where.
        recommendation_id: which.
        status: the new one.
        now_ms: when.
        note: the reason, kept with the event and shown.
        until_ms: end of a snooze; needed for one, and only for one.
        who: name of the person; None: the rules or a job did it.

    Raises:
        StoreError: no such recommendation, or a snooze without a later end.
    """
    row = session.get(RecommendationRow, recommendation_id, with_for_update=True)
    if row is None:
        raise StoreError(f"there is no recommendation {recommendation_id}: list them for their numbers")
    if (status is Status.SNOOZED) != (until_ms is not None):
        raise StoreError(
            "a snooze needs the time it ends, and nothing else has one: give until with snooze only"
        )
    if until_ms is not None and until_ms <= now_ms:
        raise StoreError("the end of a snooze is in the past: give a later time")
    row.snoozed_until = None if until_ms is None else from_ms(until_ms)
    if note is not None:
        row.note = note
    if status in _DECIDED:
        row.acted_finding = row.finding
    _change(session, row, status, from_ms(now_ms), note, who=who)
    session.flush()
    return _recommendation(row)


def events(session: Session, recommendation_id: int) -> list[RecommendationEvent]:
    """Every change of one recommendation, in the order in which they were told."""
    row = RecommendationEventRow
    statement = select(row).where(row.recommendation_id == recommendation_id).order_by(row.id)
    return [
        RecommendationEvent(
            to_ms(event.at),
            Status(event.status_to),
            None if event.status_from is None else Status(event.status_from),
            event.note,
            event.who,
        )
        for event in session.scalars(statement)
    ]


def _open(session: Session, finding: Finding, now: datetime, note: str | None) -> None:
    row = RecommendationRow(
        fingerprint=finding.fingerprint,
        rule_id=finding.rule_id,
        subject_kind=finding.subject.kind,
        subject_id=finding.subject.id,
        status=Status.OPEN.value,
        finding=finding_json.to_text(finding),
        opened_at=now,
        seen_at=now,
    )
    session.add(row)
    session.flush()
    _event(session, row, before=None, status=Status.OPEN, now=now, note=note)


def _change(
    session: Session,
    row: RecommendationRow,
    status: Status,
    now: datetime,
    note: str | None,
    *,
    who: str | None = None,
) -> None:
    before = Status(row.status)
    if before is status and status is not Status.SNOOZED:
        return
    row.status = status.value
    _event(session, row, before=before, status=status, now=now, note=note, who=who)


def _event(
    session: Session,
    row: RecommendationRow,
    *,
    before: Status | None,
    status: Status,
    now: datetime,
    note: str | None,
    who: str | None = None,
) -> None:
    session.add(
        RecommendationEventRow(
            recommendation_id=row.id,
            at=now,
            status_from=None if before is None else before.value,
            status_to=status.value,
            note=note,
            who=who,
        )
    )


def _recommendation(
    row: "RecommendationRow | Row[*tuple[Any, ...]]", *, brief: bool = False
) -> Recommendation:
    read = finding_json.from_head if brief else finding_json.from_text
    return Recommendation(
        id=row.id,
        finding=read(row.finding),
        status=Status(row.status),
        opened_at_ms=to_ms(row.opened_at),
        seen_at_ms=to_ms(row.seen_at),
        snoozed_until_ms=None if row.snoozed_until is None else to_ms(row.snoozed_until),
        note=row.note,
        acted_finding=None if row.acted_finding is None else read(row.acted_finding),
    )
