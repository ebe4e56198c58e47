"""R34: said by a setting, or by a name with two more signs; no number without a trial."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, SETTINGS, engine_hours, evidence, gpu, gpu_hour, use
from hypothesis import given
from hypothesis import strategies as st
from serving_builders import fleet, judge, replica

from advisor.rules.static_batching import RULE, is_legacy, pulsing_ratio
from core.activity import Activity
from core.evidence import EngineEvidence, GpuEvidence
from core.finding import Finding, Grade, NotEvaluated
from core.hours import GpuHour

OFF = {**SETTINGS, "continuous_batching": "false", "max_num_seqs": "8"}


def run(engine: EngineEvidence) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, fleet(engine))


def saw(index: int, work_s: float = 1800.0, kind: Activity = Activity.MEMORY_BOUND) -> GpuHour:
    """An hour of work and standstill."""
    return replace(
        gpu_hour(index, kind),
        seconds={kind: work_s, Activity.PARKED: 3600 - work_s},
        active_s=work_s,
    )


def card(
    *,
    name: str = "torchserve",
    count: int = FORTNIGHT_H,
    work_s: float = 1800.0,
    kind: Activity = Activity.MEMORY_BOUND,
    **more: Any,
) -> GpuEvidence:
    hours = [saw(i, work_s, kind) for i in range(count)]
    return gpu(hours, uses=(use("pod", "p1", name=name, to_h=count),), **more)


def judge_card(one: GpuEvidence) -> tuple[list[Finding], list[NotEvaluated]]:
    found, none = judge(RULE, evidence([one]))
    return found, [item for item in none if item.subject.kind != "fleet"]


def test_a_setting_says_so() -> None:
    (finding,), none = run(replica(1, kind="llamacpp", settings=OFF))
    assert not none
    assert finding.cause == "setting"
    assert finding.grade is Grade.A
    assert finding.saving.is_empty
    assert (finding.no_figure or "").startswith("No figure, because")
    assert "--cont-batching" in (finding.actions[0].command or "")
    assert finding.evidence["running_p95"] == 8


@pytest.mark.parametrize(
    "settings_",
    [SETTINGS, {**OFF, "continuous_batching": "true"}, {**OFF, "max_num_seqs": "1"}],
    ids=["default", "on", "one slot"],
)
def test_engines_that_batch_continuously_or_one_at_a_time_are_silent(settings_: dict[str, str]) -> None:
    assert run(replica(1, kind="llamacpp", settings=settings_)) == ([], [])


def test_requests_that_come_one_at_a_time_are_silent() -> None:
    assert run(replica(1, running=1.0, kind="llamacpp", settings=OFF)) == ([], [])


def test_a_name_with_memory_bound_work_and_pauses_is_possible_only() -> None:
    (finding,), none = judge_card(card())
    assert not none
    assert finding.state == "possibly static batching"
    assert finding.grade is Grade.D
    assert finding.saving.is_empty
    assert finding.evidence["active_ratio"] == pytest.approx(0.5)
    assert finding.evidence["pulsing_hours_ratio"] == 1.0
    assert finding.chart["threshold"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    "more",
    [
        {"work_s": 3600.0},  # saturated
        {"kind": Activity.COMPUTE_BOUND},  # no decoder
        {"name": "torchserve-train"},
        {"name": "vllm-huggingface"},
        {"name": "postgres"},
    ],
)
def test_without_all_signs_it_is_silent(more: dict[str, Any]) -> None:
    assert judge_card(card(**more)) == ([], [])


def test_a_name_alone_is_refused() -> None:
    found, (refusal,) = judge_card(card(kind=Activity.BUSY))
    assert not found
    assert "dram_active_ratio" in refusal.missing


def test_gaps_and_silence_are_refused() -> None:
    whole = card()
    holed = replace(whole, hours=whole.hours[::2])
    assert judge_card(holed)[1][0].missing == ("samples",)
    other = gpu(uuid="GPU-b")
    old = card(count=300)
    found, none = judge(RULE, evidence([old, other]))
    assert not found
    assert ("recent samples",) in {item.missing for item in none}


def test_python_programs_are_named_as_unseen_but_not_those_judged() -> None:
    plain = gpu(uuid="GPU-b", uses=(use(),))
    _, none = judge(RULE, evidence([card(), plain, gpu(uuid="GPU-1")], [replica(1)]))
    (fleet_wide,) = [item for item in none if item.subject.kind == "fleet"]
    assert "1 GPU works" in fleet_wide.why


def test_an_engine_with_thin_data_is_refused() -> None:
    brief = replica(1, engine_hours(1, kv_used=0.01, seconds=300.0), settings=OFF)
    assert run(brief)[1][0].missing == ("busy time",)


def test_no_engine_is_said() -> None:
    _, none = judge(RULE, evidence([gpu()]))
    assert none[0].missing == ("engine metrics",)


def test_names_that_say_it_and_names_that_do_not() -> None:
    told = ("hf-pipeline-7b", "model_worker", "text-generation-webui", "huggingface-pytorch-inference")
    untold = (
        "vllm",
        "text-generation-inference",
        "triton",
        "python",
        "transformers-finetune",
        "llama-server",
    )
    assert all(is_legacy(use("pod", name=name)) for name in told)
    assert not any(is_legacy(use("pod", name=name)) for name in untold)


@given(st.lists(st.floats(0, 3600), min_size=1, max_size=30), st.floats(0.01, 0.49))
def test_a_share_of_hours_is_a_share(work: list[float], pause: float) -> None:
    hours = [saw(i, seconds) for i, seconds in enumerate(work)]
    share = pulsing_ratio(hours, pause)
    assert 0 <= share <= 1
    assert share <= pulsing_ratio(hours, pause / 2) + 1e-12
    assert pulsing_ratio([], pause) == 0


def test_a_reserved_node_saves_nothing_either() -> None:
    (finding,), _ = judge_card(card(host_gpu_count=8))
    assert finding.saving.is_empty
