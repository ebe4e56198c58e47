"""Recipients over REST and on the command line: kept, paused, tested, removed; secrets stay secret; both databases."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine
from starlette.testclient import TestClient

from api.app import create_app
from api.mailing import send_weekly
from api.smtp import MailError
from core.errors import GpuwiseError, NotFoundError, UsageError
from core.ownership import Owner, OwnerConditions, OwnerRule
from core.units import MINUTE_MS
from gpuwise.commands.doctor import checks
from gpuwise.commands.recipients import recipients as command
from store.engine import make_engine, session_scope
from store.queries import owners
from tests.integration.api.fleet_for_tests import NOW, fill
from tests.integration.mail.smtp_for_tests import Inbox, free_port, settings_at, smtp_server
from tests.page_server import serving

SLACK = "https://hooks.slack.com/services/T000/B000/abcdefghijklmnop"


@pytest.fixture
def owned(ready_database: str) -> Engine:
    """A database in which a rule names a team with a project."""
    engine = make_engine(ready_database)
    with session_scope(engine) as session:
        owners.insert(session, OwnerRule(0, Owner("research", "vision"), OwnerConditions(user="ann")))
    return engine


@pytest.fixture
def client(owned: Engine, ready_database: str) -> Iterator[TestClient]:
    app = create_app(replace(settings_at(free_port()), database_url=ready_database))
    app.state.clock = lambda: NOW
    with TestClient(app, base_url="http://127.0.0.1:8787") as opened:
        yield opened


def add(client: TestClient, status: int = 201, **body: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/recipients", json=body)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


def listed(client: TestClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/api/v1/recipients").json()["items"]
    return found


def test_recipients_of_the_file_are_listed_with_the_kept_ones(client: TestClient) -> None:
    made = add(client, address="ann@example.org", team="research", project="vision", alerts=False, note="n")
    assert (made["audience"], made["weekly"], made["alerts"]) == ("research / vision", True, False)
    assert [(row["id"], row["source"], row["address"]) for row in listed(client)] == [
        (None, "gpuwise.toml", "head@example.org"),
        (None, "gpuwise.toml", "finance@example.org"),
        (made["id"], "kept", "ann@example.org"),
    ]


def test_the_url_of_a_webhook_is_never_given_back(client: TestClient) -> None:
    made = add(client, address=SLACK)
    assert (made["channel"], made["address"]) == ("webhook", "hooks.slack.com …mnop")
    for url in ("/api/v1/recipients", "/api/v1/recipients?format=csv"):
        assert "abcdef" not in client.get(url).text
    again = add(client, 400, address=SLACK)
    assert again["detail"] == (
        f"hooks.slack.com …mnop is recipient {made['id']} of the same already: change that one, or remove it first"
    )
    for wrong in (SLACK.replace("https", "ftp"), SLACK + " x", SLACK + "x" * 3000, SLACK + "#a"):
        assert "abcdef" not in json.dumps(add(client, 400, address=wrong))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"address": "a@example.org\r\nBcc: b@example.org"}, "give one mail address"),
        (
            {"address": "a@example.org", "team": "media"},
            "team is 'media', and no owner rule names it: there are research",
        ),
        ({"address": "a@example.org", "team": "research", "project": "x"}, "project is 'x'"),
        ({"address": "a@example.org", "project": "vision"}, "without its team"),
        (
            {"address": "a@example.org", "weekly": False, "alerts": False},
            "neither the weekly mail nor alerts",
        ),
        ({"address": "a@example.org", "quiet_week": "loud"}, "use skip or line"),
        ({"address": "a@example.org", "paused_until": "2020-01-01"}, "which is over"),
    ],
)
def test_what_could_not_be_reached_or_told_is_refused(
    client: TestClient, body: dict[str, Any], said: str
) -> None:
    assert said in add(client, 400, **body)["detail"]
    assert len(listed(client)) == 2


def test_one_address_may_be_told_of_the_fleet_and_of_a_team(client: TestClient) -> None:
    add(client, address="ann@example.org")
    add(client, address="ann@example.org", team="research")
    refused = add(client, 400, address="ANN@example.org", team="research")
    assert "ANN@example.org" in refused["detail"]
    kept = [(row["address"], row["audience"]) for row in listed(client) if row["source"] == "kept"]
    assert kept == [("ann@example.org", "the whole fleet"), ("ann@example.org", "research")]


def test_a_recipient_is_changed_paused_and_removed(client: TestClient) -> None:
    id_ = add(client, address="ann@example.org")["id"]
    path = f"/api/v1/recipients/{id_}"
    changed = client.patch(
        path, json={"alerts": False, "quiet_week": "line", "paused_until": "2026-12-24"}
    ).json()
    assert (changed["alerts"], changed["quiet_week"]) == (False, "line")
    assert changed["paused_until"] == "2026-12-24T00:00:00.000Z"
    assert client.patch(path, json={"paused_until": ""}).json()["paused_until"] is None
    assert client.patch(path, json={}).status_code == 400
    assert client.patch(path, json={"weekly": False}).status_code == 400
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 404
    assert client.patch(path, json={"note": "x"}).status_code == 404
    assert len(listed(client)) == 2
    assert add(client, address="ann@example.org")["id"] != id_


def test_a_test_message_says_what_the_server_said(client: TestClient) -> None:
    id_ = add(client, address="ann@example.org")["id"]
    failed = client.post(f"/api/v1/recipients/{id_}/test", json={})
    assert failed.status_code == 400
    assert "cannot be reached" in failed.json()["detail"]
    row = listed(client)[-1]
    assert (row["last_state"], row["last_at"]) == ("failed", "2026-10-05T02:00:05.000Z")
    assert "cannot be reached" in row["last_problem"]
    assert client.post("/api/v1/recipients/999/test", json={}).status_code == 404


def test_what_waits_for_a_recipient_that_is_removed_is_not_sent(owned: Engine, ready_database: str) -> None:
    fill(ready_database)
    call("add", "ann@example.org", url=ready_database)
    settings = settings_at(free_port(), report_recipients=())
    with pytest.raises(MailError):
        send_weekly(owned, settings, NOW)
    call("remove", "1", url=ready_database)
    from api.outgoing import deliver

    inbox = Inbox()
    with smtp_server(inbox) as port:
        assert str(deliver(owned, settings_at(port), NOW + 10 * MINUTE_MS)) == "nothing to send"
    assert inbox.mails == []


def test_the_weekly_report_goes_to_webhooks_too(owned: Engine, ready_database: str) -> None:
    fill(ready_database)
    with serving({"/hook/abcdefghijklmnopq": "ok"}) as server:
        call("add", "-", url=ready_database, stdin=f"{server.url}/hook/abcdefghijklmnopq\n")
        said = send_weekly(owned, settings_at(free_port(), report_recipients=()), NOW)
        ((_, _, body),) = server.posted
    assert said.endswith(": 1 sent")
    assert json.loads(body)["text"].startswith("gpuwise: ")


def call(*words: str, url: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command, [*words, "--database-url", url], input=stdin)


def test_the_command_does_it_all(
    owned: Engine, ready_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(url=ready_database).output.startswith("Nobody gets mail. Add somebody")
    made = call("add", "ann@example.org", "--team", "research", "--no-alerts", url=ready_database)
    assert made.exit_code == 0, made.output
    call("add", SLACK, "--note", "on call", url=ready_database)
    call("pause", "2", "--until", "2099-01-01", url=ready_database)
    shown = call(url=ready_database).output
    assert "abcdef" not in shown
    assert "2099-01-01 00:00" in shown
    assert "on call" in shown
    assert json.loads(call("resume", "2", "--json", url=ready_database).output)[0]["paused_until"] is None
    assert json.loads(call("set", "1", "--alerts", "--json", url=ready_database).output)[0]["alerts"] is True
    inbox = Inbox()
    with smtp_server(inbox) as port:
        toml = tmp_path / "gpuwise.toml"
        toml.write_text(f'smtp_host = "127.0.0.1"\nsmtp_port = {port}\nsmtp_starttls = false\n')
        monkeypatch.setenv("GPUWISE_CONFIG", str(toml))
        for name in ("1", "ANN@example.org"):
            assert call("test", name, url=ready_database).output == "a test message went to ann@example.org\n"
    assert inbox.got == ["ann@example.org"] * 2
    missing = call("test", "nobody@example.org", url=ready_database)
    assert isinstance(missing.exception, NotFoundError)
    wrong = call("add", "x", url=ready_database)
    assert isinstance(wrong.exception, UsageError)
    unreachable = call("test", "2", url=ready_database)
    assert isinstance(unreachable.exception, GpuwiseError)
    call("add", "ann@example.org", url=ready_database)
    twice = call("remove", "ann@example.org", url=ready_database)
    assert "ann@example.org is 2 recipients: give the number (" in str(twice.exception)
    assert call("remove", "3", url=ready_database).exit_code == 0
    assert call("remove", "ann@example.org", url=ready_database).exit_code == 0
    monkeypatch.setenv("GPUWISE_REPORT_RECIPIENTS", "head@example.org")
    of_file = call("remove", "head@example.org", url=ready_database)
    assert "is of gpuwise.toml: change report_recipients there" in str(of_file.exception)


def test_the_doctor_says_who_gets_mail_and_what_did_not_arrive(owned: Engine, ready_database: str) -> None:
    def said(**settings: Any) -> tuple[str, str]:
        of = replace(settings_at(free_port(), report_recipients=()), database_url=ready_database, **settings)
        (check,) = [one for one in checks(of) if one.name == "mail"]
        return check.state, check.finding

    assert said()[1].startswith("nobody gets mail or alerts")
    call("add", "ann@example.org", url=ready_database)
    assert said() == ("ok", "1 recipient of mail, 0 webhooks")
    assert said(smtp_host=None) == (
        "bad",
        "1 recipient of mail, and no smtp_host: set the site's mail server",
    )
    call("add", "http://nobody.invalid/hook/abcdefghijklmnopq", url=ready_database)
    call("test", "2", url=ready_database)
    assert said() == (
        "note",
        "1 recipient of mail, 1 webhook; the last message to 1 did not arrive (gpuwise recipients says why)",
    )
