"""Who gets the weekly mail: one message per recipient and period, put in once and sent."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from api.mail_envelope import as_wire, text_message
from api.mail_message import report_message
from api.outgoing import deliver
from api.report import weekly
from api.report_model import WeeklyReport
from api.resources.recipients import everybody, matching
from api.slack import Point, slack_json
from api.smtp import MailError
from core.clock import iso
from core.errors import GpuwiseError, NotFoundError, UsageError
from core.outbox import Channel, MessageKind
from core.ownership import Owner
from core.settings import Settings
from core.user_recipient import QuietWeek, Recipient, plain_address
from store.engine import session_scope
from store.queries import mail
from store.queries.mail import Draft

NOBODY: Final = "no recipients are set (gpuwise recipients add ADDRESS, or report_recipients)"


@dataclass(frozen=True, slots=True)
class Made:
    """Messages of one period, not put in yet, and what to say of those who get none."""

    drafts: tuple[Draft, ...]
    mailed_before: int
    quiet: int
    subject: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reports:
    """What reports are made from: where, under which settings, as of when, of days before when (None: now)."""

    session: Session
    settings: Settings
    now_ms: int
    until_ms: int | None = None


class Fate(StrEnum):
    """What becomes of a recipient's weekly report."""

    GOES = "goes"
    BEFORE = "mailed-before"
    QUIET = "nothing-to-say"


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One recipient, its report, and whether it gets it."""

    recipient: Recipient
    report: WeeklyReport
    fate: Fate


@dataclass(frozen=True, slots=True)
class Plan:
    """Every recipient; sentences about reports that could not be made."""

    lines: list[PlanLine]
    problems: list[str]


def send_weekly(
    engine: Engine,
    settings: Settings,
    now_ms: int,
    *,
    again: bool = False,
    to: str | None = None,
    only: Collection[Owner | None] | None = None,
    until_ms: int | None = None,
) -> str:
    """Mail the report of the last seven days, once per period, audience and recipient; a dry run without recipients.

    Args:
        engine: where. settings: the site's. now_ms: when.
        again: also to whom it went already.
        to: only to this address (a recipient's, whatever it wants else; or another one, which gets the fleet's report).
        only: the reports of these audiences alone.
        until_ms: of the seven days before this moment, for a report that is late; None: now.

    Returns:
        One sentence of what was done.

    Raises:
        MailError: the mail server could not be used; what waits is tried again by the job ``mail``.
        GpuwiseError: an owner's report could not be made; the others went out.
        UsageError: ``to`` is no address. NotFoundError: it is a number that no recipient has.
    """
    with session_scope(engine) as session:
        people = addressed(session, settings, now_ms, to, only)
        if not people:
            subject = weekly(session, settings, now_ms, until_ms=until_ms).subject
            return f"dry run: {subject!r} was not sent, because {NOBODY}"
        reports = Reports(session, settings, now_ms, until_ms)
        made = _made(reports, people, again=again)
    with session_scope(engine) as session:
        # One that somebody sends to somebody is no news that its audience was told.
        drafts = made.drafts if to is None else [replace(one, told=()) for one in made.drafts]
        put = [mail.put(session, draft, now_ms, again=again) for draft in drafts]
    done = deliver(engine, settings, now_ms, only=[key for key in put if key is not None])
    told = _told(made, str(done) if made.drafts else "nothing sent")
    if done.server_problems:
        raise MailError(told)
    if made.problems:
        raise GpuwiseError(told)
    return told


def _told(made: Made, done: str) -> str:
    parts = [f"{made.subject!r}: {done}" if made.drafts else done, *made.problems]
    if made.mailed_before:
        parts.append(f"{made.mailed_before} mailed before")
    if made.quiet:
        parts.append(f"{made.quiet} with nothing to report")
    return "; ".join(parts)


def send_test(engine: Engine, settings: Settings, now_ms: int, recipient: Recipient) -> str:
    """Send a message that says it is a test, now and once.

    Raises:
        GpuwiseError: it did not go out; the server's sentence.
    """
    subject = "gpuwise: a test message"
    text = (
        "This is a test. Who reads this gets gpuwise's messages here: "
        f"{_what(recipient)} of {'the whole fleet' if recipient.audience is None else recipient.audience.name}.\n"
    )
    base_url = settings.base_url.rstrip("/")
    if recipient.channel is Channel.MAIL:
        message = text_message(settings, now_ms, subject, f"{text}\n{base_url}\n", to=recipient.address)
        body = as_wire(message)
    else:
        body = slack_json(subject, [Point("It works", text)], url=base_url)
    draft = Draft(MessageKind.TEST, iso(now_ms) or "", recipient, subject, body)
    with session_scope(engine) as session:
        key = mail.put(session, draft, now_ms, again=True)
    done = deliver(engine, settings, now_ms, only=[] if key is None else [key])
    if done.sent != 1:
        raise GpuwiseError(
            "; ".join(done.problems) or "another test to it is on its way: try again in a moment"
        )
    return f"a test message went to {recipient.shown}"


def _what(recipient: Recipient) -> str:
    return " and ".join(
        name
        for name, wanted in (("the weekly report", recipient.weekly), ("alerts", recipient.alerts))
        if wanted
    )


def addressed(
    session: Session,
    settings: Settings,
    now_ms: int,
    to: str | None,
    only: Collection[Owner | None] | None,
) -> list[Recipient]:
    """Who gets a weekly report now, whatever went out before; the arguments are those of ``send_weekly``.

    Raises:
        UsageError: ``to`` is no address. NotFoundError: it is a number that no recipient has.
    """
    people = [one for one in everybody(session, settings) if only is None or one.audience in only]
    if to is None:
        return [one for one in people if one.weekly and not one.is_paused(now_ms)]
    found = matching(people, to)
    if found:
        return [replace(one, quiet_week=QuietWeek.LINE) for one in found]
    if to.isdecimal():
        raise NotFoundError(f"--to: no recipient {to}: gpuwise recipients lists them")
    try:
        return [
            Recipient(None, plain_address(to), audience, quiet_week=QuietWeek.LINE)
            for audience in (only or (None,))
        ]
    except ValueError as error:
        raise UsageError(f"--to: {error}") from error


def _made(reports: Reports, people: Sequence[Recipient], *, again: bool) -> Made:
    """One report per audience, one message per recipient that has none of the period."""
    found = _planned(reports, people, again=again)
    fates = [one.fate for one in found.lines]
    drafts = [
        _draft(one.report, reports.settings, reports.now_ms, one.recipient)
        for one in found.lines
        if one.fate is Fate.GOES
    ]
    subject = found.lines[0].report.subject if found.lines else ""
    return Made(
        tuple(drafts), fates.count(Fate.BEFORE), fates.count(Fate.QUIET), subject, tuple(found.problems)
    )


def planned(
    reports: Reports,
    *,
    again: bool = False,
    to: str | None = None,
    only: Collection[Owner | None] | None = None,
) -> Plan:
    """Who would get what now, and why others would not; the arguments are those of ``send_weekly``.

    Raises:
        UsageError: ``to`` is no address. NotFoundError: it is a number that no recipient has.
    """
    people = addressed(reports.session, reports.settings, reports.now_ms, to, only)
    return _planned(reports, people, again=again)


def _planned(reports: Reports, people: Sequence[Recipient], *, again: bool) -> Plan:
    found = Plan([], [])
    for audience, of_audience in _by_audience(people).items():
        try:
            report = weekly(
                reports.session, reports.settings, reports.now_ms, audience, until_ms=reports.until_ms
            )
        except GpuwiseError as error:
            found.problems.append(f"report of {_whose(audience)}: {error}")
            continue
        there = set() if again else mail.known(reports.session, MessageKind.WEEKLY, report.period)
        for one in of_audience:
            fate = Fate.GOES
            if (audience, one.key) in there:
                fate = Fate.BEFORE
            elif not report.has_news and one.quiet_week is QuietWeek.SKIP:
                fate = Fate.QUIET
            found.lines.append(PlanLine(one, report, fate))
    return found


def _whose(audience: Owner | None) -> str:
    return "the fleet" if audience is None else audience.name


def _by_audience(people: Iterable[Recipient]) -> dict[Owner | None, list[Recipient]]:
    found: dict[Owner | None, list[Recipient]] = defaultdict(list)
    for one in people:
        found[one.audience].append(one)
    return dict(found)


def _draft(report: WeeklyReport, settings: Settings, now_ms: int, one: Recipient) -> Draft:
    subject = report.subject
    if one.channel is Channel.WEBHOOK:
        body = _slack(report)
    elif report.has_news:
        message = report_message(report, settings, now_ms, to=one.address)
        subject, body = str(message["Subject"]), as_wire(message)
    else:
        text = f"{report.subject}\n\nThere is nothing else to say of these days.\n\n{report.url}\n"
        message = text_message(settings, now_ms, report.subject, text, to=one.address)
        subject, body = str(message["Subject"]), as_wire(message)
    return Draft(MessageKind.WEEKLY, report.period, one, subject, body, report.told)


def _slack(report: WeeklyReport) -> str:
    return slack_json(report.subject, _points(report), url=report.url, more=report.quality)


def _points(report: WeeklyReport) -> Iterator[Point]:
    if report.headline:
        yield Point(
            report.headline, " ".join(part for part in (report.headline_idle, report.compared) if part)
        )
    for row in report.recommendations:
        yield Point(f"{row.sum}: {row.title}", row.because, f"{report.base_url}{row.href}")
