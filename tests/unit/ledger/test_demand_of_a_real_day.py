"""One real day of 80 production containers (Alibaba): its demand curve, and what it can carry."""

import csv
import gzip
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from core.units import HOUR_MS
from ledger.demand import Demand, HourOfGpus, demand_of
from ledger.mix import MixPrices
from ledger.mix_answer import Standing, answer

STEP_MS = 57_000
"""The publisher scaled time: 57 s stand for a sample of one minute."""


@pytest.fixture(scope="module")
def day(shared_data: Path) -> Demand:
    """A container wants its GPU while it does work; it was there from its first to its last sample."""
    file = shared_data / "alibaba_gentd26" / "pod_gpu_duty_cycle_anon.csv.gz"
    if not file.is_file():
        pytest.skip(f"no real day here: {file} does not exist")
    busy: dict[int, int] = defaultdict(int)
    known: dict[int, int] = defaultdict(int)
    with gzip.open(file, "rt", newline="") as opened:
        for row in csv.DictReader(opened):
            hour_ms = round(float(row["timestamp_anon"]) * 1000) // HOUR_MS * HOUR_MS
            known[hour_ms] += STEP_MS
            busy[hour_ms] += STEP_MS if float(row["value"]) > 0 else 0
    whole = sorted(known)[1:-1]
    return demand_of(HourOfGpus(hour, busy[hour], known[hour], known[hour]) for hour in whole)


def test_a_production_day_has_a_base_and_a_peak(day: Demand) -> None:
    curve = day.duration
    assert len(day.hours) in range(20, 25)
    assert 0 < curve.wanted_gpus(0.1) < curve.mean_gpus < curve.most_gpus <= 80
    uses = [curve.use_ratio(nth) for nth in range(1, curve.most_gpus + 2)]
    assert uses == sorted(uses, reverse=True)
    assert uses[0] == 1.0
    assert uses[-1] == 0.0
    assert sum(uses) == pytest.approx(curve.mean_gpus)


def test_one_day_decides_no_purchase_and_answers_when_told_to_assume(day: Demand) -> None:
    prices = MixPrices(Decimal("3.99"), commit=Decimal("2.40"))
    refused = answer(day, prices, today_usd_per_gpu_h=Decimal("3.99"), left_out={})
    assert refused.standing is Standing.REFUSED
    assert "0.1 weeks measured" in refused.reason
    assumed = answer(day, prices, today_usd_per_gpu_h=Decimal("3.99"), left_out={}, assume_measured=True)
    assert assumed.mix is not None
    committed = assumed.mix.commit_gpus
    assert day.duration.use_ratio(committed) > 2.40 / 3.99 >= day.duration.use_ratio(committed + 1)
    today, by_the_hour, with_commitment = assumed.steps
    assert today.usd_per_month > by_the_hour.usd_per_month >= with_commitment.usd_per_month
