"""A finding as text and back."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.finding import Action, Effort, Finding, Grade, Range, Risk, Saving, Stake, Subject
from store.finding_json import brief_from_text, from_text, to_text

FINDING = Finding(
    rule_id="parked-model",
    subject=Subject("gpu", "GPU-a", "GPU 3 on node-07"),
    cause="held",
    title="Release GPU 3",
    because="Held 20 h without work – “parked”.",
    state="parked",
    confidence="measured, 14 days",
    grade=Grade.A,
    effort=Effort.LOW,
    risk=Risk.MEDIUM,
    saving=Saving(cash_usd_month=Range(1.0, 2.5, 3.25), energy_kwh_month=Range(0.1, 0.2, 0.3)),
    evidence={"window_from": "2026-10-05T00:00:00Z", "coverage_ratio": 0.98, "parked_h": 20},
    actions=(Action("Stop it", "kill 42"), Action("Ask its owner")),
    wrong_when="It is a warm standby.",
    gpu_uuids=("GPU-a", "GPU-b"),
    stage="stop",
    chart={"series": [[1, 2.0], [2, None]], "unit": "W"},
)


def test_a_finding_comes_back_the_same() -> None:
    assert from_text(to_text(FINDING)) == FINDING


def test_a_finding_without_a_figure_comes_back_the_same() -> None:
    bare = replace(FINDING, saving=Saving(), no_figure="no price", chart={}, actions=())
    assert from_text(to_text(bare)) == bare


@pytest.mark.parametrize("stake", [Stake(8, 20.0), Stake(1.5, None)])
def test_what_is_at_stake_comes_back_the_same_also_without_evidence(stake: Stake) -> None:
    stuck = replace(FINDING, at_stake=stake)
    assert from_text(to_text(stuck)) == stuck
    assert brief_from_text(to_text(stuck)).at_stake == stake


def test_a_finding_that_was_kept_before_stakes_were_has_none() -> None:
    old = to_text(FINDING).replace('"at_stake":null,', "")
    assert from_text(old) == FINDING


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(fold=0)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5).filter(lambda key: key != "$"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=9).filter(lambda key: key != "$"), VALUES, max_size=5))
def test_whatever_evidence_holds_comes_back_the_same(evidence: dict[str, Any]) -> None:
    back = from_text(to_text(replace(FINDING, evidence=evidence))).evidence
    assert back == evidence
    assert repr(back) == repr(evidence)


def test_an_enumeration_in_evidence_becomes_its_text() -> None:
    class Word(StrEnum):
        SPILL = "spill"

    assert from_text(to_text(replace(FINDING, evidence={"state": Word.SPILL}))).evidence == {"state": "spill"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: 2}, {"$": 1}, b"x"])
def test_what_would_not_come_back_the_same_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="a finding"):
        to_text(replace(FINDING, evidence={"x": value}))


def test_decimals_and_times_keep_their_kind() -> None:
    evidence = {"cost_usd": Decimal("1.10"), "at": datetime(2026, 10, 5, tzinfo=UTC)}
    assert from_text(to_text(replace(FINDING, evidence=evidence))).evidence == evidence
