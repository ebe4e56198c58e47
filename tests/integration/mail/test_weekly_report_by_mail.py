"""The weekly report as a message and by command: its parts, and that it needs nothing else."""

import re
from email.message import EmailMessage
from pathlib import Path

from click.testing import CliRunner

from api.mail_envelope import as_wire
from api.mail_message import report_message
from api.report import report_of
from api.smtp import MailServer
from core.settings import Settings
from gpuwise.commands.report import report as report_command
from tests.contract import page_fixtures as good
from tests.contract.report_fixtures import week_of
from tests.integration.api.fleet_for_tests import fill
from tests.integration.mail.smtp_for_tests import Inbox, settings_at, smtp_server


def mail_of_fixture(settings: Settings) -> EmailMessage:
    return report_message(report_of(week_of(), settings), settings, good.NOW_MS, to="head@example.org")


def part(mail: EmailMessage, kind: str) -> str:
    body = mail.get_body((kind,))
    assert body is not None
    return str(body.get_content())


def test_the_mail_arrives_with_text_html_and_pictures() -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port:
        settings = settings_at(port)
        with MailServer(settings) as server:
            server.send("head@example.org", as_wire(mail_of_fixture(settings)).encode("ascii"))
    (mail,) = inbox.mails
    assert inbox.got == ["head@example.org"]
    assert mail["Subject"] == "gpuwise: $84,310 spent, $31,870 of it idle, 21 Oct – 19 Nov"
    assert mail["From"] == "gpuwise <gpuwise@example.org>"
    assert "$31,870 of it bought hours in which nothing ran." in " ".join(part(mail, "plain").split())
    html = part(mail, "html")
    assert len(html.encode()) < 100_000
    pictures = [p for p in mail.walk() if p.get_content_type() == "image/png"]
    assert len(pictures) == 2
    for picture in pictures:
        assert picture.get_content().startswith(b"\x89PNG")
        assert f'src="cid:{str(picture["Content-ID"])[1:-1]}"' in html
        assert picture.get_content_disposition() == "inline"


def test_the_mail_says_everything_with_pictures_off_and_style_sheets_ignored() -> None:
    html = part(mail_of_fixture(settings_at(25)), "html")
    assert re.sub(r"<style>@media.*</style>", "", html, flags=re.DOTALL).count("<style") == 0
    assert 'style="' in html
    assert "parked $" in html.split('alt="')[1].split('"')[0]
    assert "https://gpuwise.example.org/recommendations/1" in html
    assert "<script" not in html


def test_the_command_writes_one_file_that_needs_nothing_else(ready_database: str, tmp_path: Path) -> None:
    fill(ready_database)
    out = tmp_path / "week.html"
    answer = CliRunner().invoke(
        report_command, ["weekly", "--database-url", ready_database, "--out", str(out)]
    )
    assert answer.exit_code == 0, answer.output
    html = out.read_text(encoding="utf-8")
    assert html.count("data:image/png;base64,") == 2
    assert "<link" not in html
    assert "<script" not in html


def test_the_command_is_a_dry_run_by_default(ready_database: str) -> None:
    fill(ready_database)
    answer = CliRunner().invoke(report_command, ["weekly", "--database-url", ready_database, "--send"])
    assert answer.exit_code == 0, answer.output
    assert "dry run" in answer.output


def test_the_command_prints_text_and_json(ready_database: str) -> None:
    import json

    fill(ready_database)
    text = CliRunner().invoke(report_command, ["weekly", "--database-url", ready_database])
    assert "gpuwise weekly report" in text.output
    body = json.loads(
        CliRunner().invoke(report_command, ["weekly", "--database-url", ready_database, "--json"]).stdout
    )
    assert {"period", "subject", "overview", "actions", "budgets"} <= set(body)
    assert body["overview"]["gpu_count"] == 3
