"""R27: by memory utilization, never by low power; ranks of a job together; no month made of it."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from advice_builders import (
    FORTNIGHT_H,
    START_MS,
    engine,
    engine_hours,
    evidence,
    found,
    gpu,
    gpu_hour,
    gpu_hours,
    refused,
    use,
)

from advisor.engine import advise
from core.activity import Activity, classify
from core.evidence import GpuEvidence
from core.finding import Grade, Stake
from core.hours import GpuHour
from core.units import HOUR_MS

RULE = "stuck-job"
HOURS = 24
JOB = use("slurm_job", "77", name="job 77 (train)", from_h=0, to_h=HOURS)
FACTS = {
    "busy_ratio": 1.0,
    "memory_busy_ratio": 0.01,
    "power_w": 130.0,
    "power_limit_w": 700.0,
    "pcie_bytes_per_s": 1e6,
    "nvlink_bytes_per_s": 0.0,
}


def spin(index: int, *, seconds: float = 3600.0, **more: Any) -> GpuHour:
    return gpu_hour(index, Activity.SPINNING, seconds=seconds, **{**FACTS, **more})


def stuck(hours: int = 3, uuid: str = "GPU-a", host: str = "node-1", **more: Any) -> GpuEvidence:
    """At work, then spinning through the last hours."""
    own = [*gpu_hours(HOURS - hours), *(spin(i, **more) for i in range(HOURS - hours, HOURS))]
    return replace(gpu(own, uuid=uuid, host=host), uses=(JOB,))


def test_a_spinning_job_costs_its_gpus_until_it_is_ended_and_no_month() -> None:
    cards = [stuck(uuid=f"GPU-{i}", host=f"node-{i // 4}") for i in range(8)]
    (finding,) = found(advise(evidence(cards)), RULE)
    assert finding.subject.kind == "workload"
    assert finding.subject.id == "slurm_job:77"
    assert finding.saving.is_empty
    assert "8 GPU-hours ($20.00) every hour" in (finding.no_figure or "")
    assert finding.evidence["lost_gpu_h"] == 24.0
    assert finding.evidence["usd_per_hour_until_ended"] == 20.0
    assert finding.at_stake == Stake(8, 20.0)
    assert finding.evidence["spinning_gpus"] == 8
    assert finding.grade is Grade.A
    assert any(action.command == "scancel 77" for action in finding.actions)


def test_the_rank_that_does_not_spin_is_named_first() -> None:
    missing = replace(gpu(gpu_hours(HOURS, Activity.PARKED), uuid="GPU-x"), uses=(JOB,))
    cards = [missing, *(stuck(uuid=f"GPU-{i}") for i in range(3))]
    (finding,) = found(advise(evidence(cards)), RULE)
    assert finding.evidence["job_gpus"] == 4
    assert finding.evidence["gpus_that_do_not_spin"] == ["GPU 0 on node-1"]
    assert finding.actions[0].text.startswith("Look first at GPU 0 on node-1")


def test_a_few_ranks_at_a_barrier_are_refused() -> None:
    working = [replace(gpu(gpu_hours(HOURS), uuid=f"GPU-w{i}"), uses=(JOB,)) for i in range(3)]
    advice = advise(evidence([stuck(), *working]))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert "1 of 4" in refusal.why


def test_without_a_known_workload_the_gpu_is_the_subject() -> None:
    (finding,) = found(advise(evidence([replace(stuck(), uses=())])), RULE)
    assert finding.subject.kind == "gpu"
    assert "1 GPU-hour ($2.50)" in (finding.no_figure or "")


def test_low_power_alone_is_never_stuck() -> None:
    """A small model: full utilization, little power, memory read in most of the time."""
    small = [gpu_hour(i, power_w=130.0, power_limit_w=700.0, memory_busy_ratio=0.55) for i in range(HOURS)]
    advice = advise(evidence([gpu(small)]))
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_full_utilization_at_low_power_without_memory_utilization_is_refused() -> None:
    blind = [gpu_hour(i, power_w=130.0, power_limit_w=700.0) for i in range(HOURS)]
    advice = advise(evidence([gpu(blind)]))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert refusal.missing == ("memory_busy_ratio",)


@pytest.mark.parametrize(
    "moving",
    [
        {"nvlink_bytes_per_s": 1e9},
        {"pcie_bytes_per_s": 1e8},
        {"dram_active_ratio": 0.4},
        {"memory_busy_ratio": 0.3},
    ],
)
def test_what_moves_is_not_stuck(moving: dict[str, float]) -> None:
    advice = advise(evidence([stuck(**moving)]))
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_an_engine_that_gives_tokens_is_not_stuck() -> None:
    serving = engine(engine_hours(HOURS, kv_used=0.01))
    assert not found(advise(evidence([stuck()], [serving])), RULE)
    silent = engine(engine_hours(HOURS, running=0.0, generated_tokens=0.0, prompt_tokens=0.0))
    assert found(advise(evidence([stuck()], [silent])), RULE)


def newest(card: GpuEvidence, hour: GpuHour) -> GpuEvidence:
    last_ms = hour.hour_ms + round(hour.covered_s * 1000)
    return replace(card, hours=(*card.hours[:-1], hour), last_sample_ms=last_ms)


def test_ten_minutes_suffice_and_nine_do_not() -> None:
    for seconds, count in ((600.0, 1), (540.0, 0)):
        advice = advise(evidence([newest(stuck(1), spin(HOURS - 1, seconds=seconds))]))
        assert len(found(advice, RULE)) == count
        assert len(refused(advice, RULE)) == 1 - count


def test_half_an_hour_that_spun_does_not_tell_when() -> None:
    mixed = replace(
        spin(HOURS - 1), seconds={Activity.SPINNING: 1800.0, Activity.BUSY: 1800.0}, memory_busy_ratio=0.3
    )
    advice = advise(evidence([newest(stuck(1), mixed)]))
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("time",)


def test_a_job_that_moves_again_is_left_alone() -> None:
    recovered = newest(stuck(4), gpu_hour(HOURS - 1))
    advice = advise(evidence([recovered]))
    assert not found(advice, RULE)
    assert not refused(advice, RULE)
    mixed = replace(
        spin(HOURS - 1), seconds={Activity.SPINNING: 1800.0, Activity.BUSY: 1800.0}, memory_busy_ratio=0.3
    )
    assert not found(advise(evidence([newest(stuck(4), mixed)])), RULE)


def test_old_data_is_refused() -> None:
    late = evidence([stuck()])
    late = replace(late, window=replace(late.window, to_ms=late.window.to_ms + 5 * HOUR_MS))
    assert refused(advise(late), RULE)[0].missing == ("recent samples",)


def test_a_missing_hour_cuts_what_is_known() -> None:
    card = stuck(4)
    holed = replace(card, hours=(*card.hours[:-3], *card.hours[-2:]))
    (finding,) = found(advise(evidence([holed])), RULE)
    assert finding.evidence["spinning_s"] == 7200.0


def test_healthy_idle_and_unknown_gpus_are_left_alone() -> None:
    kinds = (Activity.BUSY, Activity.PARKED, Activity.EMPTY, Activity.STARVED, Activity.UNKNOWN)
    for kind in kinds:
        assert not found(advise(evidence([gpu(gpu_hours(FORTNIGHT_H, kind))])), RULE)


def test_two_workloads_on_one_gpu_are_not_one_job() -> None:
    other = use("process", "9:1", name="eval", from_h=0, to_h=HOURS)
    (finding,) = found(advise(evidence([replace(stuck(), uses=(JOB, other))])), RULE)
    assert finding.subject.kind == "gpu"


def test_an_earlier_workload_is_not_blamed() -> None:
    before = use("slurm_job", "70", name="job 70", from_h=0, to_h=10)
    now = replace(JOB, first_ms=START_MS + 10 * HOUR_MS)
    (finding,) = found(advise(evidence([replace(stuck(), uses=(before, now))])), RULE)
    assert finding.subject.id == "slurm_job:77"


@pytest.mark.shared_data
def test_no_second_of_real_decode_looks_like_a_stuck_job(shared_data: Path) -> None:
    """Even if it drew no more than an idle card: memory utilization alone tells decode from a spin."""
    files = sorted(shared_data.glob("bsc_h100_vllm/**/metrics_gpu_device_nvidia_smi_dom_*.csv.gz"))
    full = 0
    for path in files:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            names = next(lines).strip().split(",")
            next(lines)
            for line in lines:
                told = dict(zip(names, line.strip().split(","), strict=False))
                if not all(told.get(name, "").isdigit() for name in ("sm", "mem")):
                    continue
                values = {
                    "busy_ratio": int(told["sm"]) / 100,
                    "memory_busy_ratio": int(told["mem"]) / 100,
                    "power_w": 120.0,
                    "power_limit_w": 700.0,
                    "memory_used_bytes": 50e9,
                    "process_count": 1.0,
                }
                full += values["busy_ratio"] >= 0.95
                assert classify(values, memory_total_bytes=68e9).activity is not Activity.SPINNING
    assert files
    assert full > 1000, "the captures hold seconds that power alone would call stuck"
