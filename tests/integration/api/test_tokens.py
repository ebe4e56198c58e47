"""``gpuwise token``: made and shown once, kept as a hash, listed, revoked; on both databases."""

import json
from collections.abc import Callable
from hashlib import sha256

import pytest
from ingest_for_tests import stored

from core.clock import now_ms
from core.units import DAY_MS
from gpuwise.__main__ import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(ready_database: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gpuwise token …`` on the database: exit code, stdout, stderr."""

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["token", *words, "--database-url", ready_database])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_a_token_is_shown_once_and_kept_as_a_hash(run: Run, ready_database: str) -> None:
    code, out, err = run("create", "--host", "gpu-node-01", "--name", "rack 4")
    token = out.strip()
    assert (code, token[:3], len(token)) == (0, "gw_", 46)
    assert "shown only now" in err
    (row,) = stored(ready_database, "api_token")
    assert row["token_hash"] == sha256(token.encode()).hexdigest()
    assert (row["host_name"], row["name"], row["scope"], row["prefix"]) == (
        "gpu-node-01",
        "rack 4",
        "ingest",
        token[:8],
    )
    assert token not in json.dumps(row)
    listed = run("list")[1] + run("list", "--json")[1]
    assert token[:8] in listed
    assert token not in listed
    assert row["token_hash"] not in listed


def test_no_two_tokens_are_alike(run: Run) -> None:
    assert len({run("create", "--any-host")[1] for _ in range(5)}) == 5


def test_a_token_may_end(run: Run, ready_database: str) -> None:
    before_ms = now_ms()
    made = json.loads(run("create", "--host", "h", "--expires-days", "30", "--json")[1])
    (row,) = stored(ready_database, "api_token")
    assert before_ms + 30 * DAY_MS <= row["expires_ms"] <= now_ms() + 30 * DAY_MS
    assert (made["state"], made["host"], made["token"][:8]) == ("valid", "h", made["prefix"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--host NAME"),
        (("--host", "h", "--any-host"), "--any-host"),
        (("--host", ""), "no name of a host"),
        (("--host", "a\nb"), "no name of a host"),
        (("--host", "h" * 256), "no name of a host"),
        (("--host", "h", "--name", "x" * 256), "at most 255"),
        (("--host", "h", "--expires-days", "0"), "--expires-days"),
        (("--host", "h", "--expires-days", "99999999"), "--expires-days"),
    ],
)
def test_a_call_that_is_off_is_a_sentence(
    run: Run, ready_database: str, words: tuple[str, ...], said: str
) -> None:
    code, out, err = run("create", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert stored(ready_database, "api_token") == []


def test_a_token_is_revoked_by_number_beginning_or_whole(run: Run, ready_database: str) -> None:
    tokens = [run("create", "--any-host")[1].strip() for _ in range(4)]
    for which in ("1", tokens[1][:8], tokens[2]):
        code, out, _ = run("revoke", which)
        assert code == 0
        assert "is revoked" in out
        assert tokens[2] not in out
    states = [row["state"] for row in json.loads(run("list", "--json")[1])]
    assert states == ["revoked", "revoked", "revoked", "valid"]
    first_ms = stored(ready_database, "api_token")[0]["revoked_ms"]
    assert run("revoke", "1")[0] == 0
    assert stored(ready_database, "api_token")[0]["revoked_ms"] == first_ms


def test_an_unknown_token_is_a_sentence_that_does_not_repeat_it(run: Run) -> None:
    code, _, err = run("revoke", "gw_abcdefghijklmnopqrstuvwxyz")
    assert code == 2
    assert "there is no token 'gw_abcde…': see gpuwise token list" in err


def test_a_list_without_tokens_says_how_to_make_one(run: Run) -> None:
    assert run("list")[1] == "No tokens yet. Make one: gpuwise token create --host NAME\n"
    assert json.loads(run("list", "--json")[1]) == []


def test_the_list_is_a_table_for_people(run: Run) -> None:
    run("create", "--host", "gpu-node-01", "--name", "rack 4")
    run("create", "--any-host")
    head, first, second = run("list")[1].splitlines()
    assert head.split() == ["ID", "TOKEN", "HOST", "NAME", "STATE", "CREATED", "EXPIRES", "LAST", "USED"]
    assert "gpu-node-01" in first
    assert "valid" in second
