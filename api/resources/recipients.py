"""Who gets mail and alerts: those the user keeps, and those of gpuwise.toml; checked, listed, changed, removed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.orm import Session

from api.refusals import validated
from api.resources.columns import about
from api.resources.moments import moment
from api.text import Named, Storable
from core.clock import from_ms
from core.errors import NotFoundError, UsageError
from core.ownership import Owner
from core.settings import Settings
from core.user_recipient import QuietWeek, Recipient, plain_address
from store.queries import mail, owners
from store.queries import recipients as kept
from store.queries.mail import Logged

FILE: Final = "gpuwise.toml"
NAMED_AT_MOST: Final = 10


class RecipientBody(BaseModel):
    """A recipient to keep."""

    model_config = ConfigDict(extra="forbid", strict=True)

    # No bounds of pydantic here: their refusals would print a webhook's URL, which is a secret.
    address: str = Field(
        description="A mail address, or the https:// URL of a webhook that takes Slack's JSON; the URL is never given back."
    )
    team: Named = Field(
        "",
        max_length=255,
        description="Tell it of what this team of the owner rules pays for; empty: of the whole fleet.",
    )
    project: Named = Field("", max_length=255, description="Only of this project of the team.")
    weekly: bool = Field(True, description="It gets the weekly report.")
    alerts: bool = Field(True, description="It gets alerts.")
    quiet_week: str = Field(
        "skip", description="In a week with nothing to say: skip (no mail) or line (one line that says so)."
    )
    paused_until: str | None = Field(
        None, max_length=40, description="It gets nothing before this time or day; null: it is not paused."
    )
    note: Storable = Field("", max_length=2_000, description="In your own words.")


class RecipientChange(BaseModel):
    """What to change of a recipient; what is left out stays."""

    model_config = ConfigDict(extra="forbid", strict=True)

    weekly: bool | None = Field(None, description="It gets the weekly report.")
    alerts: bool | None = Field(None, description="It gets alerts.")
    quiet_week: str | None = Field(None, description="skip or line.")
    paused_until: str | None = Field(
        None, max_length=40, description="It gets nothing before this time or day; empty: go on at once."
    )
    note: Storable | None = Field(None, max_length=2_000, description="In your own words.")


@dataclass(frozen=True, slots=True)
class RecipientView:
    """Who gets what, and how the last message to it fared."""

    id: Annotated[int | None, about("Its key; null: it is of report_recipients in gpuwise.toml.")]
    source: Annotated[str, about("kept (here) or gpuwise.toml.")]
    channel: Annotated[str, about("mail or webhook.")]
    address: Annotated[str, about("The mail address; of a webhook its host and last letters.")]
    team: Annotated[str | None, about("Told of what this team pays for; null: of the whole fleet.")]
    project: Annotated[str | None, about("Only of this project; null: of all the team's.")]
    audience: Annotated[str, about("The same for people.")]
    weekly: Annotated[bool, about("Gets the weekly report.")]
    alerts: Annotated[bool, about("Gets alerts.")]
    quiet_week: Annotated[str, about("With nothing to say: skip or line.")]
    paused_until: Annotated[datetime | None, about("Gets nothing before then, UTC; null: not paused.")]
    note: Annotated[str, about("In your own words.")]
    created_at: Annotated[datetime | None, about("Kept since, UTC; null: of gpuwise.toml.")]
    last_state: Annotated[
        str | None,
        about(
            "Of the last message: waiting, claimed, sent, refused, failed (given up), unsure (may have arrived); null: none yet."
        ),
    ]
    last_at: Annotated[datetime | None, about("When that message was made, UTC.")]
    last_problem: Annotated[str | None, about("What the server said of it; null: nothing is wrong.")]


def everybody(session: Session, settings: Settings) -> list[Recipient]:
    """All recipients, those of gpuwise.toml first; one that is kept here as well counts as kept."""
    stored = kept.listing(session)
    of_fleet = {one.key for one in stored if one.audience is None}
    of_file = {
        one.key: one
        for one in (Recipient(None, plain_address(text), alerts=False) for text in settings.report_recipients)
        if one.key not in of_fleet
    }
    return [*of_file.values(), *stored]


def matching(people: Sequence[Recipient], text: str) -> list[Recipient]:
    """Those that a number or a mail address means."""
    if text.isdecimal():
        return [one for one in people if one.id == int(text)]
    return [one for one in people if one.key == text.strip().lower()]


def rows(session: Session, settings: Settings, now_ms: int) -> list[RecipientView]:
    """Every recipient."""
    last = mail.last_by_recipient(session)
    return [_view(one, now_ms, last.get((one.key, one.audience))) for one in everybody(session, settings)]


def parsed(given: Mapping[str, Any]) -> RecipientBody:
    """A recipient from named values. Raises ``UsageError`` that names the field."""
    return validated(RecipientBody, given, "recipient")


def change_of(given: Mapping[str, Any]) -> RecipientChange:
    """A change from named values. Raises ``UsageError`` that names the field."""
    return validated(RecipientChange, given, "recipient")


def add(session: Session, settings: Settings, body: RecipientBody, now_ms: int) -> RecipientView:
    """Keep a recipient. Raises ``UsageError`` where it could not be reached, or would be told of nothing."""
    made = _recipient(
        id=None,
        address=body.address.strip(),
        audience=Owner(body.team, body.project) if body.team or body.project else None,
        weekly=body.weekly,
        alerts=body.alerts,
        quiet_week=_quiet(body.quiet_week),
        paused_until_ms=_until(body.paused_until, settings, now_ms),
        note=body.note,
    )
    _check_audience(session, made.audience)
    for other in kept.listing(session):
        if (other.key, other.audience) == (made.key, made.audience):
            raise UsageError(
                f"{made.shown} is recipient {other.id} of the same already: change that one, or remove it first"
            )
    key = kept.add(session, made, now_ms)
    return _view(replace(made, id=key, created_at_ms=now_ms), now_ms, None)


def change(
    session: Session, settings: Settings, id_: int, body: RecipientChange, now_ms: int
) -> RecipientView:
    """Change what a recipient gets, or pause it. Raises ``NotFoundError``, ``UsageError``."""
    old = get(session, id_)
    values: dict[str, Any] = {
        name: value for name in ("weekly", "alerts", "note") if (value := getattr(body, name)) is not None
    }
    if body.quiet_week is not None:
        values["quiet_week"] = _quiet(body.quiet_week)
    if body.paused_until is not None:
        values["paused_until_ms"] = _until(body.paused_until, settings, now_ms)
    if not values:
        raise UsageError(
            f"nothing is given that could change recipient {id_}: give what it gets, a pause or a note"
        )
    made = _recipient(**{name: getattr(old, name) for name in Recipient.__dataclass_fields__} | values)
    kept.change(session, made)
    return _view(made, now_ms, mail.last_by_recipient(session).get((made.key, made.audience)))


def remove(session: Session, id_: int, now_ms: int) -> None:
    """Remove a recipient; what waits for it is not sent. Raises ``NotFoundError``."""
    get(session, id_)
    kept.end(session, id_, now_ms)
    mail.drop_waiting(session, id_, now_ms)


def get(session: Session, id_: int) -> Recipient:
    """A kept recipient. Raises ``NotFoundError``."""
    found = kept.get(session, id_)
    if found is None:
        raise NotFoundError(f"no recipient {id_}: recipients lists them")
    return found


def named(session: Session, settings: Settings, text: str) -> Recipient:
    """The recipient of a number or a mail address. Raises ``NotFoundError``, or ``UsageError`` where several are meant."""
    found = matching(everybody(session, settings), text)
    if not found:
        raise NotFoundError(f"no recipient {text}: gpuwise recipients lists them")
    if len(found) > 1:
        numbers = " or ".join(str(one.id or FILE) for one in found)
        raise UsageError(f"{text} is {len(found)} recipients: give the number ({numbers})")
    return found[0]


def _recipient(**values: Any) -> Recipient:
    try:
        return Recipient(**values)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _quiet(text: str) -> QuietWeek:
    try:
        return QuietWeek(text)
    except ValueError as error:
        raise UsageError(f"quiet_week is {text[:40]!r}: use {' or '.join(QuietWeek)}") from error


def _until(text: str | None, settings: Settings, now_ms: int) -> int | None:
    if not text:
        return None
    until = moment(text, settings.accounting_time_zone, now_ms, "paused_until")
    if until <= now_ms:
        raise UsageError(
            f"paused_until is {text!r}, which is over: give a later time or day (an age such as 7d counts back), or leave it empty to go on"
        )
    return until


def _check_audience(session: Session, audience: Owner | None) -> None:
    """Refuse an owner that no rule names: it would wait for mail for ever."""
    if audience is None:
        return
    known = {rule.owner for rule in owners.listing(session)}
    teams = sorted({owner.team for owner in known})
    if audience.team not in teams:
        raise UsageError(f"team is {audience.team!r}, and no owner rule names it: {_those(teams)}")
    projects = sorted({owner.project for owner in known if owner.team == audience.team} - {""})
    if audience.project and audience.project not in projects:
        raise UsageError(
            f"project is {audience.project!r}, and no owner rule of {audience.team} names it: {_those(projects)}"
        )


def _those(names: Sequence[str]) -> str:
    if not names:
        return "there is none yet (gpuwise owners rules)"
    more = " … (gpuwise owners rules lists them)" if len(names) > NAMED_AT_MOST else ""
    return f"there are {', '.join(names[:NAMED_AT_MOST])}{more}"


def _view(one: Recipient, now_ms: int, last: Logged | None) -> RecipientView:
    owner = one.audience
    return RecipientView(
        id=one.id,
        source=FILE if one.id is None else "kept",
        channel=one.channel.value,
        address=one.shown,
        team=None if owner is None else owner.team,
        project=None if owner is None else owner.project or None,
        audience="the whole fleet" if owner is None else owner.name,
        weekly=one.weekly,
        alerts=one.alerts,
        quiet_week=one.quiet_week.value,
        paused_until=None
        if one.paused_until_ms is None or not one.is_paused(now_ms)
        else from_ms(one.paused_until_ms),
        note=one.note,
        created_at=None if one.created_at_ms is None else from_ms(one.created_at_ms),
        last_state=None if last is None else last.state.value,
        last_at=None if last is None else from_ms(last.created_at_ms),
        last_problem=None if last is None else last.message,
    )
