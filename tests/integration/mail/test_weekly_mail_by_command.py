"""The weekly mail from the command line: sent, again, to one, or only said; on both databases."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from core.errors import UsageError
from core.user_recipient import Recipient
from gpuwise.commands.report import report as report_command
from store.engine import make_engine
from tests.integration.api.fleet_for_tests import fill
from tests.integration.mail.smtp_for_tests import Inbox, smtp_server
from tests.integration.mail.weekly_for_tests import HEAD, add, rows


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
