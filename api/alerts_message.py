"""Alerts as a message: plain text and a small HTML for mail, Slack's JSON for webhooks. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Final

import css_inline

from api import formats
from api.mail_envelope import envelope, one_line
from api.mail_text import plain
from api.slack import Point, slack_json
from api.templating import environment, inert
from core.fault import Fault, Severity
from core.settings import Settings
from core.units import DAY_MS

AT_MOST: Final = 25
"""Faults that a message spells out; of the others it says how many there are."""
LONGEST_TITLE: Final = 200
LONGEST_DETAIL: Final = 800
SAID: Final = {Severity.BAD: "urgent", Severity.WARN: "soon", Severity.NOTE: "for you to know"}
"""How bad, in words: nothing rests on colour."""


@dataclass(frozen=True, slots=True)
class Item:
    """One fault as a message prints it."""

    severity: str
    title: str
    detail: str
    url: str


@dataclass(frozen=True, slots=True)
class AlertsMessage:
    """What people are told at once.

    Attributes:
        subject: with the worst fault in it. simulated: the fleet is.
        items: the faults, worst first; ``more`` of them are not spelled out. over: what is over.
        again_days: how long they hear no more of the same.
    """

    subject: str
    simulated: bool
    items: tuple[Item, ...]
    more: int
    over: tuple[str, ...]
    base_url: str
    again_days: int


def message_of(
    faults: Sequence[Fault], over: Sequence[str], settings: Settings, *, simulated: bool
) -> AlertsMessage:
    """Lay out what is told, worst first."""
    base_url = settings.base_url.rstrip("/")
    items = tuple(
        Item(
            SAID[one.severity],
            _kept(one.title, LONGEST_TITLE),
            _kept(one.detail, LONGEST_DETAIL),
            f"{base_url}{one.path}",
        )
        for one in faults[:AT_MOST]
    )
    return AlertsMessage(
        subject=one_line(_subject(faults, over, simulated=simulated)),
        simulated=simulated,
        items=items,
        more=max(0, len(faults) - AT_MOST),
        over=tuple(_kept(title, LONGEST_TITLE) for title in over),
        base_url=base_url,
        again_days=settings.alert_again_days,
    )


def _kept(text: str, at_most: int) -> str:
    """Text from outside with nothing in it that acts, and not a page of it."""
    said = inert(text.replace(formats.NBSP, " "))
    return said if len(said) <= at_most else f"{said[: at_most - 1]}…"


def _subject(faults: Sequence[Fault], over: Sequence[str], *, simulated: bool) -> str:
    mark = "[simulated] " if simulated else ""
    if not faults:
        first, count = f"over: {over[0]}", len(over)
    else:
        first, count = faults[0].title, len(faults)
    more = f" and {count - 1} more" if count > 1 else ""
    # The number survives a long name in front of it.
    kept = first if len(first) <= 100 else f"{first[:99]}…"
    return f"{mark}gpuwise: {kept}{more}"


def as_mail(message: AlertsMessage, settings: Settings, now_ms: int, *, to: str) -> EmailMessage:
    """The mail for one address."""
    mail = envelope(settings, now_ms, message.subject, to=to)
    mail.set_content(plain("mail/alerts.txt", message=message, to=to))
    page = environment().get_template("mail/alerts.html").render(message=message, to=to)
    # Rules for dark mode cannot be inlined: they stay in the head.
    inlined = css_inline.inline(page, load_remote_stylesheets=False, keep_at_rules=True, minify_css=True)
    mail.add_alternative(inlined, subtype="html")
    return mail


def as_slack(message: AlertsMessage) -> str:
    """The JSON for one webhook."""
    points = [Point(item.title, f"{item.detail} ({item.severity})", item.url) for item in message.items]
    points += [Point(f"Over: {title}") for title in message.over]
    more = f"{message.more} more are in gpuwise" if message.more else ""
    return slack_json(message.subject, points, url=message.base_url, more=more)


def silence_ms(settings: Settings) -> int:
    """How long people hear no more of a fault."""
    return settings.alert_again_days * DAY_MS
