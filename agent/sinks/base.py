"""What a sink is: where deliveries go, durable on return; and how a sink says no."""

from typing import Final, Protocol

from core.delivery import Delivery
from core.errors import GpuwiseError

MOST_WAIT_S: Final = 3600.0
"""The longest wait that a sink may ask for: a wrong clock or header must not silence an agent for days."""


class SinkError(GpuwiseError):
    """Not taken now: the same delivery again, later.

    Attributes:
        wait_s: how long the other side asked to be left alone; None when it did not say.
        suspect: the sink answered, but failed on this delivery: others may pass before it.
    """

    def __init__(self, sentence: str, *, wait_s: float | None = None, suspect: bool = False) -> None:
        super().__init__(sentence)
        self.wait_s = None if wait_s is None else min(max(wait_s, 0.0), MOST_WAIT_S)
        self.suspect = suspect


class RefusedError(GpuwiseError):
    """Never to be taken, however often it is tried; the sentence says what is wrong with it."""


class TooEarlyError(GpuwiseError):
    """The sink's clock is behind the samples; from ``until_ms`` (UTC epoch) they may be taken."""

    def __init__(self, sentence: str, until_ms: int) -> None:
        super().__init__(sentence)
        self.until_ms = until_ms


class Sink(Protocol):
    """Takes deliveries, each in one transaction; keeps samples exactly once, however often they are given."""

    def deliver(self, delivery: Delivery) -> int:
        """Store it; rows that were new. Durable on return.

        Raises:
            SinkError, RefusedError, TooEarlyError: not stored; says what to do.
        """

    def close(self) -> None:
        """Let go of what the sink holds."""


class BodySink(Protocol):
    """Takes deliveries as the spool holds them."""

    def deliver_body(self, body: bytes, *, agent_id: str, sequence: int) -> None:
        """Store one; durable on return.

        Args:
            body: ``core.delivery.encode`` in gzip: compressed once, before it went to the spool.
            agent_id, sequence: number of the delivery, as in the body.

        Raises:
            SinkError, RefusedError, TooEarlyError: not stored; says what to do.
        """

    def close(self) -> None:
        """Let go of what the sink holds; a later delivery opens it again."""
