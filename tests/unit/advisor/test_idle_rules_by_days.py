"""Off hours, orphans, pauses and stuck jobs say the same whether hours are at hand or are read from a store by the day."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from advice_builders import SITE, evidence, gpu, gpu_hour, use

from advisor.engine import advise
from advisor.rules import execution_idle, off_hours, orphan_memory, stuck_job
from core.activity import Activity
from core.days import GpuDay, folded_by_day, gpu_day
from core.evidence import GpuEvidence
from core.hours import GpuHour
from core.series import HourSeries
from core.units import DAY_MS

RULES = (orphan_memory.RULE, off_hours.RULE, execution_idle.RULE, stuck_job.RULE)
WEEKS = 4
HOURS = WEEKS * 168


class Stored(HourSeries[GpuHour, GpuDay]):
    """Hours that count how many of them were read."""

    def __init__(self, hours: Sequence[GpuHour]) -> None:
        self._hours = hours
        self.read = 0

    @property
    def days(self) -> Sequence[GpuDay]:
        return folded_by_day(self._hours, gpu_day)

    @property
    def parts(self) -> Sequence[GpuHour]:
        return [day.whole for day in self.days]

    def starts(self) -> Sequence[int]:
        return [hour.hour_ms for hour in self._hours]

    def of_day(self, day_ms: int) -> Sequence[GpuHour]:
        return self._told([h for h in self._hours if h.hour_ms // DAY_MS == day_ms // DAY_MS])

    def since(self, from_ms: int) -> Sequence[GpuHour]:
        return self._told([h for h in self._hours if h.hour_ms >= from_ms])

    def all(self) -> Sequence[GpuHour]:
        return self._told(self._hours)

    def _told(self, hours: Sequence[GpuHour]) -> Sequence[GpuHour]:
        self.read += len(hours)
        return hours


def is_night(index: int) -> bool:
    return index % 24 >= 20 or index % 24 < 6


def nights() -> GpuEvidence:
    return gpu([gpu_hour(i, Activity.PARKED if is_night(i) else Activity.BUSY) for i in range(HOURS)])


def pausing() -> GpuEvidence:
    seconds = {Activity.PARKED: 900.0, Activity.BUSY: 2700.0}
    pauses = {"seconds": seconds, "active_s": 2700.0, "parked_power_w": 160.0}
    return gpu([replace(gpu_hour(i), **pauses) for i in range(HOURS)])  # type: ignore[arg-type]


def left_behind() -> GpuEvidence:
    ended = HOURS - 8
    job = use("slurm_job", "77", name="job 77", to_h=ended)
    hours = [gpu_hour(i, Activity.BUSY if i < ended else Activity.PARKED) for i in range(HOURS)]
    return replace(gpu(hours), uses=(job,))


def stuck() -> GpuEvidence:
    still = {"memory_busy_ratio": 0.01, "power_limit_w": 700.0}
    hours = [gpu_hour(i) for i in range(HOURS - 3)]
    spun = [replace(gpu_hour(i, Activity.SPINNING), power_w=130.0, **still) for i in range(HOURS - 3, HOURS)]
    return gpu([*hours, *spun])


@pytest.mark.parametrize(
    ("card", "rule_id"),
    [
        (nights(), "off-hours"),
        (pausing(), "execution-idle"),
        (left_behind(), "orphan-memory"),
        (stuck(), "stuck-job"),
    ],
    ids=["nights", "pauses", "left behind", "stuck"],
)
def test_stored_hours_give_the_same_findings(card: GpuEvidence, rule_id: str) -> None:
    paying = replace(SITE, pays_for_power=True)
    at_hand = advise(evidence([card], site=paying), RULES)
    stored = replace(card, hours=Stored(card.hours))
    by_days = advise(evidence([stored], site=paying), RULES)
    assert [finding.rule_id for finding in at_hand.findings] == [rule_id]
    for one, other in zip(at_hand.findings, by_days.findings, strict=True):
        assert other.saving == one.saving
        assert other.evidence == one.evidence
    assert by_days.not_evaluated == at_hand.not_evaluated


def test_no_hour_of_a_healthy_gpu_is_read() -> None:
    hours = Stored(gpu([gpu_hour(i) for i in range(HOURS)]).hours)
    advise(evidence([replace(gpu(), hours=hours)]), RULES)
    assert hours.read == 0
