"""One conversation with a real SMTP server: encryption, login, one transaction per recipient, errors as sentences."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from api.mail_envelope import as_wire, envelope, text_message
from api.smtp import MailError, MailServer, RecipientError, UncertainError
from core.settings import Secret, Settings
from tests.integration.mail.smtp_for_tests import (
    Inbox,
    certificate,
    check_login,
    free_port,
    settings_at,
    smtp_server,
)

NOW = 1_791_158_400_000
TO = "finance@example.org"


def content(settings: Settings, to: str = TO) -> bytes:
    return as_wire(text_message(settings, NOW, "a subject", "grüße\n.\nend\n", to=to)).encode("ascii")


def send(settings: Settings, *to: str) -> None:
    with MailServer(settings) as server:
        for one in to or (TO,):
            server.send(one, content(settings, one))


def test_each_recipient_gets_a_message_of_its_own_over_one_connection() -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send(settings_at(port), TO, "head@example.org")
    assert inbox.got == [TO, "head@example.org"]
    assert [mail["To"] for mail in inbox.mails] == [TO, "head@example.org"]
    assert inbox.connections == 1
    body = inbox.mails[0].get_body(("plain",))
    assert body is not None
    assert body.get_content() == "grüße\n.\nend\n"


def test_the_address_of_smtp_from_is_the_sender_and_its_name_is_shown() -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send(settings_at(port, smtp_from="GPU costs <gpu@example.org>"))
    assert inbox.mails[0]["From"] == "GPU costs <gpu@example.org>"


def test_a_name_from_outside_cannot_make_a_header() -> None:
    settings = settings_at(25)
    message = envelope(settings, NOW, "GPU 1 on evil\r\nBcc: x@example.org\u202e", to=TO)
    assert message["Subject"] == "GPU 1 on evil Bcc: x@example.org"
    assert message["Bcc"] is None
    assert len(envelope(settings, NOW, "n" * 10_000, to=TO)["Subject"]) == 150
    with pytest.raises(ValueError, match="Header"):
        envelope(settings, NOW, "subject", to="a@example.org\r\nBcc: b@example.org")


def test_a_refused_recipient_does_not_end_the_conversation() -> None:
    inbox = Inbox(rcpt={"gone@example.org": "550 no such person", "full@example.org": "452 mailbox full"})
    with smtp_server(inbox) as port, MailServer(settings_at(port)) as server:
        for address, permanent in (("gone@example.org", True), ("full@example.org", False)):
            with pytest.raises(RecipientError, match=f"refused {address}: (no such|mailbox)") as caught:
                server.send(address, content(settings_at(port)))
            assert caught.value.permanent is permanent
        server.send(TO, content(settings_at(port)))
    assert inbox.got == [TO]


@pytest.mark.parametrize(("answer", "permanent"), [("554 looks like spam", True), ("451 greylisted", False)])
def test_a_refused_message_says_whether_to_try_again(answer: str, permanent: bool) -> None:
    with smtp_server(Inbox(data=answer)) as port, pytest.raises(RecipientError) as caught:
        send(settings_at(port))
    assert caught.value.permanent is permanent
    assert answer[4:] in str(caught.value)


def test_starttls_and_login_are_used(tmp_path: Path) -> None:
    context, cert = certificate(tmp_path)
    inbox = Inbox()
    with (
        pytest.MonkeyPatch.context() as patch,
        smtp_server(
            inbox, tls_context=context, require_starttls=True, authenticator=check_login, auth_required=True
        ) as port,
    ):
        patch.setenv("SSL_CERT_FILE", str(cert))
        settings = settings_at(
            port,
            smtp_host="localhost",
            smtp_starttls=True,
            smtp_user="gpuwise",
            smtp_password=Secret("right"),
        )
        send(settings)
        with pytest.raises(MailError, match=r"refused the login of gpuwise.*smtp_password"):
            send(replace(settings, smtp_password=Secret("wrong")))
    assert inbox.got == [TO]


def test_tls_from_the_first_byte_is_a_setting(tmp_path: Path) -> None:
    context, cert = certificate(tmp_path)
    inbox = Inbox()
    with pytest.MonkeyPatch.context() as patch, smtp_server(inbox, ssl_context=context) as port:
        patch.setenv("SSL_CERT_FILE", str(cert))
        send(settings_at(port, smtp_host="localhost", smtp_tls=True, smtp_starttls=True))
    assert inbox.got == [TO]


def test_tls_to_a_server_that_speaks_none_is_a_sentence() -> None:
    with smtp_server(Inbox()) as port, pytest.raises(MailError, match=r"does not speak TLS .*smtp_tls"):
        send(settings_at(port, smtp_tls=True))


def test_a_certificate_nobody_trusts_is_a_sentence(tmp_path: Path) -> None:
    context, _ = certificate(tmp_path)
    with (
        smtp_server(Inbox(), tls_context=context) as port,
        pytest.raises(MailError, match="no certificate this machine trusts"),
    ):
        send(settings_at(port, smtp_host="localhost", smtp_starttls=True))


def test_a_server_without_starttls_is_refused_rather_than_spoken_to_in_clear() -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port, pytest.raises(MailError, match="does not offer STARTTLS"):
        send(settings_at(port, smtp_starttls=True, smtp_user="gpuwise", smtp_password=Secret("right")))
    assert inbox.mails == []


def test_a_login_that_the_server_does_not_know_is_a_sentence() -> None:
    with smtp_server(Inbox()) as port, pytest.raises(MailError, match="smtp_user"):
        send(settings_at(port, smtp_user="gpuwise", smtp_password=Secret("right")))


def test_no_server_set_is_a_sentence() -> None:
    with pytest.raises(MailError, match="set smtp_host"):
        send(settings_at(25, smtp_host=None))


def test_nobody_listening_is_a_sentence() -> None:
    with pytest.raises(MailError, match=r"cannot be reached .*smtp_host and smtp_port"):
        send(settings_at(free_port()))


def test_a_silent_server_does_not_hang_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.smtp.TIMEOUT_S", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(MailError, match="did not answer"):
            send(settings_at(silent.getsockname()[1]))


@contextmanager
def hanging_up_after_data() -> Iterator[int]:
    """A server that takes a whole message and dies before it says so."""

    def serve() -> None:
        wire, _ = listener.accept()
        with wire, wire.makefile("rwb") as stream:

            def say(line: bytes) -> None:
                stream.write(line + b"\r\n")
                stream.flush()

            say(b"220 here")
            for line in stream:
                if line.upper().startswith(b"DATA"):
                    say(b"354 go on")
                    while stream.readline() != b".\r\n":
                        pass
                    return
                say(b"250 OK")

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


def test_a_connection_lost_after_the_message_is_not_a_failure_but_doubt() -> None:
    with hanging_up_after_data() as port, pytest.raises(UncertainError, match="may have arrived"):
        send(settings_at(port))
