"""R12: preemptions per finished request, or a full cache with a queue; levers in the engine's order, never money."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, SETTINGS, engine_hour, evidence, gpu, histogram
from hypothesis import given
from hypothesis import strategies as st
from serving_builders import fleet, judge, replica

from advisor.rules.kv_thrash import RULE, KvThrashLimits
from core.evidence import EngineEvidence
from core.finding import Finding, Grade, NotEvaluated

BUSY: dict[str, Any] = {"running": 64.0, "kv_used": 0.9, "step_s": 0.02, "finished_requests": 1000.0}


def run(
    *engines: EngineEvidence, limits: KvThrashLimits | None = None
) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, fleet(*engines), limits)


@pytest.mark.parametrize(
    ("preemptions", "state"),
    [(10.0, None), (11.0, "preempting"), (100.0, "preempting"), (101.0, "thrashing")],
)
def test_one_in_a_hundred_warns_and_one_in_ten_acts(preemptions: float, state: str | None) -> None:
    found, none = run(replica(1, preemption_count=preemptions, **BUSY))
    assert [finding.state for finding in found] == ([] if state is None else [state])
    assert not none
    for finding in found:
        assert finding.evidence["preemptions_per_finished_request"] == pytest.approx(preemptions / 1000)
        assert finding.saving.is_empty
        assert (finding.no_figure or "").startswith("No figure, because")
        assert finding.grade is Grade.A


def test_a_full_cache_counts_only_with_a_queue() -> None:
    full = {**BUSY, "kv_used": 0.97, "preemption_count": 0.0}
    assert run(replica(1, **full)) == ([], [])
    (finding,), _ = run(replica(1, **full, waiting=5.0))
    assert finding.cause == "full"
    assert finding.grade is Grade.B
    assert "inferred" in finding.confidence


def test_the_levers_come_in_vllms_order() -> None:
    settings = {**SETTINGS, "gpu_memory_utilization": "0.9", "max_model_len": "32768", "max_num_seqs": "256"}
    (finding,), _ = run(replica(1, preemption_count=200.0, settings=settings, **{**BUSY, "kv_used": 0.97}))
    commands = [action.command or "" for action in finding.actions]
    assert "--gpu-memory-utilization 0.95" in commands[0]
    assert "--max-num-seqs" in commands[1]
    assert "--tensor-parallel-size 2" in commands[2]
    assert "--kv-cache-dtype fp8" in commands[3]
    assert "--max-model-len" in finding.actions[4].text
    assert int(commands[1].rsplit(" ", 1)[1]) < 64


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("vllm", ["--gpu-memory-utilization", "--max-num-seqs", "--tensor-parallel-size"]),
        (
            "sglang",
            ["--mem-fraction-static", "--max-running-requests", "--schedule-conservativeness", "--tp"],
        ),
        ("tgi", ["--max-batch-size", "--num-shard"]),
        ("trtllm", ["--kv_cache_free_gpu_memory_fraction", "--max_batch_size", "--tp_size"]),
        ("llamacpp", ["-np"]),
    ],
)
def test_every_engine_gets_its_own_flags(kind: str, flags: list[str]) -> None:
    (finding,), _ = run(replica(1, kind=kind, preemption_count=200.0, **{**BUSY, "kv_used": 0.97}))
    words = " ".join(f"{action.text} {action.command or ''}" for action in finding.actions)
    assert all(flag in words for flag in flags), words


def test_memory_at_its_most_is_not_raised() -> None:
    settings = {**SETTINGS, "gpu_memory_utilization": "0.95"}
    (finding,), _ = run(replica(1, preemption_count=200.0, settings=settings, **BUSY))
    assert not any("--gpu-memory-utilization" in (action.command or "") for action in finding.actions)


def test_three_preemptions_of_a_night_are_nothing() -> None:
    few = {**BUSY, "finished_requests": 0.5}
    hours = [engine_hour(i, **few, preemption_count=0.15) for i in range(FORTNIGHT_H)]
    assert run(replica(1, hours)) == ([], [])


def test_thrashing_of_last_week_is_over() -> None:
    hours = [
        engine_hour(i, **BUSY, preemption_count=200.0 if i < FORTNIGHT_H - 48 else 0.0)
        for i in range(FORTNIGHT_H)
    ]
    assert run(replica(1, hours)) == ([], [])


def test_an_engine_that_publishes_nothing_of_it_is_refused_with_the_names() -> None:
    base = replica(1, **{**BUSY, "finished_requests": None, "preemption_count": None})
    hours = tuple(replace(hour, kv_used=histogram()) for hour in base.hours)
    found, (refusal,) = run(replace(base, hours=hours))
    assert not found
    assert refusal.missing == ("preemption_count", "finished_requests", "kv_used_ratio")


def test_unknown_preemptions_are_not_none() -> None:
    """A cache with room answers without the counter; it is not refused."""
    assert run(replica(1, **{**BUSY, "finished_requests": None, "preemption_count": None})) == ([], [])


def test_two_minutes_are_refused_and_ten_answer() -> None:
    short = {**BUSY, "preemption_count": 300.0}
    assert run(replica(1, count=1, seconds=120.0, **short))[1][0].missing == ("busy time",)
    assert len(run(replica(1, count=1, seconds=600.0, **short))[0]) == 1


def test_an_engine_seen_no_more_is_refused() -> None:
    gone = replica(1, count=FORTNIGHT_H - 96, preemption_count=300.0, **BUSY)
    found, (refusal,) = judge(RULE, evidence([gpu(uuid="GPU-1", host="node-1")], [gone]))
    assert not found
    assert refusal.missing == ("recent samples",)


def test_thin_coverage_is_refused() -> None:
    base = replica(1, preemption_count=300.0, **BUSY)
    assert run(replace(base, hours=base.hours[::3]))[1][0].missing == ("samples",)


def test_a_fleet_without_engines_says_what_is_missing() -> None:
    assert judge(RULE, evidence([gpu()]))[1][0].missing == ("engine metrics",)


@given(st.floats(0, 1000), st.floats(0, 500))
def test_more_preemptions_never_make_it_well(count: float, more: float) -> None:
    order = [None, "preempting", "thrashing"]
    states = []
    for each in (count, count + more):
        found, _ = run(replica(1, count=48, preemption_count=each, **BUSY))
        states.append(order.index(found[0].state if found else None))
    assert states[0] <= states[1]
