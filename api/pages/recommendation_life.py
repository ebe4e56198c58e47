"""The forms that move a recommendation: claim, done, snooze, dismiss, reopen. A refused form comes back as it was typed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from api.deps import NowDep, SessionDep, SettingsDep
from api.pages.forms import FormDep, FormState
from api.pages.recommendation import MOST_NOTE, MOST_WHO, REASONS, IdPath, build_detail, find
from api.pages.view import Address, View
from api.resources.recommendation_actions import Act, act
from api.resources.scope import scope_of
from api.templating import render
from api.text import storable
from core.errors import UsageError

router = APIRouter(include_in_schema=False)

FIELDS: Final = ("note", "who", "until", "at")
"""Fields beside which a refusal is shown."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a form says, as ``act`` takes it."""

    note: str
    who: str
    until: str | None
    at: str | None


class RefusedError(UsageError):
    """A form that cannot be taken, and the field that is why."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def given(step: Act, fields: Mapping[str, str]) -> Given:
    """Read a form. Raises ``RefusedError``."""
    values = {name: fields.get(name, "").strip() for name in FIELDS}
    for name, most in (("note", MOST_NOTE), ("who", MOST_WHO)):
        if len(values[name]) > most:
            raise RefusedError(name, f"{name} is longer than {most:,} characters: shorten it")
        try:
            storable(values[name])
        except ValueError as error:
            raise RefusedError(name, f"{name} {error}") from error
    note, at = values["note"], values["at"]
    if step is Act.DISMISS and fields.get("reason"):
        note = _reason(fields["reason"], note)
    # A form's date and time names no zone: it says that it is UTC.
    zoned = f"{at}Z" if at and "T" in at and not at.endswith("Z") and "+" not in at else at
    return Given(note, values["who"], values["until"] or None, zoned or None)


def _reason(key: str, note: str) -> str:
    """The reason that was chosen with what was written to it."""
    if key not in REASONS:
        raise RefusedError("reason", f"reason is none of {', '.join(REASONS)}: choose one of the list")
    if key == "other":
        if not note:
            raise RefusedError("note", "something else needs a note: say what")
        return note
    return f"{REASONS[key]}: {note}" if note else f"{REASONS[key]}."


def field_of(error: str) -> str:
    """The field that a refusal of ``act`` speaks of; "" where it speaks of the whole."""
    if error.startswith("dismissing needs a note"):
        return "note"
    if error.startswith("snoozing needs until"):
        return "until"
    first = error.split(" ", maxsplit=1)[0]
    return first if first in FIELDS else ""


@router.post("/recommendations/{id_}/{step}")
def take_step(  # noqa: PLR0917 - one dependency each
    id_: IdPath, step: Act, fields: FormDep, session: SessionDep, settings: SettingsDep, now: NowDep
) -> Response:
    """Take a step from a form and show the recommendation again."""
    view = View(scope_of(session, settings, now), Address(f"/recommendations/{id_}"))
    rec = find(view.scope, id_)
    try:
        said = given(step, fields)
        act(session, id_, step, now, note=said.note, until=said.until, who=said.who, at=said.at)
    except UsageError as error:
        field = error.field if isinstance(error, RefusedError) else field_of(str(error))
        form = FormState(step.value, fields, {field: str(error)})
        return HTMLResponse(render("pages/recommendation.html", build_detail(view, rec, form)), 422)
    return RedirectResponse(f"/recommendations/{id_}?said=step-taken#main", 303)
