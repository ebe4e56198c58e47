"""``gpuwise thresholds`` and ``gpuwise exclusions`` on a database and on a server."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from core.clock import from_ms, now_ms
from gpuwise.__main__ import main

Say = Callable[..., Any]


@pytest.fixture
def say(advised_place: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> Say:
    def said(*words: str, code: int = 0, form: str = "--json") -> Any:
        assert main([*words, *([form] if form else []), *advised_place]) == code
        out, err = capsys.readouterr()
        return err if code else json.loads(out) if form else out

    return said


def test_a_hot_spare_until_friday(say: Say) -> None:
    covers = say("exclusions", "add", "--host", "h1", "--dry-run")
    assert (covers["gpu_count"], covers["recommendation_count"]) == (2, 1)
    assert say("exclusions") == []
    words = ("add", "--host", "h1", "--until", "friday", "--reason", "hot spare", "--who", "Ada")
    made = say("exclusions", *words)
    assert made["covers"]["recommendation_count"] == 1
    (row,) = say("exclusions", "list")
    assert (row["part"], row["reason"], row["who"], row["state"]) == (
        "host h1",
        "hot spare",
        "Ada",
        "in_force",
    )
    assert [one["status"] for one in say("recommendations", "list")] == ["snoozed"]
    table = say("exclusions", form="")
    assert "host h1" in table
    assert "every rule" in table
    ended = say("exclusions", "end", str(row["id"]))
    assert (ended["reopened_count"], say("exclusions")) == (1, [])
    assert [one["status"] for one in say("recommendations", "list")] == ["reopened"]


def test_what_is_to_come_sets_nothing_aside_yet_and_says_so(say: Say) -> None:
    add = ("exclusions", "add", "--host", "h1", "--until", "9d", "--reason", "move")
    assert "1 open recommendation is set aside" in say(*add, form="")
    say("exclusions", "end", "1")
    soon = from_ms(now_ms() + 2 * 86_400_000).date().isoformat()
    assert "1 open recommendation would be set aside" in say(*add, "--since", soon, form="")
    assert [one["status"] for one in say("recommendations", "list")] == ["reopened"]


def test_a_name_that_nothing_has_is_said(say: Say) -> None:
    out = say("exclusions", "add", "--host", "h9", "--until", "3d", "--reason", "typo", form="")
    assert "It covers no GPU that is known" in out


def test_an_exclusion_without_a_reason_or_an_end_is_refused(say: Say, advised_place: tuple[str, str]) -> None:
    code = 2 if advised_place[0] == "--database-url" else 1  # a server's refusal is no mistake in the call
    add = ("exclusions", "add", "--host", "h1")
    assert "reason is missing" in say(*add, "--until", "3d", code=code)
    assert "until is 'never'" in say(*add, "--until", "never", "--reason", "x", code=code)
    assert say("exclusions") == []


def test_thresholds_are_set_listed_and_removed(say: Say) -> None:
    rows = say("thresholds", "list", "--rule", "small-batch")
    assert {row["origin"] for row in rows} == {"default"}
    made = say("thresholds", "set", "small-batch", "min_small_ratio=0.3", "min_busy_s=600", "--note", "noise")
    assert {row["name"]: row["value"] for row in made} == {"min_small_ratio": 0.3, "min_busy_s": 600.0}
    say("thresholds", "set", "small-batch", "itl_limit_s=none", "--host", "dev-*")
    told = {(row["part"], row["name"]): row["value"] for row in say("thresholds", "--set")}
    assert told == {
        ("the fleet", "min_small_ratio"): 0.3,
        ("the fleet", "min_busy_s"): 600.0,
        ("host dev-*", "itl_limit_s"): None,
    }
    table = say("thresholds", "list", "--rule", "small-batch", form="")
    assert "a number > 0, ≤ 1" in table
    assert "database" in table
    (left,) = say("thresholds", "remove", str(made[0]["id"]), "min_busy_s")
    assert left["name"] == "min_small_ratio"
    assert "Nothing of it stays set" in say("thresholds", "remove", str(left["id"]), form="")


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("min_small_ratio", "give NAME=VALUE"),
        ("min_small_ratio=much", "min_small_ratio is 'much': give a number such as 0.3, or none"),
    ],
)
def test_what_is_no_number_is_refused_before_anything_is_asked(say: Say, pair: str, says: str) -> None:
    assert says in say("thresholds", "set", "small-batch", pair, code=2)
