"""Alerts in the list, over REST and by command; on both databases."""

import json
from dataclasses import replace

from click.testing import CliRunner
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from api.alerts import send
from api.app import create_app
from api.resources import alerts as resource
from core.units import MINUTE_MS
from gpuwise.commands.alerts import alerts as command
from store.queries import alerts as kept
from tests.integration.api.fleet_for_tests import NOW, A
from tests.integration.mail.alerts_for_tests import (
    HEAD,
    add,
    advise,
    body_of,
    cash,
    event,
    quiet,
)
from tests.integration.mail.smtp_for_tests import Inbox, free_port, smtp_server


def test_the_list_says_what_is_due_to_whom_and_what_is_cooling(fleet: Engine, filled_database: str) -> None:
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    settings = replace(quiet(), database_url=filled_database)

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


def test_the_command_is_a_dry_run_unless_it_is_told_to_send(fleet: Engine, filled_database: str) -> None:
    url = ["--database-url", filled_database]
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
