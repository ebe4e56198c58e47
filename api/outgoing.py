"""Messages that wait are sent: each claimed by one process, handed over, and ended or tried again.

The claim is committed before anything is sent. Where a process dies with a claim, nobody knows whether the message
arrived: a weekly mail is then not sent again (at most once), alerts are (at least once). What a message told counts as
told in the transaction that writes its end: actions of a weekly mail once it is sent, faults until it failed.
"""

import logging
import time
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from api.smtp import MailError, MailServer, RecipientError, UncertainError
from api.webhook import WebhookError, post
from core.errors import GpuwiseError
from core.outbox import Channel, MessageKind, MessageState, retry_at
from core.settings import Settings
from core.units import MINUTE_MS
from store.engine import session_scope
from store.queries import alerts, mail, recipients, report_told
from store.queries.mail import Claimed

log = logging.getLogger(__name__)

RUN_AT_MOST_MS: Final = 4 * MINUTE_MS
"""Jobs share a thread: what is not sent by then waits for the next run."""
MAY_COME_TWICE: Final = frozenset({MessageKind.ALERTS})
"""Better twice than never."""
DIED: Final = "the process ended while it was sent: it may have arrived"


@dataclass(slots=True)
class Delivery:
    """What a run did, with the sentences about what went wrong.

    Attributes:
        sent: messages taken over by a server. refused: for good. waiting: to be tried again. failed: given up.
        unsure: nobody knows. problems: each once. server_problems: those that are no recipient's fault.
    """

    sent: int = 0
    refused: int = 0
    waiting: int = 0
    failed: int = 0
    unsure: int = 0
    problems: list[str] = field(default_factory=list)
    server_problems: list[str] = field(default_factory=list)

    def note(self, sentence: str, *, of_server: bool) -> None:
        """Remember a problem once."""
        for kept in (self.problems, self.server_problems) if of_server else (self.problems,):
            if sentence not in kept:
                kept.append(sentence)

    def __str__(self) -> str:
        """One sentence."""
        counts = [
            (self.sent, "sent"),
            (self.refused, "refused"),
            (self.waiting, "to be tried again"),
            (self.failed, "given up"),
            (self.unsure, "that may have arrived"),
        ]
        said = ", ".join(f"{count} {what}" for count, what in counts if count) or "nothing to send"
        return "; ".join([said, *self.problems])


def deliver(
    engine: Engine, settings: Settings, now_ms: int, *, only: Collection[int] | None = None
) -> Delivery:
    """Send what is due (``only``: of these messages). Nothing is raised for a message that does not go out."""
    run = _Run(engine, settings, now_ms)
    run.settle_stale()
    with ExitStack() as stack:
        run.send_all(stack, only)
    return run.done


class _Run:
    """One run: the open conversation, and what came of it."""

    def __init__(self, engine: Engine, settings: Settings, now_ms: int) -> None:
        self._engine = engine
        self._settings = settings
        self._now_ms = now_ms
        self._started_s = time.monotonic()
        self._server: MailServer | None = None
        self._down: MailError | None = None
        self.done = Delivery()

    def _at_ms(self) -> int:
        """Now; a run may last minutes, and a claim must not look older than it is."""
        return self._now_ms + round((time.monotonic() - self._started_s) * 1000)

    def settle_stale(self) -> None:
        """Claims of processes that died."""
        with session_scope(self._engine) as session:
            for message_id, kind, attempts in mail.stale_claims(session, self._now_ms):
                until = retry_at(attempts, self._now_ms) if kind in MAY_COME_TWICE else None
                if until is not None:
                    # It was not tried for this long already.
                    mail.postpone(session, message_id, self._now_ms, DIED)
                    continue
                log.warning(
                    "message may have been lost", extra={"message_id": message_id, "kind": kind.value}
                )
                mail.end(session, message_id, MessageState.UNSURE, self._now_ms, DIED)
                _forget(session, kind, message_id, MessageState.UNSURE, self._now_ms)
                self.done.unsure += 1

    def send_all(self, stack: ExitStack, only: Collection[int] | None) -> None:
        with session_scope(self._engine) as session:
            waiting = mail.due(session, self._now_ms, only)
        for message_id in waiting:
            if self._at_ms() - self._now_ms > RUN_AT_MOST_MS:
                return
            with session_scope(self._engine) as session:
                claimed = mail.claim(session, message_id, self._at_ms())
            if claimed is not None:
                self._send(stack, claimed)

    def _send(self, stack: ExitStack, claimed: Claimed) -> None:
        try:
            if claimed.channel is Channel.MAIL:
                self._mail(stack, claimed)
            else:
                self._post(claimed)
        except (RecipientError, WebhookError) as error:
            if error.permanent:
                self._end(claimed, MessageState.REFUSED, error)
                self.done.refused += 1
            else:
                self._later(claimed, error, of_server=False)
        except UncertainError as error:
            self._drop_server()
            if claimed.kind in MAY_COME_TWICE:
                self._later(claimed, error, of_server=True)
            else:
                self._end(claimed, MessageState.UNSURE, error)
                self.done.unsure += 1
        except MailError as error:
            self._drop_server()
            self._down = error
            self._later(claimed, error, of_server=True)
        else:
            with session_scope(self._engine) as session:
                mail.end(session, claimed.id, MessageState.SENT, self._at_ms())
                if claimed.recipient_id is not None:
                    alerts.forgive(session, claimed.recipient_id)
                if claimed.told:
                    report_told.put(session, claimed.audience, claimed.period, claimed.told, self._at_ms())
            self.done.sent += 1

    def _mail(self, stack: ExitStack, claimed: Claimed) -> None:
        if self._down is not None:
            raise self._down  # once a run is enough to find a server gone
        if self._server is None:
            self._server = stack.enter_context(MailServer(self._settings))
        self._server.send(claimed.shown, claimed.body.encode("ascii"))

    def _drop_server(self) -> None:
        """The conversation broke; the next mail begins another one."""
        self._server = None

    def _post(self, claimed: Claimed) -> None:
        with session_scope(self._engine) as session:
            kept = None if claimed.recipient_id is None else recipients.get(session, claimed.recipient_id)
        if kept is None:
            raise WebhookError(f"webhook {claimed.shown} was removed", permanent=True)
        post(kept.address, claimed.body.encode(), link_local=self._settings.webhook_link_local)

    def _end(self, claimed: Claimed, state: MessageState, error: GpuwiseError) -> None:
        self.done.note(str(error), of_server=False)
        report = log.info if claimed.kind is MessageKind.TEST else log.warning  # who tests is told
        report(
            "message not delivered",
            extra={
                "message_id": claimed.id,
                "kind": claimed.kind.value,
                "state": state.value,
                "why": str(error),
            },
        )
        with session_scope(self._engine) as session:
            mail.end(session, claimed.id, state, self._at_ms(), str(error))
            _forget(session, claimed.kind, claimed.id, state, self._at_ms())

    def _later(self, claimed: Claimed, error: GpuwiseError, *, of_server: bool) -> None:
        is_once = claimed.kind is MessageKind.TEST  # somebody waits for the answer
        until = None if is_once else retry_at(claimed.attempts, self._at_ms())
        self.done.note(str(error), of_server=of_server)
        if until is not None:
            with session_scope(self._engine) as session:
                mail.postpone(session, claimed.id, until, str(error))
            self.done.waiting += 1
            return
        self._end(claimed, MessageState.FAILED, error)
        self.done.failed += 1


def _forget(session: Session, kind: MessageKind, message_id: int, state: MessageState, now_ms: int) -> None:
    """Alerts that did not arrive were not told."""
    if kind is not MessageKind.ALERTS:
        return
    if state is MessageState.REFUSED:
        alerts.refused(session, message_id, now_ms)
    else:
        alerts.untold(session, message_id)


def alerts_period(now_ms: int) -> str:
    """Key of the alerts of one moment."""
    return str(now_ms)
