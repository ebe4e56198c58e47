"""A saving that may be nothing is no claim, in whatever ledger and by whatever rule."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from advice_builders import claim, evidence, gpu

from advisor.claims import proven
from advisor.engine import advise
from advisor.model import Limits, Rule, Verdict
from core.evidence import Evidence
from core.finding import Effort, Range, Risk, Saving

SURE = Range(5.0, 10.0, 20.0)
VAGUE = Range(0.0, 10.0, 20.0)


def maybe(seen: Evidence, limits: Limits) -> Iterator[Verdict]:
    yield claim("maybe", saving=Saving(VAGUE, SURE, None), no_figure="It is worth a look.")


def test_a_claim_that_may_be_nothing_is_dropped_in_its_ledger_alone() -> None:
    made = proven(claim(saving=Saving(VAGUE, SURE, Range(-3.0, 1.0, 4.0))))
    assert made.saving == Saving(None, SURE, None)
    assert made.no_figure == (
        "No cash figure, because it may save nothing: $0.00 to $20.00 a month is what can be said (p10 to p90)."
        " No energy figure, because it may save nothing: −3.0 kWh to 4.0 kWh a month is what can be said (p10 to p90)."
    )


@pytest.mark.parametrize("saving", [Saving(SURE, SURE, SURE), Saving(energy_kwh_month=SURE), Saving()])
def test_a_claim_that_is_surely_something_stays_as_it_is(saving: Saving) -> None:
    one = claim(saving=saving)
    assert proven(one) is one


def test_every_rule_is_held_to_it_and_totals_do_not_count_what_is_dropped() -> None:
    rule = Rule("maybe", "R00", "", frozenset(), Limits(), Effort.LOW, Risk.LOW, (), maybe)
    advice = advise(evidence([gpu()]), rules=(rule,))
    (made,) = advice.findings
    assert made == replace(proven(claim("maybe", saving=Saving(VAGUE, SURE))), no_figure=made.no_figure)
    assert (made.no_figure or "").startswith(
        "It is worth a look. No cash figure, because it may save nothing"
    )
    assert advice.totals.cash_usd_month is None
    assert advice.totals.capacity_gpu_h_month is not None
