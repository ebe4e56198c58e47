"""R16: a starved job with a cause on its host fires; phases, rank waits and unseen hosts are refused, never idle."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, START_MS, engine, evidence, found, refused
from hardware_builders import card, claims_nothing, job, no_saving_cases, use, work_hour, work_hours
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine import advise
from advisor.rules.input_bound import RULE
from core.activity import Activity
from core.evidence import GpuEvidence, HostEvidence
from core.finding import Grade
from core.hours import GpuHour, HostHour
from core.units import HOUR_MS

ID = RULE.id
SWING = {Activity.STARVED: 1800.0, Activity.BUSY: 1800.0}


def starving(count: int = FORTNIGHT_H, *, start: int = 0, busy: float = 0.4, **more: Any) -> list[GpuHour]:
    return [replace(hour, seconds=SWING, busy_ratio=busy) for hour in work_hours(count, start=start, **more)]


def loaded(hours: list[GpuHour] | None = None, thread: float | None = 0.99, **more: Any) -> GpuEvidence:
    return card(hours or starving(), uses=(use(cpu_thread_ratio=thread),), **more)


def run(*gpus: GpuEvidence, **more: Any):
    return advise(evidence(gpus, **more), rules=(RULE,))


def test_a_starved_job_gets_half_of_what_waiting_costs() -> None:
    """1 − 0.4 = 60 % of 730 h is the most; half of it is said."""
    (finding,) = found(run(loaded()), ID)
    assert finding.saving.capacity_gpu_h_month is not None
    assert finding.saving.capacity_gpu_h_month.p50 == pytest.approx(219.0)
    assert finding.saving.capacity_gpu_h_month.p90 == pytest.approx(438.0)
    assert finding.saving.cash_usd_month is None
    assert finding.grade is Grade.D
    assert "idle" not in finding.title.lower()
    assert any("num_workers" in (action.command or "") for action in finding.actions)


def waiting_host(iowait: float, cpu_count: int | None = 32) -> HostEvidence:
    hours = tuple(
        HostHour("node-1", START_MS + i * HOUR_MS, 3600.0, iowait_ratio=iowait) for i in range(FORTNIGHT_H)
    )
    return HostEvidence("node-1", hours, cpu_count)


@pytest.mark.parametrize(("iowait", "cpu_count"), [(0.05, 32), (0.12, None)])
def test_a_host_that_waits_for_disks_is_a_cause(iowait: float, cpu_count: int | None) -> None:
    (finding,) = found(run(loaded(thread=0.2), hosts=(waiting_host(iowait, cpu_count),)), ID)
    assert "disks" in finding.because
    assert finding.evidence["iowait_ratio"] == pytest.approx(iowait)


def test_steady_pcie_traffic_is_a_cause() -> None:
    (finding,) = found(run(loaded(starving(pcie_bytes_per_s=4e9), thread=None)), ID)
    assert "PCIe" in finding.because


def test_a_host_without_any_sign_is_refused() -> None:
    (refusal,) = refused(run(loaded(thread=0.3), hosts=(waiting_host(0.001),)), ID)
    assert refusal.missing == ("a cause on the host",)


def test_a_host_that_was_not_read_is_refused_with_the_names() -> None:
    (refusal,) = refused(run(loaded(starving(pcie_bytes_per_s=None), thread=None)), ID)
    assert set(refusal.missing) == {"cpu_thread_ratio", "iowait_ratio", "pcie_bytes_per_s"}


def test_a_phase_is_no_habit() -> None:
    phase = [*work_hours(FORTNIGHT_H - 6), *starving(6, start=FORTNIGHT_H - 6)]
    advice = run(loaded(phase))
    assert not found(advice, ID)
    assert "evaluation" in refused(advice, ID)[0].why


def test_all_ranks_dipping_together_need_a_sign_of_their_own_host() -> None:
    ranks = job([starving(pcie_bytes_per_s=5e9)] * 4)
    (refusal,) = refused(run(*ranks), ID)
    assert "gradient exchange" in refusal.why
    held = [replace(gpu, uses=(replace(gpu.uses[0], cpu_thread_ratio=0.98),)) for gpu in ranks]
    (finding,) = found(run(*held), ID)
    assert finding.subject.kind == "workload"
    assert len(finding.gpu_uuids) == 4
    assert finding.saving.capacity_gpu_h_month is not None
    assert finding.saving.capacity_gpu_h_month.p50 == pytest.approx(4 * 219.0)


def test_a_busy_job_is_silent() -> None:
    advice = run(card())
    assert not found(advice, ID)
    assert not refused(advice, ID)


def test_an_engine_is_judged_by_serving_rules() -> None:
    assert not found(advise(evidence([loaded()], [engine()]), rules=(RULE,)), ID)


def test_half_an_hour_is_refused() -> None:
    part = replace(
        work_hour(busy_ratio=0.4), covered_s=1500.0, active_s=1500.0, seconds={Activity.STARVED: 1500.0}
    )
    assert refused(run(loaded([part])), ID)[0].missing == ("time",)


def test_gaps_silence_the_rule() -> None:
    advice = run(loaded([hour for i, hour in enumerate(starving()) if i % 2]))
    assert not found(advice, ID)
    assert refused(advice, ID)[0].missing == ("samples",)


def test_a_loader_that_was_repaired_is_left_alone() -> None:
    assert not found(run(loaded([*starving(280), *work_hours(FORTNIGHT_H - 280, start=280)])), ID)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.2, 0.7), st.floats(0.2, 0.7))
def test_a_job_that_waits_more_can_save_more_and_never_more_than_its_waiting(one: float, two: float) -> None:
    low, high = sorted((one, two))
    more, less = (
        found(run(loaded(starving(24, busy=busy))), ID)[0].saving.capacity_gpu_h_month for busy in (low, high)
    )
    assert more is not None
    assert less is not None
    assert more.p50 >= less.p50 - 1e-9
    assert more.p90 <= 730 * (1 - low) + 1e-6


@pytest.mark.parametrize("name", no_saving_cases())
def test_nothing_is_claimed_where_nothing_can_be_saved(name: str) -> None:
    advice = advise(no_saving_cases()[name], rules=(RULE,))
    assert claims_nothing(found(advice, ID))
    assert name != "MIG without utilization" or refused(advice, ID)
