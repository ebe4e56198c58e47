"""How a rule's claims came true, and what that makes of its next ones."""

from dataclasses import replace

import pytest
from advice_builders import claim
from hypothesis import given
from hypothesis import strategies as st

from advisor.track_record import LEAST_RATIO, scaled, track_record
from core.finding import Range, Saving
from core.verification import Ledger, Verdict, Verification

CLAIM = claim()


def case(ratio: float, half_width: float = 5.0, verdict: Verdict = Verdict.SAVED) -> Verification:
    middle = 100.0 * ratio
    saving = Range(middle - half_width, middle, middle + half_width)
    return Verification(verdict, "", Ledger.CASH, saving, 100.0)


def test_without_a_case_the_prior_is_shown_and_not_applied() -> None:
    record = track_record(())
    assert record.cases == 0
    assert record.ratio.p50 == pytest.approx(0.7)
    assert scaled(CLAIM, record) == CLAIM
    assert "No saving of this rule has been verified here yet" in record.sentence


def test_cases_move_the_prior_towards_them() -> None:
    one, many = track_record([case(1.0)]), track_record([case(1.0)] * 10)
    assert 0.7 < one.ratio.p50 < many.ratio.p50 < 1.0
    assert many.ratio.p50 == pytest.approx(1.0, abs=0.05)


def test_cases_that_agree_narrow_the_range() -> None:
    one, many = track_record([case(0.7)]), track_record([case(0.7)] * 20)
    assert many.ratio.p90 / many.ratio.p10 < one.ratio.p90 / one.ratio.p10


def test_cases_that_fell_short_shrink_the_next_claim() -> None:
    made = scaled(CLAIM, track_record([case(0.4)] * 6)).saving.cash_usd_month
    assert made is not None
    assert made.p50 == pytest.approx(43.0, abs=3.0)
    assert made.p90 / made.p50 > 1.2  # wider than the claim's own range


def test_a_saving_that_did_not_come_counts_too() -> None:
    good = [case(1.0)] * 3
    lost = Verification(Verdict.NOISE, "", Ledger.CASH, Range(-10.0, -2.0, 6.0), 100.0)
    with_loss = track_record([*good, lost])
    assert with_loss.cases == 4
    assert with_loss.ratio.p50 < track_record(good).ratio.p50


def test_a_refusal_counts_for_nothing() -> None:
    refused = Verification(Verdict.NO_BASELINE, "", Ledger.CASH, None, 100.0)
    assert track_record([refused]).cases == 0


def test_a_vague_case_weighs_less_than_a_sharp_one() -> None:
    sharp, vague = track_record([case(0.2, 2.0)]), track_record([case(0.2, 60.0)])
    assert sharp.ratio.p50 < vague.ratio.p50


def test_the_user_is_told_in_the_confidence() -> None:
    told = scaled(CLAIM, track_record([case(0.8)]))
    assert told.confidence.startswith("Fitted here. 1 verified case: about ")


def test_a_claim_that_its_record_brings_down_to_nothing_is_none() -> None:
    wide = replace(CLAIM, saving=Saving(cash_usd_month=Range(5.0, 100.0, 195.0)))
    made = scaled(wide, track_record([case(0.1)]))
    assert made.saving.is_empty
    assert "No cash figure, because it may save nothing: $0.00 to $" in (made.no_figure or "")


def test_a_finding_without_a_figure_is_left_alone() -> None:
    bare = replace(CLAIM, saving=Saving())
    assert scaled(bare, track_record([case(0.8)])) == bare


@given(st.lists(st.floats(-1.0, 9.0), max_size=12), st.floats(0.0, 50.0), st.floats(0.1, 1e6))
def test_a_scaled_claim_stays_a_range_and_never_turns_negative(
    ratios: list[float], half_width: float, usd: float
) -> None:
    record = track_record([case(ratio, half_width) for ratio in ratios])
    assert LEAST_RATIO / 3 < record.ratio.p50 < 4.0
    made = scaled(replace(CLAIM, saving=Saving(cash_usd_month=Range.around(usd, 0.2))), record)
    figure = made.saving.cash_usd_month
    assert figure is not None
    assert 0.0 <= figure.p10 <= figure.p50 <= figure.p90
