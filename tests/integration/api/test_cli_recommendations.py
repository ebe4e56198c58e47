"""``gpuwise recommendations`` on a database and on a server: every step, with who and why."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gpuwise.__main__ import main

Say = Callable[..., Any]


@pytest.fixture
def say(advised_place: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> Say:
    def said(*words: str, code: int = 0) -> Any:
        assert main(["recommendations", *words, "--json", *advised_place]) == code
        out, err = capsys.readouterr()
        return json.loads(out) if code == 0 else err

    return said


def first(say: Say) -> str:
    return str(say("list")[0]["id"])


def test_a_life_by_hand(say: Say) -> None:
    id_ = first(say)
    assert say("claim", id_, "--who", "Ada")["status"] == "claimed"
    assert say("done", id_, "--who", "Ada", "--because", "stopped it")["status"] == "done"
    assert say("reopen", id_, "--who", "Grace")["status"] == "reopened"
    asleep = say("snooze", id_, "--until", "2099-01-01")
    assert asleep["snoozed_until"].startswith("2099-01-01")
    assert say("reopen", id_)["snoozed_until"] is None
    assert say("dismiss", id_, "--because", "hot spare")["note"] == "hot spare"
    life = say("show", id_)
    assert [(step["status"], step["who"]) for step in life["steps"][:4]] == [
        ("open", None),
        ("claimed", "Ada"),
        ("done", "Ada"),
        ("reopened", "Grace"),
    ]
    assert life["verifications"] == []
    assert [one["id"] for one in say("list", "--status", "dismissed")] == [int(id_)]
    assert int(id_) not in [one["id"] for one in say("list", "--status", "open")]


def test_mistakes_are_sentences(say: Say, advised_place: tuple[str, str]) -> None:
    """What a server refuses has failed there (1); what is refused here was asked wrongly (2)."""
    code = 1 if advised_place[0] == "--server" else 2
    id_ = first(say)
    assert "no recommendation 9999" in say("claim", "9999", code=code)
    assert "no recommendation 9999" in say("show", "9999", code=code)
    assert "dismissing needs a note" in say("dismiss", id_, "--because", " ", code=code)
    assert "not in the future" in say("snooze", id_, "--until", "2020-01-01", code=code)
    assert "reopen does not apply" in say("reopen", id_, code=code)


def test_a_server_lists_what_its_database_holds(
    filled_database: str, say: Say, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recommendations", "list", "--json", "--database-url", filled_database]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows
    assert say("list") == rows


def test_people_read_tables(
    advised_place: tuple[str, str], say: Say, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recommendations", "list", *advised_place]) == 0
    assert capsys.readouterr().out.startswith("ID  STATUS")
    assert main(["recommendations", "track-record", *advised_place]) == 0
    assert capsys.readouterr().out.startswith("Nothing has been verified yet")
    assert {row["applied"] for row in say("track-record")} == {False}
    id_ = first(say)
    assert main(["recommendations", "claim", id_, "--who", "Ada", *advised_place]) == 0
    assert capsys.readouterr().out.rstrip().endswith(": claimed")
    assert main(["recommendations", "show", id_, *advised_place]) == 0
    assert "claimed" in capsys.readouterr().out


def test_advise_shows_the_steps_that_people_took(
    advised_place: tuple[str, str], say: Say, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = int(first(say))
    say("claim", str(id_), "--who", "Ada")
    assert main(["advise", "--json", *advised_place]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["status"] for row in found["recommendations"] if row["id"] == id_} == {"claimed"}
    assert found["totals"]["spend_usd_month"] is not None
    assert main(["advise", *advised_place]) == 0
    assert "A month, after overlap" in capsys.readouterr().out
