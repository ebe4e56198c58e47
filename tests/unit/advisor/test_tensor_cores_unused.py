"""R28: fp32 training fires with half of an upper bound; simulations, unknown programs and engines do not."""

from dataclasses import replace

import pytest
from advice_builders import FORTNIGHT_H, engine, evidence, found, refused
from hardware_builders import card, claims_nothing, no_saving_cases, use, work_hour, work_hours
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine import advise
from advisor.rules.tensor_cores_unused import RULE
from catalog import gpu_specs
from core.activity import Activity
from core.evidence import GpuEvidence
from core.finding import Grade

ID = RULE.id
FP32 = {"sm_active_ratio": 0.9, "tensor_active_ratio": 0.0, "fp32_active_ratio": 0.45}
LITTLE = {"busy_ratio": 1.0, "sm_active_ratio": 0.12, "tensor_active_ratio": 0.01, "fp32_active_ratio": 0.02}


def run(*gpus: GpuEvidence):
    return advise(evidence(gpus), rules=(RULE,))


def test_fp32_training_gets_half_of_what_the_data_sheet_allows() -> None:
    (finding,) = found(run(card(work_hours(**FP32))), ID)
    spec = gpu_specs.by_key("H100-SXM5-80GB")
    assert spec is not None
    assert spec.fp32_flops
    assert spec.tf32_flops
    most = 0.5 * (1 - spec.fp32_flops / spec.tf32_flops)
    assert finding.saving.capacity_gpu_h_month is not None
    assert finding.saving.capacity_gpu_h_month.p50 == pytest.approx(730 * most / 2)
    assert finding.saving.capacity_gpu_h_month.p90 == pytest.approx(730 * most)
    assert finding.saving.cash_usd_month is None
    assert finding.grade is Grade.D
    assert any("float32_matmul_precision" in (action.command or "") for action in finding.actions)


def test_a_card_without_tf32_is_told_of_half_precision() -> None:
    (finding,) = found(run(card(work_hours(**FP32), gpu_key="V100-SXM2-32GB")), ID)
    assert not any("float32_matmul" in (action.command or "") for action in finding.actions)
    assert any("float16" in (action.command or "") for action in finding.actions)


def test_an_unknown_card_gets_no_figure() -> None:
    (finding,) = found(run(card(work_hours(**FP32), gpu_key=None)), ID)
    assert finding.saving.is_empty
    assert finding.no_figure


def test_training_on_tensor_cores_is_silent() -> None:
    advice = run(card())
    assert not found(advice, ID)
    assert not refused(advice, ID)


def test_double_precision_is_a_simulation() -> None:
    assert not found(run(card(work_hours(**FP32, fp64_active_ratio=0.3))), ID)


def test_a_program_that_is_no_interpreter_is_refused_by_name() -> None:
    (refusal,) = refused(run(card(work_hours(**FP32), uses=(use("gromacs"),))), ID)
    assert "gromacs" in refusal.why


def test_work_of_nobody_known_is_refused() -> None:
    (refusal,) = refused(run(card(work_hours(**FP32), uses=())), ID)
    assert refusal.missing == ("workload",)


def test_a_pod_is_accepted_and_the_doubt_is_told() -> None:
    (finding,) = found(run(card(work_hours(**FP32), uses=(use("trainer-0", kind="pod", key="uid"),))), ID)
    assert "not told" in finding.confidence


def test_an_engine_is_judged_by_serving_rules() -> None:
    served = evidence([card(work_hours(**FP32))], [engine()])
    assert not found(advise(served, rules=(RULE,)), ID)


def test_high_utilization_with_little_work_is_explained_without_figure() -> None:
    (finding,) = found(run(card(work_hours(activity=Activity.BUSY, **LITTLE))), ID)
    assert finding.state == "high utilization, little work"
    assert finding.saving.is_empty
    assert "12 % active" in finding.because


def test_memory_bound_work_is_not_little_work() -> None:
    busy = work_hours(activity=Activity.MEMORY_BOUND, **LITTLE, dram_active_ratio=0.7)
    assert not found(run(card(busy)), ID)


def test_a_stuck_job_is_left_to_its_own_rule() -> None:
    assert not found(run(card(work_hours(activity=Activity.SPINNING, **LITTLE))), ID)


def test_cards_without_profiling_counters_are_refused_together() -> None:
    blind = work_hours(sm_active_ratio=None, tensor_active_ratio=None, fp32_active_ratio=None)
    (refusal,) = refused(run(card(blind), card(blind, uuid="GPU-b")), ID)
    assert refusal.why.startswith("2 GPUs without sm_active_ratio")


def test_half_an_hour_is_refused() -> None:
    part = replace(
        work_hour(**FP32), covered_s=1500.0, active_s=1500.0, seconds={Activity.COMPUTE_BOUND: 1500.0}
    )
    (refusal,) = refused(run(card([part])), ID)
    assert refusal.missing == ("time",)


def test_gaps_silence_the_rule() -> None:
    advice = run(card([hour for i, hour in enumerate(work_hours(**FP32)) if i % 2]))
    assert not found(advice, ID)
    assert refused(advice, ID)[0].missing == ("samples",)


def test_work_that_has_moved_to_tensor_cores_is_left_alone() -> None:
    assert not found(run(card([*work_hours(300, **FP32), *work_hours(FORTNIGHT_H - 300, start=300)])), ID)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.21, 1.0), st.floats(0.61, 1.0))
def test_the_claim_stays_below_the_hours_it_is_made_on(fp32: float, sm: float) -> None:
    hours = work_hours(24, sm_active_ratio=sm, fp32_active_ratio=fp32, tensor_active_ratio=0.0)
    for finding in found(run(card(hours)), ID):
        assert finding.saving.capacity_gpu_h_month is not None
        assert finding.saving.capacity_gpu_h_month.p10 > 0
        assert finding.saving.capacity_gpu_h_month.p90 < 730


@pytest.mark.parametrize("name", no_saving_cases())
def test_nothing_is_claimed_where_nothing_can_be_saved(name: str) -> None:
    advice = advise(no_saving_cases()[name], rules=(RULE,))
    assert claims_nothing(found(advice, ID))
    assert name != "MIG without utilization" or refused(advice, ID)
