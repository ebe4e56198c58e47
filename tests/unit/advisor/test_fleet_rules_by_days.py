"""Empty, parked and pressed: what days tell of them is what their hours tell, and of clear cases no hour is read."""

from dataclasses import replace

import pytest
from advice_builders import evidence, gpu, gpu_hour
from test_idle_rules_by_days import Stored

from advisor.empty_streak import was_empty
from advisor.engine import advise
from advisor.rules import empty_gpu, parked_model
from core.activity import Activity
from core.evidence import GpuEvidence
from core.parked_hours import parked_hours

HOURS = 14 * 24
RULES = (empty_gpu.RULE, parked_model.RULE)


def empty(*, last_worked: int | None = None) -> GpuEvidence:
    kinds = [Activity.EMPTY if at != last_worked else Activity.BUSY for at in range(HOURS)]
    return gpu([gpu_hour(at, kind) for at, kind in enumerate(kinds)])


def parked() -> GpuEvidence:
    return gpu([gpu_hour(at, Activity.PARKED) for at in range(HOURS)])


def stored(of: GpuEvidence) -> tuple[GpuEvidence, Stored]:
    hours = Stored(of.hours)
    return replace(of, hours=hours), hours


@pytest.mark.parametrize(
    "of", [empty(), empty(last_worked=100), empty(last_worked=HOURS - 1), parked()], ids=["empty", "worked", "works", "parked"]
)  # fmt: skip
def test_days_and_hours_give_the_same_advice(of: GpuEvidence) -> None:
    by_days, _ = stored(of)
    assert advise(evidence([by_days]), RULES) == advise(evidence([of]), RULES)


def test_of_an_empty_gpu_no_hour_is_read() -> None:
    by_days, hours = stored(empty())
    assert advise(evidence([by_days]), RULES).findings
    assert hours.read == 0


def test_a_day_with_one_hour_of_work_was_not_empty_throughout() -> None:
    by_days, _ = stored(empty(last_worked=100))
    assert [was_empty(day) for day in by_days.days].count(False) == 1


def test_parked_columns_are_those_of_the_hours() -> None:
    of = parked()
    by_days, _ = stored(of)
    read = parked_hours(by_days.hours)
    assert read == parked_hours(of.hours)
    assert list(read.parked_s) == [hour.seconds.get(Activity.PARKED, 0.0) for hour in of.hours]
    assert list(read.hour_ms) == [hour.hour_ms for hour in of.hours]


def test_chosen_hours_keep_their_columns_together() -> None:
    hours = parked_hours(parked().hours)
    last = [at == HOURS - 1 for at in range(HOURS)]
    assert hours.where(last) == parked_hours(parked().hours[-1:])
    assert hours.where([True] * HOURS) == hours
    assert not hours.where([False] * HOURS)
