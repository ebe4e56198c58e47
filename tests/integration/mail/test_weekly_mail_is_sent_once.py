"""The weekly mail: to whom, once per period and recipient, tried again when it failed for now; on both databases."""

import json
import multiprocessing
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from api.jobs import mail as mail_job
from api.jobs import weekly_report
from api.mailing import send_weekly
from api.outgoing import deliver
from api.report import weekly
from api.smtp import MailError
from core.activity import Activity
from core.errors import UsageError
from core.evidence import Window
from core.outbox import MessageState
from core.settings import Secret, Settings
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from core.user_recipient import QuietWeek, Recipient
from gpuwise.commands.report import report as report_command
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.models.mail_log import MailLogRow
from store.queries import mail as outbox
from store.queries import recipients
from store.rollup import roll_up
from tests.integration.api.fleet_for_tests import NOW, B, fill, sample
from tests.integration.mail.smtp_for_tests import Inbox, check_login, free_port, settings_at, smtp_server

HEAD, FINANCE = "head@example.org", "finance@example.org"


@pytest.fixture
def filled(ready_database: str) -> Engine:
    """A database with three GPUs and two hours."""
    fill(ready_database)
    return make_engine(ready_database)


def rows(engine: Engine) -> dict[str, tuple[str, int, str | None]]:
    """State, tries and last sentence by recipient."""
    with Session(engine) as session:
        return {
            row.recipient: (row.state, row.attempts, row.message)
            for row in session.scalars(select(MailLogRow))
        }


def states(engine: Engine) -> dict[str, str]:
    return {recipient: state for recipient, (state, _, _) in rows(engine).items()}


def add(engine: Engine, given: Recipient) -> int:
    with session_scope(engine) as session:
        return recipients.add(session, given, NOW)


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


def test_two_processes_that_send_at_once_send_one_mail_each(filled: Engine, ready_database: str) -> None:
    inbox = Inbox()
    spawn = multiprocessing.get_context("spawn")
    begin = spawn.Barrier(2)
    with smtp_server(inbox) as port:
        both = [spawn.Process(target=_send_in_process, args=(ready_database, port, begin)) for _ in range(2)]
        for one in both:
            one.start()
        for one in both:
            one.join(90)
    assert [one.exitcode for one in both] == [0, 0]
    assert sorted(inbox.got) == [FINANCE, HEAD]
    assert set(states(filled).values()) == {MessageState.SENT.value}


MONDAY_7: int = NOW - NOW % DAY_MS + 7 * HOUR_MS  # NOW is a Monday shortly after 02:00


@pytest.mark.parametrize(
    ("now_ms", "expected"),
    [
        (MONDAY_7, MONDAY_7),
        (MONDAY_7 - 1, MONDAY_7 - 7 * DAY_MS),
        (MONDAY_7 + 3 * DAY_MS, MONDAY_7),
        (MONDAY_7 + 7 * DAY_MS - 1, MONDAY_7),
    ],
)
def test_the_set_hour_is_the_last_one(now_ms: int, expected: int) -> None:
    assert weekly_report.set_hour_ms(Settings(), now_ms) == expected


DAYS_BEFORE = "2026-10-05/2026-10-05"
"""Period of what was there by then: two hours of that Monday."""


def more(engine: Engine, until_ms: int) -> None:
    """Samples of days that come after, one in six hours."""
    url = engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(hide_password=False)
    last = sample(B, 12, Activity.BUSY, 200.0)
    with closing(open_connection(url)) as wire:
        ingest = Ingest(wire)
        ingest.gpu_samples([replace(last, ts_ms=at) for at in range(last.ts_ms, until_ms, 6 * HOUR_MS)])
        ingest.commit()
    roll_up(engine, now_ms=until_ms)


@pytest.fixture
def asleep(filled: Engine) -> Engine:
    """Its jobs ran last week; since then the machine slept."""
    weekly_report.run(filled, settings_at(25, report_recipients=()), MONDAY_7 - 7 * DAY_MS)
    return filled


@pytest.mark.parametrize("late_h", [0, 1, 16, 17, 48, 72])
def test_an_hour_that_was_slept_through_is_made_up_once_of_its_own_days(asleep: Engine, late_h: int) -> None:
    more(asleep, MONDAY_7 + 3 * DAY_MS)
    inbox = Inbox()
    with smtp_server(inbox) as port:
        settings, at = settings_at(port), MONDAY_7 + late_h * HOUR_MS
        assert mail_job.run(asleep, settings, at).startswith(
            "the weekly report's hour was missed: 'gpuwise: "
        )
        assert mail_job.run(asleep, settings, at + 5 * MINUTE_MS) == "nothing to send"
    assert sorted(inbox.got) == [FINANCE, HEAD]
    with Session(asleep) as session:
        assert set(session.scalars(select(MailLogRow.period))) == {DAYS_BEFORE}


def test_an_hour_that_is_longer_ago_waits_for_the_next(asleep: Engine) -> None:
    settings = settings_at(25)
    assert mail_job.run(asleep, settings, MONDAY_7 + 73 * HOUR_MS) == "nothing to send"
    assert mail_job.run(asleep, settings, MONDAY_7 + 6 * DAY_MS) == "nothing to send"


def test_a_late_report_and_one_of_a_cron_line_are_one_mail(asleep: Engine) -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port:
        settings = settings_at(port)
        send_weekly(asleep, settings, MONDAY_7 + HOUR_MS)
        assert mail_job.run(asleep, settings, MONDAY_7 + 2 * HOUR_MS).endswith("2 mailed before")
    assert sorted(inbox.got) == [FINANCE, HEAD]


def test_a_new_installation_has_missed_nothing(filled: Engine) -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port:
        settings, at = settings_at(port), MONDAY_7 + HOUR_MS
        assert mail_job.run(filled, settings, at) == "nothing to send"
        assert mail_job.run(filled, settings, at + 6 * DAY_MS) == "nothing to send"
        more(filled, at + 7 * DAY_MS)
        assert mail_job.run(filled, settings, at + 7 * DAY_MS).startswith(
            "the weekly report's hour was missed"
        )
    assert sorted(inbox.got) == [FINANCE, HEAD]


@pytest.mark.parametrize("changed", [{"report_weekday": 2}, {"report_hour_utc": 9}])
def test_another_day_or_hour_in_the_settings_sends_nothing_at_once(
    asleep: Engine, changed: dict[str, Any]
) -> None:
    weekly_report.run(asleep, settings_at(25, report_recipients=()), MONDAY_7)
    settings = settings_at(25, **changed)
    assert mail_job.run(asleep, settings, MONDAY_7 + 2 * DAY_MS + 3 * HOUR_MS) == "nothing to send"


def test_a_late_report_of_days_before_all_data_is_none(asleep: Engine) -> None:
    with Session(asleep) as session:
        early = NOW - 400 * DAY_MS
        report = weekly(session, settings_at(25), NOW, until_ms=early)
    assert (report.has_data, report.window) == (False, Window(early - 7 * DAY_MS, early))


def test_the_hour_that_was_kept_is_not_made_up(filled: Engine) -> None:
    settings = settings_at(25, report_recipients=())
    assert weekly_report.run(filled, settings, MONDAY_7).startswith("dry run")
    assert mail_job.run(filled, settings, MONDAY_7 + 5 * MINUTE_MS) == "nothing to send"


def test_the_command_is_a_dry_run_without_recipients_and_knows_again_and_to(
    ready_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(ready_database)
    call = ["weekly", "--database-url", ready_database]
    answer = CliRunner().invoke(report_command, [*call, "--send"])
    assert answer.exit_code == 0, answer.output
    assert "dry run" in answer.output
    refused = CliRunner().invoke(report_command, [*call, "--again"])
    assert isinstance(refused.exception, UsageError)
    inbox = Inbox()
    with smtp_server(inbox) as port:
        toml = tmp_path / "gpuwise.toml"
        toml.write_text(f'smtp_host = "127.0.0.1"\nsmtp_port = {port}\nsmtp_starttls = false\n')
        monkeypatch.setenv("GPUWISE_CONFIG", str(toml))
        for _ in range(2):
            answer = CliRunner().invoke(report_command, [*call, "--send", "--again", "--to", HEAD])
            assert re.search(r": 1 sent\n$", answer.output)
    assert inbox.got == [HEAD, HEAD]


def test_a_dry_run_says_who_would_get_what_and_sends_nothing(
    ready_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(ready_database)
    engine = make_engine(ready_database)
    bob = add(engine, Recipient(None, "bob@example.org"))

    def say(*words: str) -> Any:
        return CliRunner().invoke(report_command, ["weekly", "--database-url", ready_database, *words])

    inbox = Inbox()
    with smtp_server(inbox) as port:
        toml = tmp_path / "gpuwise.toml"
        toml.write_text(f'smtp_host = "127.0.0.1"\nsmtp_port = {port}\nsmtp_starttls = false\n')
        monkeypatch.setenv("GPUWISE_CONFIG", str(toml))
        shown = say("--dry-run").stdout
        assert re.search(r"the report of the whole fleet would go to bob@example.org: gpuwise: \$", shown)
        assert say("--send", "--dry-run").stdout == shown
        assert rows(engine) == {}
        assert say("--send").exit_code == 0
        assert "went to bob@example.org before" in say("--dry-run").stdout
        assert "would go to bob@example.org" in say("--dry-run", "--again", "--to", str(bob)).stdout
        (row,) = json.loads(say("--dry-run", "--json").stdout)
        assert (row["to"], row["recipient_id"], row["owner"], row["what"]) == (
            "bob@example.org",
            bob,
            None,
            "mailed-before",
        )
        assert "no recipient 99" in str(say("--send", "--to", "99").exception)
        assert "no recipient 99" in str(say("--dry-run", "--to", "99").exception)
    assert inbox.got == ["bob@example.org"]


def test_a_refusal_is_told_once_and_not_logged_beside_it(
    ready_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fill(ready_database)
    inbox = Inbox(rcpt={HEAD: "550 no such person"})
    with smtp_server(inbox) as port:
        toml = tmp_path / "gpuwise.toml"
        toml.write_text(
            f'smtp_host = "127.0.0.1"\nsmtp_port = {port}\nsmtp_starttls = false\nreport_recipients = ["{HEAD}"]\n'
        )
        monkeypatch.setenv("GPUWISE_CONFIG", str(toml))
        answer = CliRunner().invoke(report_command, ["weekly", "--send", "--database-url", ready_database])
    assert answer.stdout.count("no such person") == 1
    assert "message not delivered" not in caplog.text
