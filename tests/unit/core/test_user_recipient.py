"""Who may be a recipient: plain addresses and webhooks, nothing that smuggles a header or gives a secret away."""

import pytest

from core.outbox import Channel
from core.ownership import Owner
from core.user_recipient import Recipient, plain_address, shown_webhook

SLACK = "https://hooks.slack.com/services/T000/B000/abcdefghijklmnop"


@pytest.mark.parametrize("text", ["a@example.org", "a.b+c@sub.example.org", "root@localhost", "O'Neil@x.y"])
def test_plain_addresses_are_taken(text: str) -> None:
    assert Recipient(None, text).channel is Channel.MAIL


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a@",
        "@b",
        "a b@example.org",
        "a@example.org\nBcc: x@example.org",
        "a@example.org\r\n",
        "a@example.org, b@example.org",
        "Name <a@example.org>",
        "<script>@example.org",
        '"a b"@example.org',
        "a..b@example.org",
        "a@-example.org",
        "ü@example.org",
        "a@exämple.org",
        "a@example.org\u202e",
        "a@" + "x" * 260,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="give one mail address"):
        Recipient(None, text)


def test_a_name_before_an_address_of_the_settings_is_left_out() -> None:
    assert plain_address("Finance <finance@example.org>") == "finance@example.org"
    with pytest.raises(ValueError, match="address is"):
        plain_address("Finance <finance@example.org\nBcc: x@y>")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://example.org/secretsecretsecret", "begins with ftp://"),
        ("https:///secretsecretsecret", "names no host"),
        ("https://user:pw@example.org/secretsecretsecret", "user or password"),
        ("https://example.org/secretsecretsecret#x", "has a #"),
        ("https://example.org/secretsecret secret", "blanks"),
        ("https://example.org/secretsecretsecret\r\nHost: x", "blanks"),
        ("https://example.org:99999/secretsecretsecret", "host or port"),
        ("https://[::1/secretsecretsecret", "host or port"),
        ("https://example.org/" + "secret" * 400, "more than 2000"),
    ],
)
def test_a_url_that_is_no_webhook_is_refused_without_saying_it(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        Recipient(None, url)
    assert "secret" not in str(caught.value)
    assert "pw" not in str(caught.value)


def test_a_webhook_is_shown_by_host_and_last_letters() -> None:
    one = Recipient(None, SLACK)
    assert one.shown == "hooks.slack.com …mnop"
    assert "abcdef" not in one.key
    assert one.key != Recipient(None, SLACK.replace("a", "b")).key
    assert shown_webhook("https://example.org/short") == "example.org …"


def test_the_same_address_is_the_same_recipient_however_it_is_written() -> None:
    assert Recipient(None, "A@Example.org").key == Recipient(None, "a@example.ORG").key


def test_a_recipient_of_nothing_or_of_a_project_without_a_team_is_refused() -> None:
    with pytest.raises(ValueError, match="neither"):
        Recipient(None, "a@example.org", weekly=False, alerts=False)
    with pytest.raises(ValueError, match="without its team"):
        Recipient(None, "a@example.org", Owner("", "p"))


def test_a_pause_ends_by_itself() -> None:
    one = Recipient(None, "a@example.org", paused_until_ms=100)
    assert (one.is_paused(99), one.is_paused(100)) == (True, False)
