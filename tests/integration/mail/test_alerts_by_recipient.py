"""A standing fault is told to each recipient until it took the message, and not again for a week; on both databases."""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, update
from sqlalchemy.orm import Session

from api.alerts import send
from api.mailing import send_test
from api.outgoing import deliver
from api.resources import alerts as resource
from api.smtp import MailError
from core.outbox import RETRY_AFTER_MS, MessageState
from core.ownership import Owner, OwnerConditions, OwnerRule
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from core.user_recipient import Recipient
from store.engine import make_engine, session_scope
from store.models.host import HostRow
from store.queries import alerts as kept
from store.queries import mail, owners, recipients
from tests.integration.api.fleet_for_tests import NOW as LAST_SAMPLE
from tests.integration.api.fleet_for_tests import fill
from tests.integration.mail.smtp_for_tests import Inbox, free_port, settings_at, smtp_server

ANN, BOB = "ann@example.org", "bob@example.org"
WEEK_MS = 7 * DAY_MS
NOW = LAST_SAMPLE + 2 * HOUR_MS


@pytest.fixture
def broken(ready_database: str) -> Engine:
    """Two hosts whose agents fell silent two hours ago, which is one fault of the fleet."""
    fill(ready_database)
    engine = make_engine(ready_database)
    with session_scope(engine) as session:
        session.execute(update(HostRow).values(agent_seen_ms=LAST_SAMPLE))
    return engine


def site(port: int, **more: Any) -> Settings:
    return settings_at(port, report_recipients=(), alert_kinds=("agent-silent",), **more)


def add(engine: Engine, address: str, audience: Owner | None = None, **more: Any) -> int:
    with session_scope(engine) as session:
        return recipients.add(session, Recipient(None, address, audience, **more), NOW)


@contextmanager
def mails(engine: Engine, inbox: Inbox) -> Iterator[Any]:
    """Look at a moment; who got mail then."""
    with smtp_server(inbox) as port:

        def look(after_ms: int) -> Sequence[str]:
            before = len(inbox.mails)
            send(engine, site(port), NOW + after_ms)
            deliver(engine, site(port), NOW + after_ms)
            return sorted(inbox.got[before:])

        yield look


def states(engine: Engine, now_ms: int = NOW) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    with Session(engine) as session:
        rows = resource.rows(session, site(25), now_ms)
    return [(one.state, one.recipients, one.told) for one in rows]


def test_one_who_is_added_later_hears_of_a_standing_fault_and_the_others_do_not_again(broken: Engine) -> None:
    add(broken, ANN)
    with mails(broken, Inbox()) as look:
        assert look(0) == [ANN]
        add(broken, BOB)
        assert states(broken) == [("due", (BOB,), (ANN,))]
        assert look(5 * MINUTE_MS) == [BOB]
        assert look(10 * MINUTE_MS) == []
        assert states(broken) == [("cooling", (), (ANN, BOB))]
        assert look(WEEK_MS) == [ANN]
        assert look(WEEK_MS + 5 * MINUTE_MS) == [BOB]


def test_one_who_was_paused_hears_of_what_still_stands(broken: Engine) -> None:
    add(broken, ANN)
    add(broken, BOB, paused_until_ms=NOW + DAY_MS)
    with mails(broken, Inbox()) as look:
        assert look(0) == [ANN]
        assert look(DAY_MS) == [BOB]


def test_one_who_was_removed_and_added_again_is_another(broken: Engine) -> None:
    id_ = add(broken, ANN)
    with mails(broken, Inbox()) as look:
        assert look(0) == [ANN]
        with session_scope(broken) as session:
            recipients.end(session, id_, NOW)
        add(broken, ANN)
        assert look(5 * MINUTE_MS) == [ANN]


def test_a_message_that_waits_is_no_reason_for_another(broken: Engine) -> None:
    add(broken, ANN)
    add(broken, BOB)
    inbox = Inbox(rcpt={BOB: "451 try later"})
    with mails(broken, inbox) as look:
        assert look(0) == [ANN]
        assert look(MINUTE_MS) == []
        with session_scope(broken) as session:
            assert mail.open_count(session) == 1
        inbox.rcpt.clear()
        assert look(10 * MINUTE_MS) == [BOB]
    assert len(inbox.mails) == 2


def test_what_was_given_up_for_one_is_told_to_that_one_anew(broken: Engine) -> None:
    add(broken, ANN)
    add(broken, BOB)
    inbox = Inbox(rcpt={BOB: "451 try later"})
    at = 0
    with mails(broken, inbox) as look:
        assert look(at) == [ANN]
        for wait in RETRY_AFTER_MS:
            at += wait + 1000
            assert look(at) == []
        assert states(broken, NOW + at) == [("due", (BOB,), (ANN,))]
        inbox.rcpt.clear()
        assert look(at + MINUTE_MS) == [BOB]


def test_one_who_refuses_for_good_is_tried_again_once_a_day_and_is_not_said_to_know(broken: Engine) -> None:
    add(broken, BOB)
    inbox = Inbox(rcpt={BOB: "550 no such person"})
    with mails(broken, inbox) as look:
        assert look(0) == []
        assert states(broken, NOW + HOUR_MS) == [("refused", (), ())]
        inbox.rcpt.clear()
        assert look(DAY_MS - MINUTE_MS) == []
        assert look(DAY_MS + MINUTE_MS) == [BOB]
    assert [one for one, *_ in states(broken, NOW + DAY_MS + HOUR_MS)] == ["cooling"]


def test_one_who_takes_mail_again_hears_at_once_of_what_it_refused(broken: Engine) -> None:
    id_ = add(broken, BOB)
    inbox = Inbox(rcpt={BOB: "550 no such person"})
    with smtp_server(inbox) as port:
        send(broken, site(port), NOW)
        inbox.rcpt.clear()
        with session_scope(broken) as session:
            bob = recipients.get(session, id_)
        assert bob is not None
        send_test(broken, site(port), NOW + MINUTE_MS, bob)
        send(broken, site(port), NOW + 5 * MINUTE_MS)
        send(broken, site(port), NOW + 10 * MINUTE_MS)
    assert [str(mail["Subject"]) for mail in inbox.mails] == [
        "gpuwise: a test message",
        "gpuwise: No agent reports any more",
    ]


def test_a_server_that_is_gone_leaves_the_fault_on_its_way(broken: Engine) -> None:
    add(broken, ANN)
    send(broken, site(free_port()), NOW)
    assert [one for one, *_ in states(broken)] == ["waiting"]


def test_a_claim_whose_process_died_too_often_leaves_nobody_told(broken: Engine) -> None:
    id_ = add(broken, ANN)
    send(broken, site(free_port()), NOW)
    with session_scope(broken) as session:
        at = NOW + DAY_MS
        (waiting,) = mail.due(session, at)
        for _ in RETRY_AFTER_MS:
            assert mail.claim(session, waiting, at) is not None
            mail.postpone(session, waiting, at, "died")
        assert mail.claim(session, waiting, at) is not None
    deliver(broken, site(free_port()), at + HOUR_MS)
    with Session(broken) as session:
        (one,) = kept.listing(session).values()
        assert mail.newest(session, 1)[0].state is MessageState.UNSURE
    assert id_ not in one.told


def test_the_end_is_told_to_those_who_heard_of_the_fault(broken: Engine) -> None:
    add(broken, ANN)
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send(broken, site(port, alert_resolved=True), NOW)
        with session_scope(broken) as session:
            session.execute(update(HostRow).values(agent_seen_ms=NOW))
        add(broken, BOB)
        send(broken, site(port, alert_resolved=True), NOW + MINUTE_MS)
    assert inbox.got == [ANN, ANN]
    assert str(inbox.mails[1]["Subject"]).startswith("gpuwise: over:")


def test_an_owner_added_later_hears_of_its_own_silent_host_alone(broken: Engine) -> None:
    with session_scope(broken) as session:
        owners.insert(session, OwnerRule(0, Owner("research"), OwnerConditions(host="h1")))
        owners.insert(session, OwnerRule(0, Owner("media"), OwnerConditions(host="h2")))
        session.execute(update(HostRow).where(HostRow.name == "h2").values(agent_seen_ms=NOW + HOUR_MS))
    add(broken, ANN)
    with mails(broken, Inbox()) as look:
        assert look(HOUR_MS) == [ANN]
        add(broken, BOB, Owner("research"))
        add(broken, "media@example.org", Owner("media"))
        assert look(HOUR_MS + MINUTE_MS) == [BOB]
        assert look(HOUR_MS + 2 * MINUTE_MS) == []


def _look_in_process(url: str, port: int, begin: Any) -> None:
    begin.wait(30)
    send(make_engine(url), site(port), NOW + MINUTE_MS)


def test_two_processes_tell_one_who_was_added_later_once(broken: Engine, ready_database: str) -> None:
    add(broken, ANN)
    inbox = Inbox()
    spawn = multiprocessing.get_context("spawn")
    begin = spawn.Barrier(2)
    with smtp_server(inbox) as port:
        send(broken, site(port), NOW)
        add(broken, BOB)
        both = [spawn.Process(target=_look_in_process, args=(ready_database, port, begin)) for _ in range(2)]
        for one in both:
            one.start()
        for one in both:
            one.join(90)
    assert [one.exitcode for one in both] == [0, 0]
    assert inbox.got == [ANN, BOB]


def test_a_server_that_refuses_the_login_tells_nobody_and_loses_nothing(broken: Engine) -> None:
    from api.jobs import alerts as job

    add(broken, ANN)
    with pytest.raises(MailError, match="cannot be reached"):
        job.run(broken, site(free_port()), NOW)
    with mails(broken, Inbox()) as look:
        assert look(10 * MINUTE_MS) == [ANN]


def test_the_command_tells_who_heard_who_refused_and_from_when_again(
    broken: Engine, ready_database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from gpuwise.commands import alerts as module

    def say() -> list[str]:
        answer = CliRunner().invoke(module.alerts, ["--database-url", ready_database])
        assert answer.exit_code == 0, answer.output
        return [" ".join(line.split()) for line in answer.stdout.splitlines()]

    toml = tmp_path / "gpuwise.toml"
    toml.write_text('alert_kinds = ["agent-silent"]\n')
    monkeypatch.setenv("GPUWISE_CONFIG", str(toml))
    monkeypatch.setattr(module, "now_ms", lambda: NOW + HOUR_MS)
    assert say()[1].endswith("No agent reports any more nobody")
    for name in ("ann", "bob", "eve"):
        add(broken, f"{name}@example.org")
    assert say()[1].endswith("to tell: ann@example.org, bob@example.org and 1 more")
    bad = dict.fromkeys((ANN, BOB, "eve@example.org"), "550 no such person")
    with mails(broken, Inbox(rcpt=bad)) as look:
        look(0)
    assert " refused 2026-10-06 04:00" in say()[1]
    assert "1 that nobody took: gpuwise recipients says why" in say()
    with mails(broken, Inbox()) as look:
        assert len(look(DAY_MS + MINUTE_MS)) == 3
    monkeypatch.setattr(module, "now_ms", lambda: NOW + 2 * DAY_MS)
    assert "ann@example.org, bob@example.org and 1 more, 2026-10-06 04:01 2026-10-13 04:01" in say()[1]
