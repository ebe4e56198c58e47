"""Alerts: what is wrong, told once to whom it concerns, by mail and webhook; on both databases."""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from threading import Barrier, Thread
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, update
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from api.alerts import send
from api.alerts_found import find
from api.app import create_app
from api.jobs import alerts as alerts_job
from api.outgoing import deliver
from api.resources import alerts as resource
from api.resources.ledger_days import materialise
from api.smtp import MailError
from core.fault import Fault
from core.finding import Advice, Range, Saving, Status, Subject, Totals
from core.ownership import Owner, OwnerConditions, OwnerRule
from core.readings import GpuHealth
from core.samples import GpuEvent
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from core.user_budget import Budget
from core.user_recipient import Recipient
from gpuwise.commands.alerts import alerts as command
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.models.host import HostRow
from store.queries import alerts as kept
from store.queries import budgets, mail, owners, recipients, recommendations
from tests.contract import page_fixtures as good
from tests.integration.api.fleet_for_tests import NOW, A, B, fill
from tests.integration.mail.smtp_for_tests import Inbox, free_port, settings_at, smtp_server
from tests.page_server import serving

HEAD = "head@example.org"


@pytest.fixture
def fleet(ready_database: str) -> Engine:
    """Three GPUs on two hosts, whose agents reported just now."""
    fill(ready_database)
    engine = make_engine(ready_database)
    hear(engine, NOW, "h1", "h2")
    return engine


def hear(engine: Engine, at_ms: int, *hosts: str) -> None:
    """The agents of these hosts delivered then."""
    with session_scope(engine) as session:
        session.execute(update(HostRow).where(HostRow.name.in_(hosts)).values(agent_seen_ms=at_ms))


def event(engine: Engine, uuid: str, at_ms: int, kind: str, message: str, *, code: int | None = None) -> None:
    """Something happened to a GPU."""
    tell(engine, lambda ingest: ingest.events([GpuEvent(uuid, at_ms, kind, message, code)]))


def health(engine: Engine, uuid: str, at_ms: int, **facts: float | str) -> None:
    """A GPU was asked how it is."""
    tell(engine, lambda ingest: ingest.health([GpuHealth(uuid, at_ms, facts)]))


def tell(engine: Engine, say: Callable[[Ingest], object]) -> None:
    url = engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(hide_password=False)
    with closing(open_connection(url)) as wire:
        ingest = Ingest(wire)
        say(ingest)
        ingest.commit()


def advise(engine: Engine, now_ms: int = NOW, **changes: Any) -> int:
    """The rules find one thing; its recommendation."""
    one = replace(good.finding(), **changes)
    with session_scope(engine) as session:
        recommendations.record(session, Advice((one,), (), Totals(None, None, None, None)), now_ms)
        return next(
            item.id
            for item in recommendations.listing(session)
            if item.finding.fingerprint == one.fingerprint
        )


def cash(usd: float) -> Saving:
    return Saving(cash_usd_month=Range.around(usd, 0.1))


def add(engine: Engine, address: str, audience: Owner | None = None) -> int:
    with session_scope(engine) as session:
        return recipients.add(session, Recipient(None, address, audience), NOW)


def faults(engine: Engine, settings: Settings, now_ms: int = NOW) -> tuple[Fault, ...]:
    with Session(engine) as session:
        return find(session, settings, now_ms).faults


def titles(engine: Engine, settings: Settings, now_ms: int = NOW) -> list[str]:
    return [one.title for one in faults(engine, settings, now_ms)]


def quiet(port: int = 25, **more: Any) -> Settings:
    """A site without recipients in its file."""
    return settings_at(port, report_recipients=(), **more)


def body_of(inbox: Inbox, number: int = -1, kind: str = "plain") -> str:
    part = inbox.mails[number].get_body((kind,))
    assert part is not None
    return str(part.get_content())


# What is found


def test_a_healthy_fleet_that_reports_has_no_faults(fleet: Engine) -> None:
    assert faults(fleet, quiet()) == ()


def test_an_agent_that_falls_silent_is_a_fault_with_its_gpus(fleet: Engine) -> None:
    hear(fleet, NOW + 20 * MINUTE_MS, "h2")
    assert faults(fleet, quiet(), NOW + 14 * MINUTE_MS) == ()
    (one,) = faults(fleet, quiet(), NOW + 20 * MINUTE_MS)
    assert (one.title, one.key, one.gpu_uuids) == ("The agent on h1 is silent", "agent-silent:h1", (A, B))
    assert "since 5 Oct 02:00 UTC. Its 2 GPUs cannot be seen." in one.detail


def test_a_fleet_that_is_silent_as_a_whole_is_one_fault(fleet: Engine) -> None:
    assert titles(fleet, quiet(), NOW + HOUR_MS) == ["No agent reports any more"]


def test_a_host_that_was_taken_away_long_ago_is_none(fleet: Engine) -> None:
    hear(fleet, NOW + 14 * DAY_MS, "h2")
    assert titles(fleet, quiet(), NOW + 13 * DAY_MS) == ["The agent on h1 is silent"]
    assert titles(fleet, quiet(), NOW + 14 * DAY_MS) == []


def test_imported_logs_that_end_are_no_silence(ready_database: str) -> None:
    fill(ready_database)
    assert faults(make_engine(ready_database), quiet(), NOW + HOUR_MS) == ()


def test_a_lost_gpu_is_a_fault_until_it_is_found(fleet: Engine) -> None:
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    (one,) = faults(fleet, quiet())
    assert (one.title, one.detail, one.path) == (
        "GPU 0 on h1 does not answer",
        "The GPU stopped answering.",
        "/gpus/GPU-a",
    )
    event(fleet, A, NOW, "found", "The GPU answers again.")
    assert faults(fleet, quiet()) == ()


def test_a_sick_gpu_is_judged_by_the_rule_and_a_broken_program_is_no_fault(fleet: Engine) -> None:
    event(fleet, A, NOW - HOUR_MS, "xid", "XID 79: GPU has fallen off the bus.", code=79)
    event(fleet, B, NOW - HOUR_MS, "xid", "XID 31: GPU memory page fault.", code=31)
    health(fleet, B, NOW - MINUTE_MS, row_remap_pending=1.0, recovery_action="none")
    worst, other = faults(fleet, quiet())
    assert (worst.title, worst.severity.name) == ("Drain and reboot the host of GPU 0 on h1", "BAD")
    assert (other.title, other.severity.name) == ("Reset at the next window GPU 1 on h1", "WARN")
    assert other.detail == "A row remapping waits for a reset."


def test_a_gpu_that_somebody_took_in_hand_is_no_fault(fleet: Engine) -> None:
    event(fleet, A, NOW - HOUR_MS, "xid", "XID 48: double-bit ECC error.", code=48)
    assert len(faults(fleet, quiet())) == 1
    id_ = advise(
        fleet,
        rule_id="unhealthy-gpu",
        cause="drain",
        subject=Subject("gpu", A, "GPU 0 on h1"),
        saving=Saving(),
        no_figure="health",
    )
    with session_scope(fleet) as session:
        recommendations.set_status(session, id_, Status.CLAIMED, NOW)
    assert faults(fleet, quiet()) == ()


def test_a_stuck_job_is_a_fault_while_its_recommendation_is_open(fleet: Engine) -> None:
    id_ = advise(
        fleet, rule_id="stuck-job", title="See why job 7 does not move", gpu_uuids=(A, B), saving=Saving()
    )
    (one,) = faults(fleet, quiet())
    assert (one.title, one.figure, one.path) == (
        "See why job 7 does not move",
        2.0,
        f"/recommendations/{id_}",
    )
    with session_scope(fleet) as session:
        recommendations.set_status(session, id_, Status.CLAIMED, NOW)
    assert faults(fleet, quiet()) == ()


@pytest.mark.parametrize(
    ("saving", "is_told"),
    [
        (cash(1_000.0), True),
        (cash(999.0), False),
        (Saving(capacity_gpu_h_month=Range.around(500.0, 0.1)), True),  # at $2 an hour
        (Saving(capacity_gpu_h_month=Range.around(499.0, 0.1)), False),
        (Saving(energy_kwh_month=Range.around(9_999.0, 0.1)), False),
    ],
)
def test_a_recommendation_above_the_set_sum_is_told(fleet: Engine, saving: Saving, is_told: bool) -> None:
    advise(fleet, saving=saving, gpu_uuids=(A, B), title="Release GPU 0")
    assert titles(fleet, quiet()) == (["Release GPU 0"] if is_told else [])


def test_freed_hours_of_a_gpu_without_a_price_are_no_sum(fleet: Engine) -> None:
    advise(fleet, saving=Saving(capacity_gpu_h_month=Range.around(9_999.0, 0.1)), gpu_uuids=(A, "GPU-c"))
    assert faults(fleet, quiet()) == ()


def test_a_budget_that_is_exceeded_is_a_fault_of_its_team(fleet: Engine) -> None:
    with session_scope(fleet) as session:
        owners.insert(session, OwnerRule(0, Owner("research", "vision"), OwnerConditions(host="h1")))
        budgets.add(session, Budget(0, "All", "all", "", Decimal("0.5"), "2026-10"))
        budgets.add(session, Budget(0, "Vision", "project", "vision", Decimal(1), "2026-10"))
        budgets.add(session, Budget(0, "Enough", "all", "", Decimal(1_000_000), "2026-10"))
    materialise(fleet, quiet(), NOW)
    found = {one.title: one for one in faults(fleet, quiet())}
    assert set(found) == {"Budget All is exceeded", "Budget Vision is exceeded"}
    assert found["Budget All is exceeded"].owner is None
    assert found["Budget Vision is exceeded"].owner == Owner("research", "vision")
    assert found["Budget All is exceeded"].detail.startswith("$")


def test_a_budget_waits_while_the_ledger_is_written_anew_and_is_not_over_by_that(fleet: Engine) -> None:
    with session_scope(fleet) as session:
        budgets.add(session, Budget(0, "All", "all", "", Decimal("0.5"), "2026-10"))
    materialise(fleet, quiet(), NOW)
    send(fleet, quiet(), NOW)
    another = quiet(pue=2.0)
    assert faults(fleet, another) == ()
    send(fleet, another, NOW)
    with Session(fleet) as session:
        (one,) = kept.listing(session).values()
    assert (one.title, one.resolved_at_ms) == ("Budget All is exceeded", None)
    materialise(fleet, another, NOW)
    assert titles(fleet, another) == ["Budget All is exceeded"]


def test_kinds_that_are_turned_off_are_not_looked_for(fleet: Engine) -> None:
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    advise(fleet, saving=cash(5_000.0))
    assert titles(fleet, quiet(alert_kinds=("gpu-unhealthy",))) == ["GPU 0 on h1 does not answer"]
    assert titles(fleet, quiet(alert_kinds=())) == []


# Who is told, and how often


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


def test_a_fault_that_comes_and_goes_is_told_once(fleet: Engine) -> None:
    add(fleet, HEAD)
    inbox = Inbox()
    with smtp_server(inbox) as port:
        for minutes in (0, 10, 20, 30):
            at = NOW + minutes * MINUTE_MS
            hear(fleet, at, "h1", "h2")
            event(fleet, A, at, "lost", "The GPU stopped answering.")
            send(fleet, quiet(port), at)
            event(fleet, A, at + MINUTE_MS, "found", "The GPU answers again.")
            send(fleet, quiet(port), at + 5 * MINUTE_MS)
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
        for minutes in (0, 10, 20, 30):
            at = NOW + minutes * MINUTE_MS
            hear(fleet, at, "h1", "h2")
            event(fleet, A, at, "lost", "The GPU stopped answering.")
            send(fleet, quiet(port, alert_resolved=True), at)
            event(fleet, A, at + MINUTE_MS, "found", "The GPU answers again.")
            send(fleet, quiet(port, alert_resolved=True), at + 5 * MINUTE_MS)
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


# Owners


@pytest.fixture
def owned(fleet: Engine) -> Engine:
    """h1 is research's, h2 is media's."""
    with session_scope(fleet) as session:
        owners.insert(session, OwnerRule(0, Owner("research"), OwnerConditions(host="h1")))
        owners.insert(session, OwnerRule(0, Owner("media"), OwnerConditions(host="h2")))
    return fleet


def texts_for(engine: Engine, audience: Owner | None, make: Callable[[], object]) -> Sequence[str]:
    """What an audience's mail says of what ``make`` breaks."""
    add(engine, "one@example.org", audience)
    make()
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send(engine, quiet(port), NOW)
    return [body_of(inbox, number) for number in range(len(inbox.mails))]


def test_an_owner_hears_of_gpus_that_it_pays_for_and_of_no_others(owned: Engine) -> None:
    def make() -> None:
        event(owned, A, NOW - MINUTE_MS, "lost", "A stopped answering.")
        event(owned, "GPU-c", NOW - MINUTE_MS, "lost", "C stopped answering.")

    (text,) = texts_for(owned, Owner("research"), make)
    assert "A stopped" in text
    assert "C stopped" not in text
    assert "h2" not in text


def test_an_owner_hears_of_its_silent_hosts(owned: Engine) -> None:
    with session_scope(owned) as session:
        recipients.add(session, Recipient(None, "r@example.org", Owner("research")), NOW)
        recipients.add(session, Recipient(None, "m@example.org", Owner("media")), NOW)
    hear(owned, NOW + HOUR_MS, "h2")
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send(owned, quiet(port), NOW + HOUR_MS)
    assert inbox.got == ["r@example.org"]


def test_an_owner_is_not_told_of_other_peoples_money(owned: Engine) -> None:
    def make() -> None:
        with session_scope(owned) as session:
            budgets.add(session, Budget(0, "All", "all", "", Decimal("0.1"), "2026-10"))
            budgets.add(session, Budget(0, "Media", "team", "media", Decimal("0.0"), "2026-10"))
        materialise(owned, quiet(), NOW)
        advise(owned, saving=cash(7_777.0), gpu_uuids=(A, "GPU-c"), title="Release two GPUs")

    assert texts_for(owned, Owner("research"), make) == []
    assert len(texts_for(owned, None, lambda: None)) == 1


def test_an_owner_hears_of_its_own_budget_and_advice(owned: Engine) -> None:
    def make() -> None:
        with session_scope(owned) as session:
            budgets.add(session, Budget(0, "Ours", "team", "research", Decimal("0.1"), "2026-10"))
        materialise(owned, quiet(), NOW)
        advise(
            owned,
            saving=cash(7_777.0),
            gpu_uuids=(A,),
            subject=Subject("gpu", A, "GPU 0 on h1"),
            title="Release GPU 0 on h1",
            because="No work for days.",
            actions=(),
        )

    (text,) = texts_for(owned, Owner("research"), make)
    assert "Budget Ours is exceeded" in text
    assert "Release GPU 0 on h1" in text


# The list, REST and the command


def test_the_list_says_what_is_due_to_whom_and_what_is_cooling(fleet: Engine, ready_database: str) -> None:
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    settings = replace(quiet(), database_url=ready_database)

    def states() -> list[tuple[str, tuple[str, ...]]]:
        with Session(fleet) as session:
            return [(one.state, one.recipients) for one in resource.rows(session, settings, NOW)]

    assert states() == [("nobody", ())]
    add(fleet, HEAD)
    assert states() == [("due", (HEAD,))]
    with Session(fleet) as session:
        assert kept.listing(session) == {}
    inbox = Inbox()
    app = create_app(replace(settings, smtp_port=free_port()))
    app.state.clock = lambda: NOW
    with TestClient(app, base_url="http://127.0.0.1:8787") as client:
        (row,) = client.get("/api/v1/alerts").json()["items"]
        assert (row["state"], row["severity"], row["again_at"]) == ("due", "urgent", None)
    with smtp_server(inbox) as port:
        app = create_app(replace(settings, smtp_port=port))
        app.state.clock = lambda: NOW
        with TestClient(app, base_url="http://127.0.0.1:8787") as client:
            answer = client.post("/api/v1/alerts/send", json={})
            assert answer.json() == {"message": "1 fault, 1 to tell of: 1 sent"}
            (row,) = client.get("/api/v1/alerts").json()["items"]
    assert (row["state"], row["again_at"]) == ("cooling", "2026-10-12T02:00:05.000Z")
    assert inbox.got == [HEAD]


def test_the_command_is_a_dry_run_unless_it_is_told_to_send(fleet: Engine, ready_database: str) -> None:
    url = ["--database-url", ready_database]
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    # The command reads the clock: silence of long ago is none, the lost GPU may be.
    shown = CliRunner().invoke(command, url)
    assert shown.exit_code == 0, shown.output
    as_json = CliRunner().invoke(command, [*url, "--json"])
    assert isinstance(json.loads(as_json.stdout), list)
    sent = CliRunner().invoke(command, [*url, "--send"])
    assert sent.exit_code == 0, sent.output
    assert "to tell of" in sent.stdout


def test_names_from_outside_are_inert_in_the_mail(fleet: Engine) -> None:
    add(fleet, HEAD)
    nasty = "<script>alert(1)</script>\u202e" + "x" * 10_000
    advise(fleet, saving=cash(5_000.0), title=nasty, because=nasty)
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send(fleet, quiet(port), NOW)
    mail_ = inbox.mails[0]
    assert len(mail_["Subject"]) <= 150
    html = body_of(inbox, 0, "html")
    assert "<script" not in html
    assert "\u202e" not in html + body_of(inbox)
    assert len(bytes(mail_)) < 100_000
