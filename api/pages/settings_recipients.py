"""Settings › Mail and alerts: who gets what, what would be told now, what went out and how it fared, and forms for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from api import formats
from api.pages.form_routes import Fields, FormRoutes, IdPath
from api.pages.forms import NO_FORM, FormDep, FormState, given, ticked
from api.pages.frame import Frame, build_frame
from api.pages.view import View, ViewDep
from api.resources import recipients as resource
from api.resources.alerts import AlertView
from api.resources.recipients import RecipientView
from api.templating import render
from api.words import Mark
from core.clock import to_ms
from core.errors import GpuwiseError
from core.fault import FaultKind
from core.outbox import MessageKind, MessageState
from core.settings import Settings
from store.queries import mail, owners
from store.queries.mail import Logged

router = APIRouter(include_in_schema=False)
PAGE: Final = "/settings/recipients"
TEMPLATE: Final = "pages/settings_recipients.html"

TEXTS: Final = ("address", "team", "project", "quiet_week", "note")
MOST_LOGGED: Final = 50
STATE: Final[dict[str, tuple[Mark, str]]] = {
    MessageState.WAITING: (Mark.NOTE, "waits"),
    MessageState.CLAIMED: (Mark.NOTE, "being sent"),
    MessageState.SENT: (Mark.GOOD, "sent"),
    MessageState.REFUSED: (Mark.BAD, "refused"),
    MessageState.FAILED: (Mark.BAD, "given up"),
    MessageState.UNSURE: (Mark.WARN, "may have arrived"),
}
KIND: Final = {
    MessageKind.WEEKLY: "weekly report",
    MessageKind.ALERTS: "alerts",
    MessageKind.TEST: "test",
}
ALERT: Final = {
    "due": (Mark.WARN, "people are told at the next run"),
    "nobody": (Mark.BAD, "nobody gets alerts of it"),
    "waiting": (Mark.NOTE, "a message is on its way"),
    "cooling": (Mark.NOTE, "told already"),
    "refused": (Mark.BAD, "refused"),
}
LATER: Final = {
    "cooling": "told; not again for {left}, unless it grows",
    "refused": "refused; tried again in {left}",
}
"""The same with the time that is left."""
TOLD: Final = {
    FaultKind.SILENT: "silent agents",
    FaultKind.GPU: "broken GPUs",
    FaultKind.STUCK: "stuck jobs",
    FaultKind.BUDGET: "budgets at risk",
    FaultKind.RECOMMENDATION: "large new savings",
}
MARK: Final = {"urgent": Mark.BAD, "soon": Mark.WARN}


@dataclass(frozen=True, slots=True)
class RecipientLine:
    """A recipient as people read it; ``mark``, ``last``: how the last message to it fared."""

    row: RecipientView
    gets: str
    mark: Mark | None
    last: str


@dataclass(frozen=True, slots=True)
class AlertLine:
    """A fault that is there now."""

    row: AlertView
    mark: Mark
    state: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """A message that was made."""

    row: Logged
    kind: str
    mark: Mark
    state: str


@dataclass(frozen=True, slots=True)
class RecipientsPage:
    """Everything the page prints. ``sender``: how mail goes out; empty: it does not."""

    frame: Frame
    headline: str
    lines: tuple[RecipientLine, ...]
    alerts: tuple[AlertLine, ...]
    log: tuple[LogLine, ...]
    teams: tuple[str, ...]
    projects: tuple[str, ...]
    sender: str
    kinds: str
    again_days: int
    form: FormState
    quiet: tuple[tuple[str, str], ...] = (("skip", "no mail"), ("line", "one line that says so"))
    most_logged: int = MOST_LOGGED


@dataclass(frozen=True, slots=True)
class Read:
    """What the page is made of."""

    recipients: Sequence[RecipientView]
    alerts: Sequence[AlertView]
    log: Sequence[Logged]
    teams: Sequence[str] = ()
    projects: Sequence[str] = ()


def page_of(frame: Frame, settings: Settings, read: Read, *, form: FormState = NO_FORM) -> RecipientsPage:
    """The page from what was read and typed; pure."""
    return RecipientsPage(
        frame=frame,
        headline=headline(read),
        lines=tuple(line_of(row, frame.now_ms) for row in read.recipients),
        alerts=tuple(
            AlertLine(row, MARK.get(row.severity, Mark.NOTE), alert_state(row, frame.now_ms))
            for row in read.alerts
        ),
        log=tuple(LogLine(row, KIND[row.kind], *STATE[row.state]) for row in read.log),
        teams=tuple(read.teams),
        projects=tuple(read.projects),
        sender=f"{settings.smtp_from} through {settings.smtp_host}" if settings.smtp_host else "",
        kinds=", ".join(TOLD[FaultKind(kind)] for kind in settings.alert_kinds),
        again_days=settings.alert_again_days,
        form=form,
    )


def headline(read: Read) -> str:
    """Who is told, and whether it arrives, in a sentence."""
    active = [row for row in read.recipients if row.paused_until is None]
    if not active:
        due = sum(row.state == "nobody" for row in read.alerts)
        text = "Everybody is paused" if read.recipients else "Nobody gets mail or alerts yet"
        return (
            f"{text}; {due} alert{' waits' if due == 1 else 's wait'} for somebody to tell" if due else text
        )
    weekly, alerts = sum(row.weekly for row in active), sum(row.alerts for row in active)
    text = f"{weekly} get{'s' if weekly == 1 else ''} the weekly report, {alerts} get{'s' if alerts == 1 else ''} alerts"
    bad = sum(row.last_state in {MessageState.REFUSED, MessageState.FAILED} for row in active)
    if bad:
        text += f"; the last message to {bad} of them did not arrive"
    return text


def line_of(row: RecipientView, now_ms: int) -> RecipientLine:
    """A recipient as people read it."""
    gets = " and ".join(
        words for words, wanted in (("weekly report", row.weekly), ("alerts", row.alerts)) if wanted
    )
    if row.last_state is None or row.last_at is None:
        return RecipientLine(row, gets, None, "nothing yet")
    mark, words = STATE[MessageState(row.last_state)]
    ago = formats.duration(max(0, now_ms - to_ms(row.last_at)) / 1000)
    return RecipientLine(row, gets, mark, f"{words}, {ago} ago")


def alert_state(row: AlertView, now_ms: int) -> str:
    """Whether people hear of a fault, in words."""
    if row.state == "due":
        return f"{len(row.recipients)} told at the next run"
    if row.again_at is None or row.state not in LATER:
        return ALERT[row.state][1]
    left = formats.duration(max(0, to_ms(row.again_at) - now_ms) / 1000)
    return LATER[row.state].format(left=left)


def build_recipients(view: View, form: FormState = NO_FORM) -> RecipientsPage:
    """The page as it stands."""
    from api.resources import alerts  # mail parts: only this page needs them

    scope, session = view.scope, view.scope.session
    known = {rule.owner for rule in owners.listing(session)}
    read = Read(
        resource.rows(session, scope.settings, scope.now_ms),
        alerts.rows(session, scope.settings, scope.now_ms),
        mail.newest(session, MOST_LOGGED),
        sorted({owner.team for owner in known}),
        sorted({owner.project for owner in known} - {""}),
    )
    frame = build_frame(view, active="settings", title="Mail and alerts", window_text="")
    return page_of(frame, scope.settings, read, form=form)


def recipient_given(fields: Mapping[str, str]) -> dict[str, Any]:
    """The recipient that a form asks for, by the names of REST."""
    typed: dict[str, Any] = {"address": "", **given(fields, TEXTS)}
    return typed | {"weekly": ticked(fields, "weekly"), "alerts": ticked(fields, "alerts")}


FORMS: Final = FormRoutes(router, PAGE, lambda view, form: render(TEMPLATE, build_recipients(view, form)))


@router.get(PAGE, response_class=HTMLResponse)
def recipients_page(view: ViewDep) -> str:
    """The page as HTML."""
    return render(TEMPLATE, build_recipients(view))


@router.post(f"{PAGE}/add")
def add_recipient(view: ViewDep, fields: FormDep) -> Response:
    """Keep a recipient."""
    scope = view.scope

    def act() -> None:
        body = resource.parsed(recipient_given(fields))
        resource.add(scope.session, scope.settings, body, scope.now_ms)

    # A webhook's URL is a secret: it does not come back in the page.
    shown = {name: text for name, text in fields.items() if name != "address" or "://" not in text}
    return FORMS.answer(view, "add", shown, act, "added")


@FORMS.post_row("{id_}/change", form="r{id_}", said="saved")
def change_recipient(view: View, id_: int, fields: Fields) -> None:
    """Other messages for a recipient."""
    scope = view.scope
    typed = {**recipient_given({**fields, "address": ""}), "note": fields.get("note", "").strip()}
    body = resource.change_of(
        {name: typed[name] for name in ("weekly", "alerts", "quiet_week", "note") if name in typed}
    )
    resource.change(scope.session, scope.settings, id_, body, scope.now_ms)


@FORMS.post_row("{id_}/pause", form="p{id_}", said="saved")
def pause_recipient(view: View, id_: int, fields: Fields) -> None:
    """Send nothing before a day; without one, go on at once."""
    scope = view.scope
    body = resource.change_of({"paused_until": fields.get("paused_until", "").strip()})
    resource.change(scope.session, scope.settings, id_, body, scope.now_ms)


@FORMS.post_row("{id_}/remove", form="r{id_}", said="removed")
def remove_recipient(view: View, id_: int, _fields: Fields) -> None:
    """Remove a recipient; what waits for it is not sent."""
    resource.remove(view.scope.session, id_, view.scope.now_ms)


@router.post(f"{PAGE}/{{id_}}/test")
def test_recipient(request: Request, view: ViewDep, id_: IdPath, fields: FormDep) -> Response:
    """Send it a test message now."""
    from api.mailing import send_test  # charts and mail parts: only this route needs them

    scope = view.scope
    try:
        found = resource.get(scope.session, id_)
        scope.session.rollback()  # sending writes by itself: this session must hold no lock
        send_test(request.app.state.engine, scope.settings, scope.now_ms, found)
    except GpuwiseError as error:
        return FORMS.refused(view, f"t{id_}", fields, error)
    return RedirectResponse(f"{PAGE}?said=test-sent#log", 303)
