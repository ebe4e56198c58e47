"""The weekly report as a page: for whom, the mail as it is sent, who gets it when, and what was sent.

The report itself is made once, for the frame that shows the mail: the page around it stands at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from api import formats
from api import report_lines as lines
from api.pages.frame import Frame, build_frame
from api.pages.period import PeriodLink
from api.pages.view import Address, View, ViewDep
from api.report import weekly, window_of
from api.report_render import render_html
from api.resources.recipients import RecipientView
from api.resources.recipients import rows as recipient_rows
from api.resources.report_audiences import audience_of, audiences
from api.routes.reports import MAIL_CSP
from api.security import CSP
from api.templating import render
from core.evidence import Window
from core.outbox import MessageKind
from core.ownership import Owner
from core.settings import Settings
from store.queries import mail
from store.queries.mail import Logged

router = APIRouter(include_in_schema=False)

DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SANDBOX: Final = "allow-popups allow-popups-to-escape-sandbox"
"""The mail's links open pages of gpuwise in a tab of their own; it may do nothing else."""
PREVIEW_CSP: Final = MAIL_CSP.format("'self'") + f"; sandbox {SANDBOX}"
LOG_READ: Final = 500
LOG_SHOWN: Final = 10
CHOICES: Final = 40
"""Audiences that are links; of more the others are reached by their owner's page."""
STATES: Final = {
    "waiting": "waits to be sent",
    "claimed": "is being sent",
    "sent": "sent",
    "refused": "refused",
    "failed": "given up",
    "unsure": "may have arrived",
}


@dataclass(frozen=True, slots=True)
class SentLine:
    """One message of this audience's report, for people."""

    period: str
    shown: str
    state: str
    at_ms: int
    message: str


@dataclass(frozen=True, slots=True)
class ReportPage:
    """Everything the page prints.

    Attributes:
        days: that it covers. name: of the audience. choices: audiences; choices_more: how many more there are.
        preview: address of the mail as it is sent. command: what makes the same on a terminal. add: what adds a recipient.
        mailing: who gets it and when, in words. recipients: of this audience. sent: what went out, newest first.
    """

    frame: Frame
    days: str
    audience: Owner | None
    name: str
    choices: tuple[PeriodLink, ...]
    choices_more: int
    preview: str
    command: str
    add: str
    mailing: str
    recipients: tuple[RecipientView, ...]
    sent: tuple[SentLine, ...]
    sandbox: str = SANDBOX


def mailing(count: int, settings: Settings) -> str:
    """Who gets it and when, in words."""
    if not count:
        return "Nobody gets this report yet."
    noun = "recipient" if count == 1 else "recipients"
    when = f"every {DAYS[settings.report_weekday]} at {settings.report_hour_utc:02d}:00 UTC"
    server = "" if settings.smtp_host else " No mail server is set (smtp_host), so no mail leaves yet."
    return f"Goes to {count} {noun} {when}.{server}"


def address_for(path: str, audience: Owner | None) -> str:
    """A page about an audience."""
    if audience is None:
        return path
    return Address(path).href(owner=audience.team, project=audience.project)


def command_for(audience: Owner | None) -> str:
    """What prints the same report."""
    return "gpuwise report weekly " + ("--fleet" if audience is None else f"--owner {quote(audience.name)}")


def add_command(audience: Owner | None) -> str:
    """What adds a recipient of it."""
    if audience is None:
        return "gpuwise recipients add ADDRESS"
    project = f" --project {quote(audience.project)}" if audience.project else ""
    return f"gpuwise recipients add ADDRESS --team {quote(audience.team)}{project}"


def page_of(
    frame: Frame,
    chosen: Owner | None,
    window: Window,
    settings: Settings,
    *,
    known: Sequence[Owner] = (),
    recipients: Sequence[RecipientView] = (),
    log: Sequence[Logged] = (),
) -> ReportPage:
    """Lay out the page; pure."""
    shown: list[Owner | None] = [None, *known[:CHOICES]]
    if chosen not in shown:
        shown.append(chosen)
    own = [
        one
        for one in recipients
        if one.weekly
        and (one.team, one.project)
        == (None if chosen is None else chosen.team, (chosen.project or None) if chosen else None)
    ]
    return ReportPage(
        frame=frame,
        days=formats.days(window.from_ms, window.to_ms),
        audience=chosen,
        name=lines.audience_name(chosen),
        choices=tuple(
            PeriodLink("Whole fleet" if one is None else one.name, address_for("/report", one), one == chosen)
            for one in shown
        ),
        choices_more=max(0, len(known) - CHOICES),
        preview=address_for("/report/preview", chosen),
        command=command_for(chosen),
        add=add_command(chosen),
        mailing=mailing(len(own), settings),
        recipients=tuple(own),
        sent=tuple(
            SentLine(
                one.period.replace("/", " to "),
                one.shown,
                STATES.get(one.state.value, one.state.value),
                one.ended_at_ms or one.created_at_ms,
                one.message or "",
            )
            for one in log
            if one.kind is MessageKind.WEEKLY and one.audience == chosen
        )[:LOG_SHOWN],
    )


def build_report(view: View) -> ReportPage:
    """The page as of the newest data. Raises ``NotFoundError`` for an owner that nothing names."""
    scope = view.scope
    session, settings = scope.session, scope.settings
    audience = audience_of(session, view.address.get("owner"), view.address.get("project"))
    window, _ = window_of(session, scope.now_ms)
    frame = build_frame(
        view.over(window),
        active="report",
        title="Weekly report",
        window_text=formats.span(window.from_ms, window.to_ms),
    )
    return page_of(
        frame,
        audience,
        window,
        settings,
        known=audiences(session),
        recipients=recipient_rows(session, settings, scope.now_ms),
        log=mail.newest(session, LOG_READ),
    )


@router.get("/report", response_class=HTMLResponse)
def report_page(view: ViewDep) -> HTMLResponse:
    """The report as HTML; the mail stands in a frame of its own, so this page may hold one of ours."""
    return HTMLResponse(
        render("pages/report.html", build_report(view)),
        headers={"Content-Security-Policy": f"{CSP}; frame-src 'self'"},
    )


@router.get("/report/preview", response_class=HTMLResponse)
def preview(view: ViewDep) -> HTMLResponse:
    """The mail as it is sent, its pictures inside."""
    scope = view.scope
    audience = audience_of(scope.session, view.address.get("owner"), view.address.get("project"))
    report = weekly(scope.session, scope.settings, scope.now_ms, audience)
    return HTMLResponse(render_html(report), headers={"Content-Security-Policy": PREVIEW_CSP})
