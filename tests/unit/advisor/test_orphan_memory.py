"""R03: two independent signs, or it refuses; hidden processes are never called orphans; nothing is ever killed."""

from dataclasses import replace

import pytest
from advice_builders import START_MS, evidence, found, gpu, gpu_hour, gpu_hours, refused, use

from advisor.engine import advise
from advisor.rules.orphan_memory import OrphanMemoryLimits
from core.activity import Activity
from core.evidence import GpuEvidence
from core.readings import WorkloadKey
from core.samples import GpuEvent
from core.units import GIB, HOUR_MS

RULE = "orphan-memory"
HOURS = 48
LEFT = 40
"""The job ends here; its memory stays."""
JOB = use("slurm_job", "77", name="job 77 (train)", user="ada", to_h=LEFT)
SHELL = use("process", "10:5", name="python", to_h=HOURS)
GONE = use("process", "4242:0", name="pid 4242", from_h=LEFT, to_h=HOURS)
HIDDEN = use("process", "4242:0", name="pid 4242 (another PID namespace)", from_h=LEFT, to_h=HOURS)
OTHER = replace(gpu().identity, gpu_uuid="GPU-o")
NEIGHBOUR = replace(gpu(gpu_hours(HOURS), uuid="GPU-n"), uses=(SHELL,))


def left_behind(**more: object) -> GpuEvidence:
    hours = [gpu_hour(i, Activity.BUSY if i < LEFT else Activity.PARKED) for i in range(HOURS)]
    return replace(gpu(hours), **{"uses": (JOB,), **more})  # type: ignore[arg-type]


def test_memory_that_outlives_its_job_is_a_question_without_a_figure() -> None:
    (finding,) = found(advise(evidence([left_behind()])), RULE)
    assert finding.saving.is_empty
    assert "No figure, because" in (finding.no_figure or "")
    assert finding.evidence["held_h"] == 8.0
    assert finding.evidence["capacity_if_orphan_gpu_h_month"] == pytest.approx(8 / 48 * 730)
    assert finding.evidence["memory_held_bytes"] == 60 * GIB
    assert finding.evidence["last_workload"] == "job 77 (train)"
    assert "8 hours" in finding.because
    assert not any("kill" in (action.command or "") for action in finding.actions)


def test_a_process_that_is_gone_from_the_host_after_a_fault_is_found() -> None:
    fault = GpuEvent("GPU-a", START_MS + LEFT * HOUR_MS - 60_000, "xid", "XID 31", 31)
    cards = [left_behind(uses=(GONE,), events=(fault,)), NEIGHBOUR]
    (finding,) = found(advise(evidence(cards)), RULE)
    assert finding.evidence["sign_count"] == 2
    assert "XID 31" in finding.because


def test_one_sign_alone_is_refused() -> None:
    for uses in ((), (GONE,)):
        advice = advise(evidence([left_behind(uses=uses), NEIGHBOUR]))
        assert not found(advice, RULE)
        (refusal,) = refused(advice, RULE)
        assert refusal.missing == ("a second sign",)


def test_a_job_that_ended_long_before_left_nothing_behind() -> None:
    earlier = replace(JOB, last_ms=START_MS + (LEFT - 6) * HOUR_MS)
    advice = advise(evidence([left_behind(uses=(earlier,))]))
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("a second sign",)


def test_a_fault_long_before_is_no_sign() -> None:
    fault = GpuEvent("GPU-a", START_MS + (LEFT - 5) * HOUR_MS, "xid", "XID 31", 31)
    advice = advise(evidence([left_behind(uses=(), events=(fault,)), NEIGHBOUR]))
    assert not found(advice, RULE)


def test_containers_that_hide_processes_are_refused() -> None:
    advice = advise(evidence([left_behind(uses=(JOB, HIDDEN)), NEIGHBOUR]))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert refusal.missing == ("process names",)
    assert "another PID namespace" in refusal.why


def test_a_host_without_any_named_process_is_refused() -> None:
    advice = advise(evidence([left_behind(uses=()), replace(left_behind(uses=()), identity=OTHER)]))
    (refusal,) = refused(advice, RULE)
    assert refusal.missing == ("workloads",)
    assert refusal.why.startswith("2 GPUs hold memory without work")


def test_a_parked_model_with_a_known_owner_is_no_orphan() -> None:
    advice = advise(evidence([left_behind(uses=(replace(JOB, last_ms=START_MS + HOURS * HOUR_MS),))]))
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_a_gpu_at_work_now_or_empty_now_is_left_alone() -> None:
    for kind in (Activity.BUSY, Activity.STARVED, Activity.EMPTY, Activity.UNKNOWN):
        card = left_behind()
        card = replace(card, hours=(*card.hours[:-1], gpu_hour(HOURS - 1, kind)))
        advice = advise(evidence([card]))
        assert not found(advice, RULE)
        assert not refused(advice, RULE)


def test_less_than_a_model_or_a_little_work_is_left_alone() -> None:
    for change in ({"memory_used_bytes": 0.5 * GIB}, {"busy_ratio": 0.03}, {"memory_used_bytes": None}):
        card = left_behind()
        last = [replace(hour, **change) for hour in card.hours[LEFT:]]
        advice = advise(evidence([replace(card, hours=(*card.hours[:LEFT], *last))]))
        assert not found(advice, RULE)


def test_half_an_hour_suffices_and_twenty_minutes_do_not() -> None:
    for seconds, count in ((1800.0, 1), (1200.0, 0)):
        card = left_behind()
        newest = gpu_hour(LEFT, Activity.PARKED, seconds=seconds)
        last_ms = START_MS + LEFT * HOUR_MS + round(seconds * 1000)
        card = replace(card, hours=(*card.hours[:LEFT], newest), last_sample_ms=last_ms)
        assert len(found(advise(evidence([card])), RULE)) == count


def test_a_twenty_minute_gap_or_a_missing_hour_ends_the_stretch() -> None:
    card = left_behind()
    holed = gpu_hour(HOURS - 1, Activity.PARKED, seconds=2400)
    advice = advise(evidence([replace(card, hours=(*card.hours[:-1], holed))]))
    assert not found(advice, RULE)
    missing = replace(card, hours=(*card.hours[: HOURS - 3], *card.hours[HOURS - 2 :]))
    advice = advise(evidence([missing]))
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].why.startswith("2 hours held")


def test_silence_is_refused() -> None:
    late = evidence([left_behind()])
    late = replace(late, window=replace(late.window, to_ms=late.window.to_ms + 5 * HOUR_MS))
    assert refused(advise(late), RULE)[0].missing == ("recent samples",)


def test_a_longer_threshold_is_obeyed() -> None:
    limits = {RULE: OrphanMemoryLimits(min_held_h=12)}
    assert not found(advise(evidence([left_behind()]), limits=limits), RULE)


def test_a_numbered_use_is_not_what_names_a_host() -> None:
    other = WorkloadKey("process", "9:0", "pid 9", host="node-1")
    neighbour = replace(NEIGHBOUR, uses=(replace(SHELL, workload=other),))
    advice = advise(evidence([left_behind(uses=(GONE,)), neighbour]))
    assert refused(advice, RULE)[0].missing == ("workloads",)
