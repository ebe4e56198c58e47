"""R18: unequal ranks of one job fire with half of an upper bound; stages, mixed cards and phases are refused."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, engine, evidence, found, gpu, refused
from hardware_builders import card, claims_nothing, job, no_saving_cases, use, work_hour, work_hours
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine import advise
from advisor.rules.gpu_imbalance import RULE
from core.activity import Activity
from core.evidence import GpuEvidence
from core.finding import Grade
from core.units import GIB

ID = RULE.id


def ranks(*busy: float, count: int = FORTNIGHT_H, start: int = 0, **more: Any) -> list[GpuEvidence]:
    return job([work_hours(count, start=start, busy_ratio=each, **more) for each in busy])


def run(gpus: list[GpuEvidence]):
    return advise(evidence(gpus), rules=(RULE,))


def test_unequal_ranks_get_half_of_what_the_others_wait() -> None:
    """Mean 0.7 over highest 1.0: 30 % of 4 × 730 h at most."""
    (finding,) = found(run(ranks(1.0, 0.8, 0.6, 0.4)), ID)
    assert finding.subject.kind == "workload"
    assert finding.state == "unequal ranks"
    assert finding.saving.capacity_gpu_h_month is not None
    assert finding.saving.capacity_gpu_h_month.p50 == pytest.approx(438.0)
    assert finding.saving.capacity_gpu_h_month.p90 == pytest.approx(876.0)
    assert finding.saving.cash_usd_month is None
    assert finding.grade is Grade.D
    assert len(finding.gpu_uuids) == 4


def test_one_rank_that_does_more_gets_its_own_advice() -> None:
    (finding,) = found(run(ranks(1.0, 0.6, 0.6, 0.62)), ID)
    assert finding.state == "one rank does more"
    assert any("evaluation" in action.text for action in finding.actions)


def test_equal_ranks_are_silent() -> None:
    advice = run(ranks(0.95, 0.9, 0.92, 0.88))
    assert not found(advice, ID)
    assert not refused(advice, ID)


def test_power_alone_tells_and_claims_nothing() -> None:
    pair = job([work_hours(power_w=650.0, busy_ratio=1.0), work_hours(power_w=350.0, busy_ratio=1.0)])
    (finding,) = found(run(pair), ID)
    assert finding.cause == "power"
    assert finding.saving.is_empty
    assert "power does not tell" in (finding.no_figure or "")


def test_ranks_with_unequal_memory_may_be_stages() -> None:
    pair = job(
        [
            work_hours(busy_ratio=1.0, memory_used_bytes=70.0 * GIB),
            work_hours(busy_ratio=0.5, memory_used_bytes=40.0 * GIB),
        ]
    )
    assert "stages of a pipeline" in refused(run(pair), ID)[0].why


def test_cards_of_different_models_differ_by_themselves() -> None:
    pair = ranks(1.0, 0.5)
    mixed = [pair[0], replace(pair[1], gpu_key="A100-SXM4-80GB")]
    assert refused(run(mixed), ID)[0].missing == ("GPUs of one model",)


def test_a_phase_is_refused() -> None:
    even = work_hours(FORTNIGHT_H - 6, busy_ratio=0.9)
    late = [work_hours(6, start=FORTNIGHT_H - 6, busy_ratio=each) for each in (0.9, 0.4)]
    advice = run(job([[*even, *late[0]], [*even, *late[1]]]))
    assert not found(advice, ID)
    assert refused(advice, ID)[0].missing == ("steady imbalance",)


def test_a_job_that_has_been_balanced_is_left_alone() -> None:
    rest = work_hours(FORTNIGHT_H - 250, start=250, busy_ratio=0.9)
    advice = run(job([[*work_hours(250, busy_ratio=each), *rest] for each in (0.9, 0.4)]))
    assert not found(advice, ID)
    assert not refused(advice, ID)


def test_gpus_of_two_jobs_are_not_compared() -> None:
    one = card(work_hours(busy_ratio=1.0))
    two = card(work_hours(busy_ratio=0.4), uuid="GPU-b", uses=(use("other.py", key="9:1"),))
    assert not found(run([one, two]), ID)


def test_a_shared_gpu_is_no_rank() -> None:
    pair = [replace(each, uses=(replace(each.uses[0], shared=True),)) for each in ranks(1.0, 0.4)]
    assert not found(run(pair), ID)


def test_processes_of_one_name_and_start_are_a_job_and_the_doubt_is_told() -> None:
    pair = [
        card(work_hours(busy_ratio=busy), uuid=f"GPU-{rank}", uses=(use(key=f"{rank}:0"),))
        for rank, busy in enumerate((1.0, 0.5))
    ]
    (finding,) = found(run(pair), ID)
    assert "read from their name" in finding.confidence


def test_unknown_programs_are_refused_for_all_at_once() -> None:
    pair = [gpu(work_hours(busy_ratio=busy), uuid=f"GPU-{busy}") for busy in (1.0, 0.4)]
    (refusal,) = refused(run(pair), ID)
    assert refusal.missing == ("workload",)


def test_engines_are_judged_by_serving_rules() -> None:
    pair = ranks(1.0, 0.4)
    serving = engine(uuid=pair[0].gpu_uuid)
    assert not found(advise(evidence(pair, [serving]), rules=(RULE,)), ID)


def test_half_an_hour_is_refused() -> None:
    parts = [
        [
            replace(
                work_hour(busy_ratio=busy),
                covered_s=1500.0,
                active_s=1500.0,
                seconds={Activity.COMPUTE_BOUND: 1500.0},
            )
        ]
        for busy in (1.0, 0.4)
    ]
    assert refused(run(job(parts)), ID)[0].missing == ("time",)


def test_gaps_silence_the_rule() -> None:
    holed = [[h for i, h in enumerate(work_hours(busy_ratio=busy)) if i % 2] for busy in (1.0, 0.4)]
    advice = run(job(holed))
    assert not found(advice, ID)
    assert refused(advice, ID)[0].missing == ("samples",)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.2, 1.0), min_size=2, max_size=5))
def test_the_claim_never_exceeds_one_minus_mean_over_highest(busy: list[float]) -> None:
    for finding in found(run(ranks(*busy, count=24)), ID):
        figure = finding.saving.capacity_gpu_h_month
        assert figure is not None
        bound = (1 - sum(busy) / len(busy) / max(busy)) * len(busy) * 730
        assert 0 <= figure.p10 <= figure.p50 <= figure.p90 <= bound + 1e-6


@pytest.mark.parametrize("name", no_saving_cases())
def test_nothing_is_claimed_where_nothing_can_be_saved(name: str) -> None:
    advice = advise(no_saving_cases()[name], rules=(RULE,))
    assert claims_nothing(found(advice, ID))
    assert name != "MIG without utilization" or refused(advice, ID)
