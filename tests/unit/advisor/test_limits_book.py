"""Thresholds of a rule as people see them, and what they are told of a value that it refuses."""

import pytest

from advisor.limits_book import Threshold, limits_book, thresholds_of
from advisor.rules import RULES
from core.errors import SettingsError
from core.rule_settings import RuleSettings

BY_ID = {rule.id: rule for rule in RULES}


def known(rule_id: str) -> dict[str, Threshold]:
    return {one.name: one for one in thresholds_of(BY_ID[rule_id].limits)}


def test_a_threshold_has_default_bounds_and_meaning() -> None:
    one = known("small-batch")["min_small_ratio"]
    assert (one.default, one.whole, one.bounds) == (0.2, False, "> 0, ≤ 1")
    assert one.allowed == "a number > 0, ≤ 1"
    assert one.meaning.startswith("Share of busy time")


def test_every_threshold_of_every_rule_has_a_meaning_and_bounds() -> None:
    every = [one for rule in RULES for one in thresholds_of(rule.limits)]
    assert len(every) > len(RULES)
    assert [one.name for one in every if not one.meaning or not one.bounds] == []


def test_the_first_of_a_pair_shares_the_sentence_below_it() -> None:
    of_rent = known("rent-or-buy")
    assert of_rent["rent_low_ratio"].meaning == of_rent["rent_high_ratio"].meaning


def test_thresholds_keep_the_order_of_the_code() -> None:
    assert list(known("small-batch")) == list(type(BY_ID["small-batch"].limits).model_fields)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (5, r"min_small_ratio is 5: give a number > 0, ≤ 1, or leave it out for the default \(0.2\)"),
        (float("nan"), "min_small_ratio is nan: give a number"),
        (True, "min_small_ratio is True: give a number"),
        ("much", "min_small_ratio is 'much': give a number"),
        (None, "min_small_ratio is None: give a number"),
    ],
)
def test_a_refusal_says_key_bound_and_default(value: object, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        limits_book(RuleSettings(fleet={"small-batch": {"min_small_ratio": value}}))


def test_endless_is_no_number_even_without_an_upper_bound() -> None:
    with pytest.raises(SettingsError, match="min_gain is inf"):
        limits_book(RuleSettings(fleet={"small-batch": {"min_gain": float("inf")}}))


def test_a_threshold_that_may_be_absent_takes_none() -> None:
    book = limits_book(RuleSettings(fleet={"small-batch": {"itl_limit_s": None}}))
    assert book.fleet["small-batch"].model_dump()["itl_limit_s"] is None
