"""Messages on their way out: their kinds, what became of them, and when one is tried again. Standard library only."""

from enum import StrEnum
from typing import Final

from core.units import HOUR_MS, MINUTE_MS


class MessageKind(StrEnum):
    """What a message is about."""

    WEEKLY = "weekly-report"
    ALERTS = "alerts"
    TEST = "test"


class MessageState(StrEnum):
    """What became of a message to one recipient."""

    WAITING = "waiting"
    """To be sent when it is due."""
    CLAIMED = "claimed"
    """A process is sending it, or died while it did."""
    SENT = "sent"
    REFUSED = "refused"
    """For good: there is no such address, or the message is not wanted."""
    FAILED = "failed"
    """Given up after the last try."""
    UNSURE = "unsure"
    """The process or the connection broke while it was handed over: it may have arrived, and is not sent again."""


class Channel(StrEnum):
    """How a recipient is reached."""

    MAIL = "mail"
    WEBHOOK = "webhook"


RETRY_AFTER_MS: Final = (5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, 4 * HOUR_MS)
"""After the first, second, … try that failed for now; after the last of them it is given up."""
STALE_CLAIM_MS: Final = 15 * MINUTE_MS
"""A claim without an end for so long is of a process that died: no conversation takes that long."""


def retry_at(attempts: int, now_ms: int) -> int | None:
    """When to try again after so many tries; None: give up."""
    return None if attempts > len(RETRY_AFTER_MS) else now_ms + RETRY_AFTER_MS[attempts - 1]
