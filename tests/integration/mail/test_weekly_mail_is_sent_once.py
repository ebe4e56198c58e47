"""The weekly mail: to whom, once per period and recipient, tried again when it failed for now; on both databases."""

import multiprocessing
from dataclasses import replace
from threading import Barrier, Thread
from typing import Any

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from api.jobs import mail as mail_job
from api.mailing import send_weekly
from api.outgoing import deliver
from api.smtp import MailError
from core.errors import UsageError
from core.outbox import MessageState
from core.settings import Secret
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from core.user_recipient import QuietWeek, Recipient
from store.engine import make_engine, session_scope
from store.models.mail_log import MailLogRow
from store.queries import mail as outbox
from tests.integration.api.fleet_for_tests import NOW
from tests.integration.mail.smtp_for_tests import Inbox, check_login, free_port, settings_at, smtp_server
from tests.integration.mail.weekly_for_tests import FINANCE, HEAD, add, rows, states


def test_everybody_gets_one_mail_that_names_nobody_else(filled: Engine) -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port:
        said = send_weekly(filled, settings_at(port), NOW)
    assert said.endswith(": 2 sent")
    assert sorted(inbox.got) == [FINANCE, HEAD]
    for mail in inbox.mails:
        others = {HEAD, FINANCE} - {mail["To"]}
        assert not any(other in mail.as_string() for other in others)
    assert states(filled) == {HEAD: "sent", FINANCE: "sent"}
    with Session(filled) as session:
        assert [row.body for row in session.scalars(select(MailLogRow))] == [None, None]


def test_a_period_is_mailed_once(filled: Engine) -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send_weekly(filled, settings_at(port), NOW)
        assert send_weekly(filled, settings_at(port), NOW + HOUR_MS) == "nothing sent; 2 mailed before"
    assert len(inbox.mails) == 2


def test_a_recipient_that_is_added_later_gets_this_week_and_the_others_do_not(filled: Engine) -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send_weekly(filled, settings_at(port), NOW)
        add(filled, Recipient(None, "new@example.org"))
        send_weekly(filled, settings_at(port), NOW)
    assert inbox.got[2:] == ["new@example.org"]


def test_it_is_sent_again_where_somebody_asks_for_it(filled: Engine) -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port:
        settings = settings_at(port)
        send_weekly(filled, settings, NOW)
        assert "1 mailed before" in send_weekly(filled, settings, NOW, to=HEAD)
        assert send_weekly(filled, settings, NOW, again=True, to=HEAD.upper()).endswith("1 sent")
        send_weekly(filled, settings, NOW, to="guest@example.org")
    assert inbox.got[2:] == [HEAD, "guest@example.org"]
    with pytest.raises(UsageError, match="--to: address is"):
        send_weekly(filled, settings_at(25), NOW, to="nobody")


def test_who_pauses_or_wants_only_alerts_gets_none(filled: Engine) -> None:
    add(filled, Recipient(None, "away@example.org", paused_until_ms=NOW + DAY_MS))
    add(filled, Recipient(None, "oncall@example.org", weekly=False))
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send_weekly(filled, settings_at(port, report_recipients=()), NOW)
        assert inbox.mails == []
        send_weekly(filled, settings_at(port, report_recipients=()), NOW + DAY_MS)
    assert inbox.got == ["away@example.org"]


def test_an_address_that_is_in_the_file_and_kept_gets_one_mail(filled: Engine) -> None:
    add(filled, Recipient(None, HEAD.title()))
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send_weekly(filled, settings_at(port, report_recipients=(HEAD,)), NOW)
    assert inbox.got == [HEAD.title()]


def test_a_week_without_news_is_no_mail_or_one_line(engine: Engine) -> None:
    add(engine, Recipient(None, "line@example.org", quiet_week=QuietWeek.LINE))
    inbox = Inbox()
    with smtp_server(inbox) as port:
        said = send_weekly(engine, settings_at(port), NOW)
    assert "1 sent; 2 with nothing to report" in said
    assert inbox.got == ["line@example.org"]
    assert len(inbox.mails[0].get_content().splitlines()) < 10


def test_without_recipients_nothing_is_sent_and_it_says_so(filled: Engine) -> None:
    said = send_weekly(filled, settings_at(25, report_recipients=()), NOW)
    assert said.startswith("dry run")
    assert "report_recipients" in said
    assert rows(filled) == {}


def test_a_bad_recipient_never_keeps_the_others_from_theirs(filled: Engine) -> None:
    inbox = Inbox(rcpt={HEAD: "550 no such person"})
    with smtp_server(inbox) as port:
        said = send_weekly(filled, settings_at(port), NOW)
        deliver(filled, settings_at(port), NOW + DAY_MS)
    assert said.endswith(f"1 sent, 1 refused; refused {HEAD}: no such person")
    assert inbox.got == [FINANCE]
    assert rows(filled) == {
        HEAD: ("refused", 1, f"refused {HEAD}: no such person"),
        FINANCE: ("sent", 1, None),
    }


def test_what_failed_for_now_is_tried_again_with_longer_and_longer_waits(filled: Engine) -> None:
    inbox = Inbox(rcpt={HEAD: "451 try later"})
    at = NOW
    with smtp_server(inbox) as port:
        settings = settings_at(port, report_recipients=(HEAD,))
        assert "1 to be tried again" in send_weekly(filled, settings, at)
        for tries, minutes in enumerate((5, 15, 60, 240), start=1):
            assert rows(filled)[HEAD][:2] == ("waiting", tries)
            assert str(deliver(filled, settings, at + minutes * MINUTE_MS - 1000)) == "nothing to send"
            at += minutes * MINUTE_MS + 1000
            done = deliver(filled, settings, at)
        assert str(done) == f"1 given up; refused {HEAD}: try later"
        assert states(filled) == {HEAD: "failed"}
        assert str(deliver(filled, settings, at + DAY_MS)) == "nothing to send"
    assert inbox.mails == []


def test_a_try_that_succeeds_brings_the_same_message(filled: Engine) -> None:
    inbox = Inbox(rcpt={HEAD: "451 try later"})
    with smtp_server(inbox) as port:
        settings = settings_at(port, report_recipients=(HEAD,))
        send_weekly(filled, settings, NOW)
        with Session(filled) as session:
            (body,) = session.scalars(select(MailLogRow.body))
        inbox.rcpt.clear()
        assert str(deliver(filled, settings, NOW + 6 * MINUTE_MS)) == "1 sent"
    assert inbox.mails[0]["Message-ID"] in (body or "")


def test_a_server_that_is_gone_is_asked_once_a_run_and_everybody_waits(filled: Engine) -> None:
    settings = settings_at(free_port())
    with pytest.raises(MailError, match=r"2 to be tried again; mail server .* cannot be reached"):
        send_weekly(filled, settings, NOW)
    with pytest.raises(MailError, match="cannot be reached"):
        mail_job.run(filled, settings, NOW + 6 * MINUTE_MS)
    assert {tries for _, tries, _ in rows(filled).values()} == {2}
    inbox = Inbox()
    with smtp_server(inbox) as port:
        assert str(deliver(filled, settings_at(port), NOW + HOUR_MS)) == "2 sent"
    assert sorted(inbox.got) == [FINANCE, HEAD]


def test_a_refused_login_waits_for_somebody_to_correct_it(filled: Engine) -> None:
    inbox = Inbox()
    with smtp_server(inbox, authenticator=check_login, auth_require_tls=False) as port:
        settings = settings_at(port, smtp_user="gpuwise", smtp_password=Secret("wrong"))
        with pytest.raises(MailError, match="refused the login of gpuwise"):
            send_weekly(filled, settings, NOW)
        right = replace(settings, smtp_password=Secret("right"))
        assert str(deliver(filled, right, NOW + 6 * MINUTE_MS)) == "2 sent"


def test_a_process_that_died_with_its_claim_does_not_cause_a_second_mail(filled: Engine) -> None:
    settings = settings_at(free_port(), report_recipients=(HEAD,))
    with pytest.raises(MailError):
        send_weekly(filled, settings, NOW)
    at = NOW + 10 * MINUTE_MS
    with session_scope(filled) as session:
        (waiting,) = outbox.due(session, at)
        assert outbox.claim(session, waiting, at) is not None
    inbox = Inbox()
    with smtp_server(inbox) as port:
        live = settings_at(port, report_recipients=(HEAD,))
        assert str(deliver(filled, live, at + 14 * MINUTE_MS)) == "nothing to send"
        assert states(filled) == {HEAD: "claimed"}
        assert str(deliver(filled, live, at + 16 * MINUTE_MS)) == "1 that may have arrived"
        assert states(filled) == {HEAD: "unsure"}
        assert "1 mailed before" in send_weekly(filled, live, at + HOUR_MS)
        assert inbox.mails == []
        assert "1 sent" in send_weekly(filled, live, at + HOUR_MS, again=True, to=HEAD)


def test_two_threads_that_send_at_once_send_one_mail_each(filled: Engine) -> None:
    inbox, barrier, failed = Inbox(), Barrier(4), list[BaseException]()
    with smtp_server(inbox) as port:

        def work() -> None:
            barrier.wait(20)
            try:
                send_weekly(filled, settings_at(port), NOW)
            except BaseException as error:  # noqa: BLE001 - handed to the test
                failed.append(error)

        threads = [Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert failed == []
    assert sorted(inbox.got) == [FINANCE, HEAD]


def _send_in_process(url: str, port: int, begin: Any) -> None:
    begin.wait(30)
    send_weekly(make_engine(url), settings_at(port), NOW)


def test_two_processes_that_send_at_once_send_one_mail_each(filled: Engine, filled_database: str) -> None:
    inbox = Inbox()
    spawn = multiprocessing.get_context("spawn")
    begin = spawn.Barrier(2)
    with smtp_server(inbox) as port:
        both = [spawn.Process(target=_send_in_process, args=(filled_database, port, begin)) for _ in range(2)]
        for one in both:
            one.start()
        for one in both:
            one.join(90)
    assert [one.exitcode for one in both] == [0, 0]
    assert sorted(inbox.got) == [FINANCE, HEAD]
    assert set(states(filled).values()) == {MessageState.SENT.value}
