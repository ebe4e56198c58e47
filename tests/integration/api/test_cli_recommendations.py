"""``gpuwise recommendations`` on a database: every step, with who and why."""

import json
from typing import Any

import pytest

from gpuwise.__main__ import main


@pytest.fixture
def url(filled_database: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["advise", "--database-url", filled_database]) == 0
    capsys.readouterr()
    return filled_database


def say(capsys: pytest.CaptureFixture[str], url: str, *words: str, code: int = 0) -> Any:
    assert main(["recommendations", *words, "--json", "--database-url", url]) == code
    said = capsys.readouterr()
    return json.loads(said.out) if code == 0 else said.err


def first(capsys: pytest.CaptureFixture[str], url: str) -> str:
    return str(say(capsys, url, "list")[0]["id"])


def test_a_life_by_hand(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    id_ = first(capsys, url)
    assert say(capsys, url, "claim", id_, "--who", "Ada")["status"] == "claimed"
    assert say(capsys, url, "done", id_, "--who", "Ada", "--because", "stopped it")["status"] == "done"
    assert say(capsys, url, "reopen", id_, "--who", "Grace")["status"] == "reopened"
    asleep = say(capsys, url, "snooze", id_, "--until", "2099-01-01")
    assert asleep["snoozed_until"].startswith("2099-01-01")
    assert say(capsys, url, "reopen", id_)["snoozed_until"] is None
    assert say(capsys, url, "dismiss", id_, "--because", "hot spare")["note"] == "hot spare"
    steps = say(capsys, url, "show", id_)["steps"]
    assert [(step["status"], step["who"]) for step in steps[:4]] == [
        ("open", None),
        ("claimed", "Ada"),
        ("done", "Ada"),
        ("reopened", "Grace"),
    ]
    assert [one["id"] for one in say(capsys, url, "list", "--status", "dismissed")] == [int(id_)]


def test_mistakes_are_sentences(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    id_ = first(capsys, url)
    assert "no recommendation 9999" in say(capsys, url, "claim", "9999", code=2)
    assert "dismissing needs a note" in say(capsys, url, "dismiss", id_, "--because", " ", code=2)
    assert "not in the future" in say(capsys, url, "snooze", id_, "--until", "2020-01-01", code=2)
    assert "reopen does not apply" in say(capsys, url, "reopen", id_, code=2)


def test_people_read_tables(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommendations", "list", "--database-url", url]) == 0
    assert capsys.readouterr().out.startswith("ID  STATUS")
    assert main(["recommendations", "track-record", "--database-url", url]) == 0
    assert capsys.readouterr().out.startswith("Nothing has been verified yet")
    assert {row["applied"] for row in say(capsys, url, "track-record")} == {False}
