"""The last day of work: the same from stored hours as from plain ones, few are read, and chunks change nothing."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from advice_builders import FORTNIGHT_H, evidence, gpu_hour
from hardware_builders import card, job, use, work_hours
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine import advise, advise_chunks
from advisor.gpu_jobs import jobs
from advisor.gpu_work import RECENT_WORK_HOURS, recent
from advisor.rules import RULES
from core.activity import Activity
from core.days import GpuDay, folded_by_day, gpu_day
from core.hours import GpuHour
from core.series import HourSeries
from core.units import DAY_MS

HARDWARE = {"R16", "R17", "R18", "R22", "R23", "R24", "R25", "R26", "R28"}
MINE = tuple(rule for rule in RULES if rule.code in HARDWARE)


class Stored(HourSeries[GpuHour, GpuDay]):
    """Hours kept in memory that remember what was read of them."""

    def __init__(self, hours: Sequence[GpuHour]) -> None:
        self.kept = tuple(hours)
        self.read = 0

    @property
    def days(self) -> Sequence[GpuDay]:
        return folded_by_day(self.kept, gpu_day)

    @property
    def parts(self) -> Sequence[GpuHour]:
        return [day.whole for day in self.days]

    def starts(self) -> Sequence[int]:
        return [hour.hour_ms for hour in self.kept]

    def of_day(self, day_ms: int) -> Sequence[GpuHour]:
        return self.since(day_ms // DAY_MS * DAY_MS)

    def since(self, from_ms: int) -> Sequence[GpuHour]:
        found = [hour for hour in self.kept if hour.hour_ms >= from_ms]
        self.read += len(found)
        return found

    def all(self) -> Sequence[GpuHour]:
        self.read += len(self.kept)
        return self.kept


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([Activity.COMPUTE_BOUND, Activity.PARKED]), min_size=80, max_size=120))
def test_stored_hours_show_the_same_last_day_of_work(kinds: list[Activity]) -> None:
    hours = [gpu_hour(index, kind) for index, kind in enumerate(kinds)]
    plain = card(hours)
    kept = Stored(plain.hours)
    stored = replace(plain, hours=kept)
    one, other = evidence([plain]), evidence([stored])
    assert recent(one, plain) == recent(other, stored)
    assert kept.read <= 73


def test_a_busy_card_costs_a_day_of_reading_however_many_rules_look() -> None:
    plain = card()
    kept = Stored(plain.hours)
    advise(evidence([replace(plain, hours=kept)]), rules=MINE)
    assert kept.read == RECENT_WORK_HOURS


@pytest.mark.parametrize("size", [1, 3])
def test_hardware_advice_does_not_depend_on_how_the_fleet_is_cut(size: int) -> None:
    hosts = []
    for number in range(4):
        slow = {"sm_clock_hz": 1.2e9} if number == 2 else {}
        ranks = job([work_hours(48, busy_ratio=busy, **slow) for busy in (0.95, 0.9 if number else 0.4)])
        blind = card(work_hours(48, pcie_bytes_per_s=None), uuid="GPU-x", uses=(use(key=f"{number}:1"),))
        hosts.append(
            [
                replace(
                    each,
                    identity=replace(
                        each.identity, host=f"node-{number}", gpu_uuid=f"{each.gpu_uuid}-{number}"
                    ),
                )
                for each in (*ranks, blind)
            ]
        )
    whole = evidence([each for host in hosts for each in host])
    chunks = [
        replace(whole, gpus=tuple(each for host in hosts[at : at + size] for each in host))
        for at in range(0, len(hosts), size)
    ]
    together, cut = advise(whole, rules=MINE), advise_chunks(chunks, rules=MINE)
    assert {(f.fingerprint, f.saving) for f in together.findings} == {
        (f.fingerprint, f.saving) for f in cut.findings
    }
    assert {(r.rule_id, r.subject, r.why) for r in together.not_evaluated} == {
        (r.rule_id, r.subject, r.why) for r in cut.not_evaluated
    }
    assert {f.rule_id for f in together.findings} == {"gpu-imbalance", "slow-clock"}


def test_a_job_over_two_hosts_is_judged_host_by_host() -> None:
    ranks = job([work_hours(2)] * 4)
    ranks[2:] = [replace(each, identity=replace(each.identity, host="node-2")) for each in ranks[2:]]
    found = jobs(evidence(ranks))
    assert {len(each.members) for each in found.values()} == {2}
    assert len({each.subject.id for each in found.values()}) == 2


def test_work_of_a_week_ago_is_not_the_present() -> None:
    hours = [*work_hours(100), *[gpu_hour(i, Activity.EMPTY) for i in range(100, FORTNIGHT_H)]]
    idle = card(hours)
    assert not recent(evidence([idle]), idle).active
