"""What a weekly mail told counts once a mail with it arrived; on both databases."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from api.mailing import send_weekly
from api.outgoing import deliver
from api.report import weekly
from api.smtp import MailError
from core.finding import Advice, Range, Saving, Totals
from core.outbox import STALE_CLAIM_MS
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from store.engine import make_engine, session_scope
from store.queries import mail, recommendations, report_told
from tests.contract import page_fixtures as good
from tests.integration.api.fleet_for_tests import NOW, A, fill
from tests.integration.mail.smtp_for_tests import Inbox, free_port, settings_at, smtp_server

HEAD, FINANCE = "head@example.org", "finance@example.org"


@pytest.fixture
def advised(ready_database: str) -> Engine:
    """A fleet of which there is one thing to tell."""
    fill(ready_database)
    engine = make_engine(ready_database)
    saving = Saving(cash_usd_month=Range.around(500.0, 0.1))
    one = replace(good.finding(), saving=saving, gpu_uuids=(A,), title="Release GPU 0")
    with session_scope(engine) as session:
        recommendations.record(session, Advice((one,), (), Totals(None, None, None, None)), NOW)
    return engine


def told(engine: Engine) -> int:
    """Actions that a later report of the fleet would not tell as new."""
    with Session(engine) as session:
        return len(report_told.before(session, None, "9999"))


def test_it_counts_once_the_mail_arrived_and_not_before(advised: Engine) -> None:
    with pytest.raises(MailError, match="cannot be reached"):
        send_weekly(advised, settings_at(free_port()), NOW)
    assert told(advised) == 0
    with smtp_server(Inbox()) as port:
        assert str(deliver(advised, settings_at(port), NOW + HOUR_MS)) == "2 sent"
    assert told(advised) == 1


def test_one_who_got_it_is_enough_and_twice_is_once(advised: Engine) -> None:
    inbox = Inbox(rcpt={HEAD: "550 no such person"})
    with smtp_server(inbox) as port:
        send_weekly(advised, settings_at(port), NOW)
        assert inbox.got == [FINANCE]
        assert told(advised) == 1
        send_weekly(advised, settings_at(port), NOW, again=True)
    assert told(advised) == 1


@pytest.mark.parametrize("answer", ["550 no such person", "451 try later"])
def test_a_week_that_nobody_took_is_told_by_the_next(advised: Engine, answer: str) -> None:
    inbox = Inbox(rcpt={HEAD: answer, FINANCE: answer})
    at = NOW
    with smtp_server(inbox) as port:
        send_weekly(advised, settings_at(port), at)
        for minutes in (5, 15, 60, 240):
            at += minutes * MINUTE_MS + 1000
            deliver(advised, settings_at(port), at)
        with Session(advised) as session:
            assert mail.open_count(session) == 0
            report = weekly(session, settings_at(port), NOW)
            (fingerprint,) = [one.fingerprint for one in report.told]
            assert fingerprint not in report_told.before(session, None, "9999")


def test_a_mail_that_may_have_arrived_does_not_count(advised: Engine) -> None:
    settings = settings_at(free_port(), report_recipients=(HEAD,))
    with pytest.raises(MailError):
        send_weekly(advised, settings, NOW)
    at = NOW + 10 * MINUTE_MS
    with session_scope(advised) as session:
        (waiting,) = mail.due(session, at)
        assert mail.claim(session, waiting, at) is not None
    assert str(deliver(advised, settings, at + STALE_CLAIM_MS)) == "1 that may have arrived"
    assert told(advised) == 0


def test_a_mail_to_a_guest_is_no_news_that_its_audience_was_told(advised: Engine) -> None:
    with smtp_server(Inbox()) as port:
        send_weekly(advised, settings_at(port), NOW, to="guest@example.org")
    assert told(advised) == 0


def test_the_end_and_what_was_told_are_written_together(
    advised: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("the process is killed here")

    inbox = Inbox()
    with smtp_server(inbox) as port:
        settings = settings_at(port, report_recipients=(HEAD,))
        with monkeypatch.context() as patched:
            patched.setattr(report_told, "put", fails)
            with pytest.raises(RuntimeError):
                send_weekly(advised, settings, NOW)
        # It arrived, nobody knows: not sent again, and what it told is told by the next.
        assert str(deliver(advised, settings, NOW + DAY_MS)) == "1 that may have arrived"
    assert inbox.got == [HEAD]
    assert told(advised) == 0
