"""What every mail of ours carries, and the mail of a few lines that needs no template."""

from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import make_msgid, parseaddr
from typing import Final

from core.clock import from_ms
from core.settings import Settings

SUBJECT_AT_MOST: Final = 150
"""Letters; mail programs show some 60, and a name of 10 kB must not become a header."""
_WIRE: Final = policy.SMTP.clone(cte_type="7bit")


def envelope(settings: Settings, now_ms: int, subject: str, *, to: str) -> EmailMessage:
    """A message with its headers and no body yet. Names from outside cannot make a header of their own."""
    message = EmailMessage()
    message["Subject"] = one_line(subject)
    message["From"] = sender(settings)
    message["To"] = to
    message["Date"] = from_ms(now_ms)
    # RFC 3834: holiday notices and ticket systems do not answer what says so.
    message["Auto-Submitted"] = "auto-generated"
    message["Message-ID"] = make_msgid(domain=domain(settings))
    return message


def text_message(settings: Settings, now_ms: int, subject: str, text: str, *, to: str) -> EmailMessage:
    """A mail of plain text."""
    message = envelope(settings, now_ms, subject, to=to)
    message.set_content(text)
    return message


def sender(settings: Settings) -> str:
    """``gpuwise <gpuwise@example.org>``, or the name that smtp_from gives itself."""
    given = settings.smtp_from
    return given if "<" in given else str(Address(display_name="gpuwise", addr_spec=given))


def domain(settings: Settings) -> str:
    """Where our mail comes from."""
    return parseaddr(settings.smtp_from)[1].rpartition("@")[2] or "localhost"


def one_line(text: str, at_most: int = SUBJECT_AT_MOST) -> str:
    """Text that a header can hold: no line ends, nothing unseen (marks that turn text around among it), not too long."""
    words = " ".join("".join(c if c.isprintable() or c.isspace() else " " for c in text).split())
    return words if len(words) <= at_most else f"{words[: at_most - 1]}…"


def as_wire(message: EmailMessage) -> str:
    """The message as it travels, in seven bits, so that every server takes it and a text column keeps it."""
    return message.as_bytes(policy=_WIRE).decode("ascii")
