"""A recipient as the user gives it: a mail address or a webhook, for whom, and what it gets. Standard library only."""

import re
from dataclasses import dataclass
from email.utils import parseaddr
from enum import StrEnum
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from core.outbox import Channel
from core.ownership import Owner

LONGEST_ADDRESS: Final = 254
"""Of a mail address (RFC 5321 4.5.3.1.3: a path of 256 with its brackets)."""
LONGEST_URL: Final = 2_000
SHOWN_OF_SECRET: Final = 4
_MAIL: Final = re.compile(
    r"(?P<local>[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*)"
    r"@(?P<domain>[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*)"
)
"""Dot-atoms of ASCII (RFC 5322 3.2.3): no quotes, brackets, blanks or line ends, so that no header can be smuggled in."""


class QuietWeek(StrEnum):
    """What a recipient of the weekly mail gets in a week with nothing to say."""

    SKIP = "skip"
    LINE = "line"


@dataclass(frozen=True, slots=True)
class Recipient:
    """Who gets what.

    Attributes:
        id: of the row in the store; None: it comes from ``report_recipients`` of gpuwise.toml.
        address: a mail address, or the URL of a webhook: a secret, see ``shown``.
        audience: whose GPUs and money it is told of; None: the whole fleet.
        weekly, alerts: which kinds it gets. quiet_week: what it gets when there is nothing to say.
        paused_until_ms: gets nothing before then. note: the user's own words.
    """

    id: int | None
    address: str
    audience: Owner | None = None
    weekly: bool = True
    alerts: bool = True
    quiet_week: QuietWeek = QuietWeek.SKIP
    paused_until_ms: int | None = None
    note: str = ""
    created_at_ms: int | None = None

    def __post_init__(self) -> None:
        """Refuse what nobody could be reached by. Raises ``ValueError`` with what is wrong, never with a secret."""
        if self.channel is Channel.MAIL:
            check_mail(self.address)
        else:
            check_webhook(self.address)
        if self.audience is not None and not self.audience.team:
            raise ValueError("project is given without its team: give the team too")
        if not (self.weekly or self.alerts):
            raise ValueError("it would get neither the weekly mail nor alerts: give one of them")

    @property
    def channel(self) -> Channel:
        """Mail, or a webhook: what has a scheme is no mail address."""
        return Channel.WEBHOOK if "://" in self.address else Channel.MAIL

    @property
    def key(self) -> str:
        """The same recipient, however it is written; holds no secret."""
        if self.channel is Channel.MAIL:
            return self.address.lower()
        return f"webhook {sha256(self.address.encode()).hexdigest()[:24]}"

    @property
    def shown(self) -> str:
        """For people: the address, or host and last letters of a webhook."""
        return self.address if self.channel is Channel.MAIL else shown_webhook(self.address)

    def is_paused(self, now_ms: int) -> bool:
        """It gets nothing now."""
        return self.paused_until_ms is not None and now_ms < self.paused_until_ms


def plain_address(text: str) -> str:
    """The address of ``Finance <finance@example.org>``, or the text itself. Raises ``ValueError`` where it is none."""
    address = parseaddr(text)[1] if "<" in text and text.isprintable() else text.strip()
    check_mail(address)
    return address


def check_mail(address: str) -> None:
    """Refuse what is no plain mail address. Raises ``ValueError``."""
    if len(address) > LONGEST_ADDRESS or _MAIL.fullmatch(address) is None:
        raise ValueError(
            f"address is {address[:80]!r}: give one mail address such as finance@example.org, in plain letters"
            " and without a name, or the https:// URL of a webhook"
        )


def check_webhook(url: str) -> None:
    """Refuse a URL that is none for a webhook. Raises ``ValueError``; what it says holds nothing of the URL but its host."""
    if len(url) > LONGEST_URL or not url.isascii() or any(not "!" <= letter <= "~" for letter in url):
        raise ValueError(
            f"the webhook's URL holds blanks or letters that no URL has, or more than {LONGEST_URL} of them: copy it anew"
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError("the webhook's URL has a host or port that is none: copy it anew") from error
    if parts.scheme not in {"http", "https"}:
        raise ValueError(
            f"the webhook's URL begins with {parts.scheme[:20]}://: give one with https:// or http://"
        )
    if not host or port == 0:
        raise ValueError("the webhook's URL names no host: copy it anew")
    if "@" in parts.netloc:
        raise ValueError(f"the webhook's URL for {host} has a user or password in it: give one without")
    if parts.fragment:
        raise ValueError(f"the webhook's URL for {host} has a # in it: give it without what follows")


def shown_webhook(url: str) -> str:
    """Host and last letters: enough to tell two apart, not enough to post there."""
    parts = urlsplit(url)
    secret = parts.path.strip("/") + parts.query
    host = parts.netloc.rpartition("@")[2]
    # What is short would be shown whole.
    return f"{host} …{secret[-SHOWN_OF_SECRET:]}" if len(secret) >= 4 * SHOWN_OF_SECRET else f"{host} …"
