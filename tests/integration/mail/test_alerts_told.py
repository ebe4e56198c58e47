"""Who is told of a fault, and how often, by mail and webhook; on both databases."""

import json
from threading import Barrier, Thread

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from api.alerts import send
from api.jobs import alerts as alerts_job
from api.outgoing import deliver
from api.smtp import MailError
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from store.engine import session_scope
from store.queries import alerts as kept
from store.queries import mail
from tests.integration.api.fleet_for_tests import NOW, A
from tests.integration.mail.alerts_for_tests import (
    HEAD,
    add,
    advise,
    body_of,
    cash,
    event,
    health,
    hear,
    quiet,
)
from tests.integration.mail.smtp_for_tests import Inbox, free_port, settings_at, smtp_server
from tests.page_server import serving


def test_several_faults_are_one_message_to_each_and_are_not_told_again(fleet: Engine) -> None:
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    advise(fleet, saving=cash(5_000.0), title="Release GPU 1")
    add(fleet, HEAD)
    add(fleet, "oncall@example.org")
    inbox = Inbox()
    with smtp_server(inbox) as port:
        said, _ = send(fleet, quiet(port), NOW)
        again, _ = send(fleet, quiet(port), NOW + 5 * MINUTE_MS)
    assert said == "2 faults, 2 to tell of: 2 sent"
    assert again == "2 faults, 0 to tell of"
    assert sorted(inbox.got) == [HEAD, "oncall@example.org"]
    assert inbox.mails[0]["Subject"] == "gpuwise: GPU 0 on h1 does not answer and 1 more"
    for kind in ("plain", "html"):
        text = body_of(inbox, 0, kind)
        assert text.index("GPU 0 on h1 does not answer") < text.index("Release GPU 1")
        assert "https://gpuwise.example.org/gpus/GPU-a" in text
        assert f"gpuwise recipients set {inbox.mails[0]['To']} --no-alerts" in text


def test_people_hear_again_after_a_week_or_when_it_grew(fleet: Engine) -> None:
    add(fleet, HEAD)
    inbox = Inbox()
    with smtp_server(inbox) as port:

        def told(now_ms: int, usd: float) -> bool:
            before = len(inbox.mails)
            hear(fleet, now_ms, "h1", "h2")
            advise(fleet, now_ms, saving=cash(usd))
            send(fleet, quiet(port), now_ms)
            return len(inbox.mails) > before

        assert told(NOW, 2_000.0)
        assert not told(NOW + DAY_MS, 2_400.0)
        assert told(NOW + 2 * DAY_MS, 2_500.0)
        assert not told(NOW + 3 * DAY_MS, 3_100.0)
        assert not told(NOW + 9 * DAY_MS - 1, 3_100.0)
        assert told(NOW + 9 * DAY_MS, 2_500.0)


def test_a_fault_that_gets_worse_is_told_at_once(fleet: Engine) -> None:
    add(fleet, HEAD)
    health(fleet, A, NOW - MINUTE_MS, row_remap_pending=1.0, recovery_action="none")
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send(fleet, quiet(port), NOW)
        health(fleet, A, NOW + MINUTE_MS, row_remap_pending=1.0, recovery_action="reboot")
        send(fleet, quiet(port), NOW + 5 * MINUTE_MS)
    assert [mail["Subject"].split(" GPU")[0] for mail in inbox.mails] == [
        "gpuwise: Reset at the next window",
        "gpuwise: Drain and reboot the host of",
    ]


def come_and_go(engine: Engine, settings: Settings) -> None:
    """A GPU is lost and found four times in 35 minutes, and people are told each time there is something to tell."""
    for minutes in (0, 10, 20, 30):
        at = NOW + minutes * MINUTE_MS
        hear(engine, at, "h1", "h2")
        event(engine, A, at, "lost", "The GPU stopped answering.")
        send(engine, settings, at)
        event(engine, A, at + MINUTE_MS, "found", "The GPU answers again.")
        send(engine, settings, at + 5 * MINUTE_MS)


def test_a_fault_that_comes_and_goes_is_told_once(fleet: Engine) -> None:
    add(fleet, HEAD)
    inbox = Inbox()
    with smtp_server(inbox) as port:
        come_and_go(fleet, quiet(port))
    assert len(inbox.mails) == 1
    with Session(fleet) as session:
        (one,) = kept.listing(session).values()
    assert one.resolved_at_ms == NOW + 35 * MINUTE_MS


def test_what_is_over_is_told_only_where_it_is_asked_for(fleet: Engine) -> None:
    add(fleet, HEAD)
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send(fleet, quiet(port, alert_resolved=True), NOW)
        event(fleet, A, NOW, "found", "The GPU answers again.")
        send(fleet, quiet(port, alert_resolved=True), NOW + 5 * MINUTE_MS)
        send(fleet, quiet(port, alert_resolved=True), NOW + 10 * MINUTE_MS)
    assert [mail["Subject"] for mail in inbox.mails] == [
        "gpuwise: GPU 0 on h1 does not answer",
        "gpuwise: over: GPU 0 on h1 does not answer",
    ]


def test_the_end_of_a_fault_that_comes_and_goes_is_told_once(fleet: Engine) -> None:
    add(fleet, HEAD)
    inbox = Inbox()
    with smtp_server(inbox) as port:
        come_and_go(fleet, quiet(port, alert_resolved=True))
    assert [mail["Subject"] for mail in inbox.mails] == [
        "gpuwise: GPU 0 on h1 does not answer",
        "gpuwise: over: GPU 0 on h1 does not answer",
    ]


def test_a_sick_gpu_on_a_silent_host_is_not_over(fleet: Engine) -> None:
    health(fleet, A, NOW, row_remap_failed=1.0)
    settings = quiet(free_port(), alert_resolved=True)
    send(fleet, settings, NOW)
    send(
        fleet, settings, NOW + 30 * HOUR_MS
    )  # its health is a day old, and the rule does not judge it any more
    with Session(fleet) as session:
        known = kept.listing(session)
    assert known[f"gpu-unhealthy:{A}"].resolved_at_ms is None


def test_faults_that_nobody_was_told_of_are_told_to_the_first_who_asks(fleet: Engine) -> None:
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    said, _ = send(fleet, quiet(), NOW)
    assert said == "1 fault, 0 to tell of, but nobody gets alerts (gpuwise recipients add ADDRESS)"
    add(fleet, HEAD)
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send(fleet, quiet(port), NOW + 5 * MINUTE_MS)
    assert inbox.got == [HEAD]


def test_recipients_of_the_file_get_the_weekly_mail_and_no_alerts(fleet: Engine) -> None:
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send(fleet, settings_at(port), NOW)
    assert inbox.mails == []


def test_alerts_that_reached_nobody_are_told_anew_once_mail_works(fleet: Engine) -> None:
    add(fleet, HEAD)
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    down, at = quiet(free_port()), NOW
    with pytest.raises(MailError, match="cannot be reached"):
        alerts_job.run(fleet, down, at)
    for minutes in (5, 15, 60, 240):
        at += minutes * MINUTE_MS + 1000
        done = deliver(fleet, down, at)
    assert done.failed == 1
    hear(fleet, at, "h1", "h2")
    inbox = Inbox()
    with smtp_server(inbox) as port:
        assert alerts_job.run(fleet, quiet(port), at + MINUTE_MS) == "1 fault, 1 to tell of: 1 sent"
    assert inbox.got == [HEAD]


def test_alerts_of_a_process_that_died_come_rather_twice_than_never(fleet: Engine) -> None:
    add(fleet, HEAD)
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    with pytest.raises(MailError):
        alerts_job.run(fleet, quiet(free_port()), NOW)
    at = NOW + 6 * MINUTE_MS
    with session_scope(fleet) as session:
        (waiting,) = mail.due(session, at)
        assert mail.claim(session, waiting, at) is not None
    inbox = Inbox()
    with smtp_server(inbox) as port:
        assert str(deliver(fleet, quiet(port), at + 16 * MINUTE_MS)) == "1 sent"
    assert inbox.got == [HEAD]


def test_two_jobs_at_once_tell_people_once(fleet: Engine) -> None:
    add(fleet, HEAD)
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    inbox, barrier, failed = Inbox(), Barrier(3), list[BaseException]()
    with smtp_server(inbox) as port:

        def work(now_ms: int) -> None:
            barrier.wait(20)
            try:
                send(fleet, quiet(port), now_ms)
            except BaseException as error:  # noqa: BLE001 - handed to the test
                failed.append(error)

        threads = [Thread(target=work, args=(NOW + number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert failed == []
    assert inbox.got == [HEAD]


def test_a_webhook_gets_slacks_json(fleet: Engine) -> None:
    event(fleet, A, NOW - MINUTE_MS, "lost", "<!channel> stopped & left.")
    with serving({"/hook/abcdefghijklmnopq": "ok"}) as server:
        add(fleet, f"{server.url}/hook/abcdefghijklmnopq")
        said, _ = send(fleet, quiet(), NOW)
        ((_, _, body),) = server.posted
    assert said.endswith(": 1 sent")
    blocks = json.loads(body)["blocks"]
    assert blocks[0]["text"]["text"] == "gpuwise: GPU 0 on h1 does not answer"
    assert "&lt;!channel&gt; stopped &amp; left. (urgent)" in blocks[1]["text"]["text"]
