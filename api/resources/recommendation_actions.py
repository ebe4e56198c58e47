"""What people do with a recommendation: claim, done, snooze, dismiss, reopen, and when each applies."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from sqlalchemy.orm import Session

from api.resources.columns import about
from api.resources.recommendations import RecommendationRow, row_of
from api.resources.scope import parse_time
from core.clock import from_ms, iso
from core.errors import NotFoundError, UsageError
from core.finding import Status
from store.queries import recommendations as kept


class Act(StrEnum):
    """A step a person takes."""

    CLAIM = "claim"
    DONE = "done"
    SNOOZE = "snooze"
    DISMISS = "dismiss"
    REOPEN = "reopen"


BECOMES: Final = {
    Act.CLAIM: Status.CLAIMED,
    Act.DONE: Status.DONE,
    Act.SNOOZE: Status.SNOOZED,
    Act.DISMISS: Status.DISMISSED,
    Act.REOPEN: Status.REOPENED,
}
WAITING: Final = frozenset({Status.OPEN, Status.REOPENED})
APPLIES: Final[Mapping[Act, frozenset[Status]]] = {
    Act.CLAIM: WAITING,
    Act.DONE: WAITING | {Status.CLAIMED},
    Act.SNOOZE: WAITING | {Status.CLAIMED},
    Act.DISMISS: WAITING | {Status.CLAIMED},
    Act.REOPEN: frozenset({Status.CLAIMED, Status.DONE, Status.VERIFIED, Status.SNOOZED, Status.DISMISSED}),
}


def find(session: Session, id_: int) -> RecommendationRow:
    """The recommendation of that number.

    Raises:
        NotFoundError: there is none.
    """
    found = kept.get(session, id_)
    if found is None:
        raise NotFoundError(f"no recommendation {id_}: GET /api/v1/recommendations lists them")
    return row_of(found.finding, found)


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of a recommendation's life."""

    at: Annotated[datetime, about("When, UTC.")]
    status: Annotated[Status, about("What it became.")]
    before: Annotated[Status | None, about("What it was; null: found for the first time.")]
    who: Annotated[str | None, about("Who took the step; null: the rules, or nobody told.")]
    note: Annotated[str | None, about("Why.")]


def steps(session: Session, id_: int) -> list[StepView]:
    """Every step of one recommendation, oldest first.

    Raises:
        NotFoundError: there is none of that number.
    """
    find(session, id_)
    return [
        StepView(from_ms(event.at_ms), event.status, event.before, event.who, event.note)
        for event in kept.events(session, id_)
    ]


def act(
    session: Session,
    id_: int,
    step: Act,
    now_ms: int,
    *,
    note: str | None,
    until: str | None,
    who: str | None = None,
    at: str | None = None,
) -> RecommendationRow:
    """Take a step and return the recommendation as it is then.

    Args:
        note: in the person's words; required to dismiss.
        who: name of the person; kept with the step, None: not told.
        until: when a snoozed one returns: a time, or a day after now; required to snooze.
        at: when it was done, if that was before now: before and after are compared from then on.

    Raises:
        NotFoundError: no such recommendation. UsageError: the step does not apply, or lacks its note or time.
    """
    status = find(session, id_).status
    if status not in APPLIES[step]:
        raise UsageError(f"recommendation {id_} is {status}: {step} does not apply to it")
    reason = (note or "").strip() or None
    if step is Act.DISMISS and reason is None:
        raise UsageError("dismissing needs a note: say why it does not apply")
    until_ms = None
    if step is Act.SNOOZE:
        if until is None:
            raise UsageError("snoozing needs until: the time or day it returns")
        until_ms = parse_time(until, back_from_ms=now_ms, flag="until")
        if until_ms <= now_ms:
            raise UsageError(f"until {until} is not in the future: name a later time")
    elif until is not None:
        raise UsageError(f"until belongs to snooze, not to {step}")
    taken_ms = now_ms
    if at is not None:
        if step is not Act.DONE:
            raise UsageError(f"at belongs to done, not to {step}")
        taken_ms = _taken_ms(session, id_, at, now_ms)
    kept.set_status(
        session, id_, BECOMES[step], taken_ms, note=reason, until_ms=until_ms, who=(who or "").strip() or None
    )
    return find(session, id_)


def _taken_ms(session: Session, id_: int, at: str, now_ms: int) -> int:
    """When something was done. Raises ``UsageError`` for a time to come, or one before it was found."""
    at_ms = parse_time(at, back_from_ms=now_ms, flag="at")
    if at_ms > now_ms:
        raise UsageError(f"at {at} is in the future: say when it was done, or say so when it is")
    # Who claimed it may have been done by then: a claim is no border.
    border = max(event.at_ms for event in kept.events(session, id_) if event.status is not Status.CLAIMED)
    if at_ms < border:
        raise UsageError(
            f"at {at} is before it was found or last changed ({iso(border)}): what it was then is not known"
        )
    return at_ms
