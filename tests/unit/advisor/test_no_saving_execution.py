"""Execution rules where nothing is to be saved: each case yields no saving, and says why or stays silent for a reason."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, PRICE, SETTINGS, engine_hour, evidence, gpu, gpu_hour
from serving_builders import fleet, replica

from advisor.engine import advise
from advisor.rules import (
    host_bound_serving,
    over_sharded,
    phase_split,
    slow_attention,
    speculative_decoding,
    static_batching,
)
from core.activity import Activity
from core.evidence import EngineEvidence, Evidence
from core.finding import Advice

RULES = (
    host_bound_serving.RULE,
    over_sharded.RULE,
    slow_attention.RULE,
    speculative_decoding.RULE,
    phase_split.RULE,
    static_batching.RULE,
)
SPLIT = {**SETTINGS, "tensor_parallel_size": "4"}
STEP_4_S = 0.00504
"""Llama-3.1-8B over four H100 at a batch of 8 and 500 tokens of context, by the formula."""


def judge(evidence_: Evidence) -> Advice:
    return advise(evidence_, RULES)


def split(**more: Any) -> EngineEvidence:
    one = replica(1, **{"settings": SPLIT, "step_s": STEP_4_S, **more})
    return replace(one, gpu_uuids=tuple(f"GPU-1-{rank}" for rank in range(4)))


def assert_no_saving(advice: Advice) -> None:
    for finding in advice.findings:
        assert finding.saving.is_empty, finding.rule_id
        assert (finding.no_figure or "").startswith("No"), finding.rule_id
    assert advice.totals.cash_usd_month is None
    assert advice.totals.capacity_gpu_h_month is None
    assert advice.totals.energy_kwh_month is None


def test_healthy_saturated_engines_are_left_alone() -> None:
    latencies = {"ttft_sum_s": 50.0, "ttft_count": 100.0, "itl_sum_s": 36.0, "itl_count": 1000.0}
    busy: dict[str, Any] = {"running": 256.0, "kv_used": 0.32, "step_s": 0.036, **latencies}
    advice = judge(fleet(*(replica(i, **busy) for i in (1, 2, 3))))
    assert not advice.findings
    assert not advice.not_evaluated


def test_a_reserved_node_saves_capacity_at_most() -> None:
    advice = judge(fleet(split(), price=replace(PRICE, billing="reserved", gpus_per_unit=8)))
    (wide,) = [each for each in advice.findings if not each.saving.is_empty]
    assert wide.rule_id == "over-sharded"
    assert wide.saving.cash_usd_month is None
    assert "costs the same" in (wide.no_figure or "")
    assert advice.totals.cash_usd_month is None


def test_a_standby_without_requests_is_not_judged() -> None:
    quiet = [
        engine_hour(i, kv_used=0.0, busy_s=0.0, generated_tokens=0.0, busy_generated_tokens=0.0)
        for i in range(FORTNIGHT_H)
    ]
    advice = judge(fleet(split(hours=quiet)))
    assert_no_saving(advice)
    assert not advice.findings


def test_a_counter_reset_claims_nothing_new() -> None:
    hours = list(replica(1).hours)
    hours[100] = replace(
        hours[100], generated_tokens=None, busy_generated_tokens=None, prompt_tokens=None, profile={}
    )
    advice = judge(fleet(replica(1, hours)))
    assert_no_saving(advice)
    assert {each.rule_id for each in advice.findings} == {"speculative-decoding"}


def test_a_gap_of_twenty_minutes_claims_nothing_new() -> None:
    hours = list(replica(1).hours)
    hours[100] = engine_hour(100, kv_used=0.01, seconds=2400.0)
    before, after = judge(fleet(replica(1))), judge(fleet(replica(1, hours)))
    assert [each.fingerprint for each in after.findings] == [each.fingerprint for each in before.findings]
    assert_no_saving(after)


def test_half_of_the_samples_missing_silences_every_rule() -> None:
    whole = split()
    advice = judge(fleet(replace(whole, hours=whole.hours[::2])))
    assert not advice.findings
    assert {("samples",)} == {item.missing for item in advice.not_evaluated}


def test_a_mig_slice_without_utilization_is_refused() -> None:
    hours = [gpu_hour(i, Activity.UNKNOWN) for i in range(FORTNIGHT_H)]
    engine = replica(1, uuid="MIG-1", step_s=0.020)
    advice = judge(evidence([gpu(hours, uuid="MIG-1")], [engine]))
    assert not advice.findings
    assert all(
        "bandwidth of a MIG slice" in item.missing
        for item in advice.not_evaluated
        if item.rule_id != "phase-split"
    )
    assert {item.rule_id for item in advice.not_evaluated} >= {"host-bound-serving", "speculative-decoding"}


def test_halved_traffic_is_no_gain_of_anybody() -> None:
    """The batch halves in the last days: no step got slower, no split got too wide that was right before."""
    hours = [
        engine_hour(i, running=64.0, kv_used=0.08, step_s=0.0135)
        if i < 250
        else engine_hour(i, running=32.0, kv_used=0.04, step_s=0.0105)
        for i in range(FORTNIGHT_H)
    ]
    advice = judge(fleet(replica(1, hours)))
    assert not advice.findings
    assert_no_saving(advice)


@pytest.mark.parametrize("count", [2, 12])
def test_hours_of_data_make_no_money(count: int) -> None:
    advice = judge(fleet(split(count=count)))
    assert_no_saving(advice)
