"""Whose GPU time is: the first rule that fits, as of a time."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ownership import HostFacts, Owner, OwnerConditions, OwnerRule
from core.readings import WorkloadKey
from ledger.owners import OwnerBook, handed_over, matches, matches_everything, sentence, subject_of

ML, WEB = Owner("ml"), Owner("web", "search", "4711")
POD = WorkloadKey(
    "pod",
    "uid-1",
    "train-0",
    user="ann",
    host="n1",
    attributes=(("namespace", "ml-prod"), ("pod", "train-0")),
)
JOB = WorkloadKey("slurm_job", "7", "job 7", user="bob", host="n2", attributes=(("slurm_account", "phys"),))
FACTS = {"n1": HostFacts("n1", cluster="a", labels=(("rack", "7"),))}


def rule(
    owner: Owner = ML, *, id_: int = 1, since: int = 0, until: int | None = None, **asked: object
) -> OwnerRule:
    return OwnerRule(id_, owner, OwnerConditions(**asked), since, until)  # type: ignore[arg-type]


def fits(workload: WorkloadKey | None = POD, at: str | None = "n1", /, **asked: object) -> bool:
    facts = None if at is None else FACTS.get(at)
    return matches(OwnerConditions(**asked), subject_of(workload, at, facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "asked",
    [
        {"user": "an*"},
        {"namespace": "ml-*"},
        {"kind": "pod"},
        {"labels": (("pod", "train-?"),)},
        {"labels": (("name", "train-0"),)},
        {"host": "n[12]"},
        {"host_labels": (("cluster", "a"), ("rack", "7"))},
        {"user": "ann", "namespace": "ml-prod", "host": "n1"},
    ],
)
def test_a_condition_that_holds_fits(asked: dict[str, object]) -> None:
    assert fits(**asked)


@pytest.mark.parametrize(
    "asked",
    [
        {"user": "Ann"},
        {"namespace": "web"},
        {"slurm_account": "*"},
        {"image": "*"},
        {"unit": "*"},
        {"labels": (("team", "*"),)},
        {"host_labels": (("region", "*"),)},
        {"user": "ann", "host": "n2"},
    ],
)
def test_a_condition_that_does_not_hold_or_is_unknown_does_not_fit(asked: dict[str, object]) -> None:
    assert not fits(**asked)


def test_a_unit_is_known_by_name_where_a_source_gives_no_attributes() -> None:
    assert fits(WorkloadKey("systemd_unit", "vllm.service", "vllm.service"), unit="vllm*")


def test_only_rules_about_hosts_claim_what_nobody_is_known_to_have_held() -> None:
    assert fits(None, host="n*")
    assert fits(None, host_labels=(("cluster", "a"),))
    assert not fits(None, host="n*", user="ann")
    assert not fits(None, user="*")
    assert not fits(None, None, host="*")


def test_the_first_rule_that_fits_wins() -> None:
    book = OwnerBook((rule(WEB, id_=1, user="bob"), rule(ML, id_=2, user="*"), rule(WEB, id_=3, user="ann")))
    assert book.first(POD, "n1", 0) == book.rules[1]
    assert book.first(JOB, "n2", 0) == book.rules[0]
    assert book.first(None, "n1", 0) is None
    assert book.fitting(POD, "n1", 0) == [book.rules[1], book.rules[2]]


def test_a_team_that_is_renamed_splits_at_the_day() -> None:
    ended, successor = handed_over(rule(user="ann"), WEB, 1_000)
    assert ended is not None
    book = OwnerBook((ended, successor))
    owners = [found.owner if (found := book.first(POD, "n1", at)) else None for at in (0, 999, 1_000, 10**9)]
    assert owners == [ML, ML, WEB, WEB]
    assert book.borders == (0, 1_000)


def test_a_rule_is_handed_over_whole_when_it_begins_later() -> None:
    assert handed_over(rule(since=500, user="ann"), WEB, 400) == (None, rule(WEB, since=500, user="ann"))


def test_a_rule_that_ended_is_not_handed_over() -> None:
    with pytest.raises(ValueError, match="rule 1 has ended by then"):
        handed_over(rule(until=500, user="ann"), WEB, 500)


@pytest.mark.parametrize("asked", [{}, {"user": "*"}, {"host": "**", "kind": "*"}, {"user": "?*"}])
def test_what_nothing_narrows_matches_everything(asked: dict[str, str]) -> None:
    assert matches_everything(OwnerConditions(**asked))


@pytest.mark.parametrize(
    "asked", [{"user": "a*"}, {"user": "*", "host": "n1"}, {"labels": (("namespace", "*"),)}, {"user": "???"}]
)
def test_what_something_narrows_does_not(asked: dict[str, object]) -> None:
    assert not matches_everything(OwnerConditions(**asked))  # type: ignore[arg-type]


def test_conditions_read_as_people_say_them() -> None:
    asked = OwnerConditions(
        slurm_account="phys", labels=(("slurm_step", "0"),), host_labels=(("instance_type", "p5*"),)
    )
    assert sentence(asked) == "slurm account phys, label slurm_step=0, host label instance_type=p5*"
    assert sentence(OwnerConditions()) == "everything"


USERS = st.sampled_from(["ann", "bob", None])
PATTERNS = st.sampled_from(["ann", "b*", "*", None])
TIMES = st.integers(0, 20)


@st.composite
def books(draw: st.DrawFn) -> OwnerBook:
    rules = []
    for number in range(draw(st.integers(0, 6))):
        since = draw(TIMES)
        until = draw(st.none() | st.integers(since + 1, 21))
        asked = {"user": draw(PATTERNS), "host": draw(st.sampled_from(["n1", "n*", None]))}
        rules.append(rule(Owner(f"t{number}"), id_=number + 1, since=since, until=until, **asked))
    return OwnerBook(tuple(rules), FACTS)


@given(books(), USERS, st.sampled_from(["n1", "n2"]), st.lists(TIMES, max_size=5))
def test_an_answer_is_remembered_between_borders_and_is_the_first_that_fits(
    book: OwnerBook, user: str | None, host: str, asked_before: list[int]
) -> None:
    workload = replace(POD, user=user)
    for at_ms in (*asked_before, *range(22)):
        plain = [
            one
            for one in book.rules
            if one.holds_at(at_ms) and matches(one.conditions, subject_of(workload, host, FACTS.get(host)))
        ]
        assert book.first(workload, host, at_ms) == (plain[0] if plain else None)
        assert book.fitting(workload, host, at_ms) == plain


@given(books(), st.integers(0, 5), TIMES)
def test_handing_over_changes_the_owner_from_then_on_and_nothing_else(
    book: OwnerBook, index: int, at_ms: int
) -> None:
    if index >= len(book.rules):
        return
    old = book.rules[index]
    if old.valid_to_ms is not None and old.valid_to_ms <= at_ms:
        return
    ended, successor = handed_over(old, WEB, at_ms)
    parts = (successor,) if ended is None else (ended, successor)
    new = OwnerBook((*book.rules[:index], *parts, *book.rules[index + 1 :]), FACTS)
    for time_ms in range(22):
        before, after = (one.first(POD, "n1", time_ms) for one in (book, new))
        if before is old and time_ms >= at_ms:
            assert after is not None
            assert after.owner == WEB
        else:
            assert (before and before.owner) == (after and after.owner)
