"""What the rules leave alone until when: given, looked at before it is given, ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field
from sqlalchemy.orm import Session

from api.refusals import validated
from api.resources.columns import about
from api.resources.exclusion_cover import Coverage, coverage, waiting_under
from api.resources.rule_settings import PartBody, as_mapping, exclusion_of, in_force, part_words, rule_of
from api.resources.scope import UNIT_MS
from api.text import Named, Storable
from core.clock import from_ms, to_ms
from core.errors import NotFoundError, SettingsError, UsageError
from core.finding import Status
from core.rule_settings import Exclusion, Origin, moment_of, until_of
from core.settings import Settings
from store.queries import recommendations
from store.queries import rule_settings as kept
from store.queries.rule_settings import KeptExclusion

LONGEST: Final = timedelta(days=400)
"""An exclusion that nobody looks at for longer than a year is a rule that is off for good: say that by its thresholds."""
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
FORMS: Final = (
    "give a day such as 2026-12-04 (it ends with that day, UTC), friday, or a length such as 3d or 12h"
)


class State(StrEnum):
    """Where an exclusion stands."""

    IN_FORCE = "in_force"
    TO_COME = "to_come"
    OVER = "over"
    ENDED = "ended"
    """Somebody ended it before its time."""
    REFUSED = "refused"
    """The rules take it no more: it names one that is gone."""


LIVE: Final = (State.IN_FORCE, State.TO_COME, State.REFUSED)


class ExclusionBody(PartBody):
    """A part of the fleet to leave alone."""

    rule_id: Named | None = Field(
        default=None, max_length=60, description="By this rule alone; default: every rule."
    )
    since: str | None = Field(
        default=None, max_length=40, description="From this day or time on; default: now."
    )
    until: str | None = Field(
        default=None,
        max_length=40,
        description=f"Required but for a dry run, at most 400 days away: {FORMS}.",
    )
    reason: Storable | None = Field(
        default=None, max_length=2_000, description="Required but for a dry run: why it is left alone."
    )
    who: Named | None = Field(default=None, max_length=200, description="Who you are; kept with it.")


@dataclass(frozen=True, slots=True)
class ExclusionView:
    """A part of the fleet that the rules leave alone."""

    id: Annotated[int | None, about("Its key, to end it; null: it stands in gpuwise.toml.")]
    rule_id: Annotated[str | None, about("By which rule; null: every rule.")]
    part: Annotated[str, about("Which part, for people.")]
    selectors: Annotated[Mapping[str, str], about("The same as patterns by kind.")]
    since: Annotated[datetime | None, about("From when on, UTC; null: ever.")]
    until: Annotated[datetime, about("It ends before this moment, UTC.")]
    reason: Annotated[str, about("Why.")]
    state: Annotated[State, about("in_force, to_come, over, ended (by somebody, early) or refused.")]
    origin: Annotated[Origin, about("Where it is from: file (gpuwise.toml) or database.")]
    who: Annotated[str | None, about("Who gave it; null: not told.")]
    set_at: Annotated[datetime | None, about("When it was given, UTC; null: it stands in the file.")]
    ended_at: Annotated[datetime | None, about("When somebody ended it early, UTC; null: nobody did.")]
    ended_by: Annotated[str | None, about("Who did; null: nobody, or not told.")]
    refused: Annotated[str | None, about("Why the rules take it no more; null: they do.")]


@dataclass(frozen=True, slots=True)
class ExclusionMade:
    """A new exclusion, and what it covers as of now."""

    exclusion: Annotated[ExclusionView, about("As it is kept.")]
    covers: Annotated[Coverage, about("What of the fleet, and of the open recommendations, it covers now.")]


@dataclass(frozen=True, slots=True)
class ExclusionEnded:
    """An exclusion that was ended, and what came back."""

    exclusion: Annotated[ExclusionView, about("As it is kept.")]
    reopened_count: Annotated[int, about("Recommendations it had set aside, which are open again.")]


def parsed(given: Mapping[str, Any]) -> ExclusionBody:
    """An exclusion from named values. Raises ``UsageError`` that names field and value."""
    return validated(ExclusionBody, given, "exclusion")


def last_day(until: datetime) -> str:
    """The last day of it (UTC), or the moment where it ends within a day."""
    if until.time() != until.time().min:
        return f"{until:%Y-%m-%d %H:%M}"
    return f"{until - timedelta(seconds=1):%Y-%m-%d}"


def rows(session: Session, settings: Settings, now_ms: int, *, past: bool = False) -> list[ExclusionView]:
    """Exclusions in force and to come, the first to end first; with ``past`` also those that are over or ended."""
    refused = in_force(session, settings, now_ms).refused_exclusions
    now = from_ms(now_ms)
    found = [_of_file(one, now) for one in settings.rules.exclusions]
    found += [_kept_view(one, now, refused) for one in kept.exclusions(session)]
    found.sort(key=lambda row: (row.until, row.id or 0))
    return [row for row in found if past or row.state in LIVE]


def look(session: Session, settings: Settings, body: ExclusionBody, now_ms: int) -> Coverage:
    """What an exclusion would cover; nothing is kept. Raises ``UsageError`` as ``add`` does, but asks for no end and no reason."""
    if not (body.until or "").strip():
        body = body.model_copy(update={"until": "1d", "since": None})
    return coverage(session, settings, now_ms, _checked(body, now_ms, needs_reason=False))


def add(session: Session, settings: Settings, body: ExclusionBody, now_ms: int) -> ExclusionMade:
    """Keep an exclusion, and set aside at once what is open under it.

    Raises:
        UsageError: no part or no such rule, no reason, or an end that is missing, past or too far: what to do.
    """
    given = _checked(body, now_ms)
    row = kept.add_exclusion(
        session,
        selectors=given.selectors,
        rule_id=given.rule_id,
        from_at=given.since or from_ms(now_ms),
        until_at=given.until,
        reason=given.reason,
        who=body.who,
        now_ms=now_ms,
    )
    covers = coverage(session, settings, now_ms, given)
    if given.holds_at(from_ms(now_ms)):
        for one in covers.recommendations:
            recommendations.set_status(
                session,
                one.id,
                Status.SNOOZED,
                now_ms,
                note=given.sentence,
                until_ms=to_ms(given.until),
                who=body.who,
            )
    return ExclusionMade(_kept_view(row, from_ms(now_ms)), covers)


def end(session: Session, id_: int, now_ms: int, who: str | None) -> ExclusionEnded:
    """End an exclusion before its time; what it had set aside is open again at once.

    Raises:
        NotFoundError: there is none of that key. UsageError: it is over, or somebody ended it.
    """
    row = kept.exclusion(session, id_)
    if row is None:
        raise NotFoundError(f"no exclusion {id_}: exclusions lists them")
    now = from_ms(now_ms)
    state = _state(row, now)
    if state not in LIVE or not kept.end_exclusion(session, id_, now_ms, who):
        raise UsageError(f"exclusion {id_} is over already: exclusions lists those that hold")
    back = waiting_under(session, exclusion_of(row))
    for item in back:
        recommendations.set_status(
            session, item.id, Status.REOPENED, now_ms, note=f"exclusion {id_} was ended early", who=who
        )
    ended = kept.exclusion(session, id_)
    assert ended is not None
    return ExclusionEnded(_kept_view(ended, now), len(back))


def _checked(body: ExclusionBody, now_ms: int, *, needs_reason: bool = True) -> Exclusion:
    place, now = "exclusion", from_ms(now_ms)
    selectors = body.selectors(place)
    if not selectors:
        raise UsageError(
            "exclusion names no part of the fleet: give one of host, gpu, engine, owner, user, label "
            "(host * is all of it)"
        )
    if body.rule_id is not None:
        rule_of(body.rule_id)
    reason = (body.reason or "").strip().rstrip(".").rstrip()
    if needs_reason and not reason:
        raise UsageError("reason is missing: say why it is left alone; people read it beside the end")
    until = _until((body.until or "").strip(), now)
    if until <= now:
        raise UsageError(f"until is {body.until!r}, which is past: {FORMS}")
    if until > now + LONGEST:
        last = f"{now + LONGEST:%Y-%m-%d}"
        raise UsageError(
            f"until is {body.until!r}: an exclusion lasts 400 days at most; give a day up to {last} and renew it then, "
            "or set the rule's thresholds"
        )
    since = _since((body.since or "").strip(), place)
    if since is not None and since >= until:
        raise UsageError(
            f"since is {body.since!r}, which is not before until: give an earlier since, or none"
        )
    return Exclusion(selectors, body.rule_id, until, reason, place, since, body.who)


def _since(text: str, place: str) -> datetime | None:
    return moment_of("since", text, place) if text else None


def _until(text: str, now: datetime) -> datetime:
    """End of a day, of the next day of that name (today's is the next), a time, or a length from now."""
    if not text:
        raise UsageError(f"until is missing, and an exclusion ends some day: {FORMS}")
    word = text.lower()
    days = [at for at, name in enumerate(WEEKDAYS) if word in {name, name[:3]}]
    if days:
        midnight = datetime(now.year, now.month, now.day, tzinfo=UTC)
        return midnight + timedelta(days=(days[0] - now.weekday()) % 7 + 1)
    if word[:-1].isascii() and word[:-1].isdecimal() and len(word) <= 6 and word[-1] in UNIT_MS:
        return now + timedelta(milliseconds=int(word[:-1]) * UNIT_MS[word[-1]])
    try:
        return until_of(text, "exclusion")
    except (SettingsError, OverflowError) as error:
        raise UsageError(f"until is {text!r}: {FORMS}") from error


def _state(row: KeptExclusion, now: datetime) -> State:
    if row.ended_at is not None:
        return State.ENDED
    if row.until_at <= now:
        return State.OVER
    return State.TO_COME if row.from_at > now else State.IN_FORCE


def _kept_view(row: KeptExclusion, now: datetime, refused: Mapping[int, str] | None = None) -> ExclusionView:
    why = (refused or {}).get(row.id)
    return ExclusionView(
        id=row.id,
        rule_id=row.rule_id,
        part=part_words(row.selectors),
        selectors=as_mapping(row.selectors),
        since=row.from_at,
        until=row.until_at,
        reason=row.reason,
        state=_state(row, now) if why is None else State.REFUSED,
        origin=Origin.DATABASE,
        who=row.who,
        set_at=row.created_at,
        ended_at=row.ended_at,
        ended_by=row.ended_by,
        refused=why,
    )


def _of_file(one: Exclusion, now: datetime) -> ExclusionView:
    waiting = State.IN_FORCE if one.holds_at(now) else State.TO_COME
    return ExclusionView(
        id=None,
        rule_id=one.rule_id,
        part=part_words(one.selectors),
        selectors=as_mapping(one.selectors),
        since=one.since,
        until=one.until,
        reason=one.reason,
        state=State.OVER if one.until <= now else waiting,
        origin=Origin.FILE,
        who=None,
        set_at=None,
        ended_at=None,
        ended_by=None,
        refused=None,
    )
