"""What is worth a word: each ledger at its own price, and a warning always."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from advice_builders import PRICE, SITE, claim, evidence, gpu

from advisor.limits_book import LimitsBook
from advisor.model import Limits, Rule, Verdict
from advisor.roster import Roster
from advisor.site_run import SiteRun
from core.evidence import Evidence, Site
from core.finding import Advice, Effort, Finding, Range, Risk, Saving
from core.verification import Ledger

PAYS = replace(SITE, pays_for_power=True)
TEN = Range(8.0, 10.0, 12.0)


def run(finding: Finding, site: Site = SITE, *, priced: bool = True, least: float = 20.0) -> Advice:
    def judge(_: Evidence, __: Limits) -> Iterator[Verdict]:
        yield finding

    rule = Rule("small-batch", "R07", "", frozenset(), Limits(), Effort.LOW, Risk.LOW, (), judge)
    run = SiteRun(
        LimitsBook({}), now=datetime(2026, 12, 1, tzinfo=UTC), min_saving_usd_month=least, rules=[rule]
    )
    run.feed(evidence([gpu(price=PRICE if priced else None)], site=site))
    return run.advice()


@pytest.mark.parametrize(
    ("saving", "site", "said"),
    [
        (Saving(cash_usd_month=TEN), SITE, "It would save $10.00 a month: less than"),
        (
            Saving(capacity_gpu_h_month=Range(5.0, 6.0, 7.0)),
            SITE,
            "It would save 6.0 GPU-h a month, worth $15.00 at the price of its GPUs: less than",
        ),
        (
            Saving(energy_kwh_month=Range(90.0, 100.0, 110.0)),
            PAYS,
            "It would save 100.0 kWh a month, worth $15.60 at the site's tariff: less than",
        ),
        (
            Saving(TEN, Range(4.0, 5.0, 6.0), Range(9.0, 10.0, 11.0)),
            PAYS,
            "It would save 5.0 GPU-h a month, worth $12.50",
        ),
    ],
    ids=["cash", "capacity", "energy", "the most valuable"],
)
def test_what_is_worth_too_little_is_said_as_left_out(saving: Saving, site: Site, said: str) -> None:
    made = run(claim(saving=saving), site)
    assert not made.findings
    (left_out,) = made.not_evaluated
    assert left_out.why.startswith(said)
    assert left_out.why.endswith("minimum_saving_usd_month ($20.00).")
    assert made.totals.capacity_gpu_h_month is None


@pytest.mark.parametrize(
    ("saving", "site", "priced"),
    [
        (Saving(capacity_gpu_h_month=TEN), SITE, True),
        (Saving(capacity_gpu_h_month=Range(5.0, 6.0, 7.0)), SITE, False),
        (Saving(energy_kwh_month=TEN), SITE, True),
        (Saving(energy_kwh_month=TEN), replace(PAYS, tariff_usd_per_kwh=None), True),
        (Saving(energy_kwh_month=Range(90.0, 200.0, 210.0)), PAYS, True),
        (Saving(), SITE, True),
    ],
    ids=[
        "enough hours",
        "hours without a price",
        "power is not paid",
        "no tariff",
        "enough energy",
        "a warning",
    ],
)
def test_what_is_worth_enough_or_has_no_price_stays(saving: Saving, site: Site, *, priced: bool) -> None:
    made = run(claim(saving=saving, no_figure="no figure"), site, priced=priced)
    assert len(made.findings) == 1
    assert not made.not_evaluated


def test_hours_of_several_gpus_have_their_mean_price_and_need_every_one() -> None:
    roster = Roster()
    dear = replace(PRICE, usd_per_gpu_hour=PRICE.usd_per_gpu_hour * 3)
    roster.add(evidence([gpu(), gpu(uuid="GPU-b", price=dear), gpu(uuid="GPU-c", price=None)]))
    finding = claim(saving=Saving(capacity_gpu_h_month=TEN), gpu_uuids=("GPU-a", "GPU-b"))
    worth = roster.worth(finding)
    assert worth is not None
    assert (worth.usd_month, worth.ledger) == (50.0, Ledger.CAPACITY)
    assert roster.worth(replace(finding, gpu_uuids=("GPU-a", "GPU-c"))) is None
