"""Serving rules where nothing is to be saved: each case yields no saving, and says why or stays silent for a reason."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, PRICE, SETTINGS, engine_hour, gpu, histogram
from serving_builders import fleet, replica

from advisor.engine import advise
from advisor.rules import (
    kv_cache_precision,
    kv_overprovisioned,
    kv_thrash,
    no_prefix_cache,
    overload,
    quantization_candidate,
    small_batch,
    too_many_replicas,
)
from core.evidence import EngineEvidence, Evidence
from core.finding import Advice

RULES = (
    too_many_replicas.RULE,
    overload.RULE,
    kv_cache_precision.RULE,
    kv_thrash.RULE,
    kv_overprovisioned.RULE,
    no_prefix_cache.RULE,
)
LIMITED = {**SETTINGS, "max_num_seqs": "256", "enable_prefix_caching": "True"}
SATURATED: dict[str, Any] = {"running": 240.0, "kv_used": 0.75, "step_s": 0.03, "settings": LIMITED}


def judge(evidence: Evidence) -> Advice:
    return advise(evidence, RULES)


def assert_no_saving(advice: Advice) -> None:
    for finding in advice.findings:
        assert finding.saving.is_empty, finding.rule_id
        assert finding.no_figure, finding.rule_id
    assert advice.totals.cash_usd_month is None
    assert advice.totals.capacity_gpu_h_month is None


def test_healthy_saturated_replicas_are_left_alone() -> None:
    advice = judge(fleet(*(replica(i, cached_prompt_tokens=1e7, **SATURATED) for i in (1, 2, 3))))
    assert not advice.findings
    assert not advice.not_evaluated


def test_replicas_that_stay_their_number_save_nothing() -> None:
    advice = judge(fleet(*(replica(i, waiting=60.0, **SATURATED) for i in (1, 2))))
    assert advice.findings
    assert_no_saving(advice)


def test_reserved_gpus_save_no_cash() -> None:
    pair = [replica(i, settings=LIMITED) for i in (1, 2)]
    advice = judge(fleet(*pair, price=replace(PRICE, billing="reserved")))
    assert advice.totals.cash_usd_month is None
    told = [finding for finding in advice.findings if finding.saving.capacity_gpu_h_month is not None]
    assert told
    assert all("reserved" in (finding.no_figure or "") for finding in told)


def test_a_standby_without_requests_is_not_offered() -> None:
    """Two busy replicas that are needed, one kept for a failure: no rule of these takes it."""
    idle = [
        replace(
            engine_hour(i), busy_s=0.0, running=histogram(), waiting=histogram(), kv_used=histogram(), profile={},
            generated_tokens=0.0, busy_generated_tokens=0.0, prompt_tokens=0.0,
        )
        for i in range(FORTNIGHT_H)
    ]  # fmt: skip
    advice = judge(fleet(*(replica(i, **SATURATED) for i in (1, 2)), replica(3, idle, settings=LIMITED)))
    assert_no_saving(advice)
    assert not [f for f in advice.findings if "GPU-3" in f.gpu_uuids]


def test_the_hour_of_a_counter_reset_changes_nothing() -> None:
    """A restart: the hour's counters are unknown, not 0 and not negative."""
    whole = [replica(i, **SATURATED) for i in (1, 2)]
    reset = replace(
        whole[0].hours[100], generated_tokens=None, busy_generated_tokens=None, prompt_tokens=None,
        preemption_count=None, profile={},
    )  # fmt: skip
    broken = replace(whole[0], hours=(*whole[0].hours[:100], reset, *whole[0].hours[101:]))
    assert_no_saving(judge(fleet(broken, whole[1])))


def test_a_gap_of_twenty_minutes_changes_nothing() -> None:
    short = engine_hour(100, running=240.0, kv_used=0.75, step_s=0.03, seconds=2400.0)
    one = replica(1, **SATURATED)
    gapped = replace(
        one, hours=(*one.hours[:100], replace(short, engine=one.identity.engine), *one.hours[101:])
    )
    assert_no_saving(judge(fleet(gapped, replica(2, **SATURATED))))


def test_mig_slices_without_bandwidth_are_refused() -> None:
    pair = [replica(i, uuid=f"MIG-{i}", settings=LIMITED) for i in (1, 2)]
    advice = judge(fleet(*pair))
    assert_no_saving(advice)
    (refusal,) = [item for item in advice.not_evaluated if item.rule_id == "too-many-replicas"]
    assert "bandwidth of a MIG slice" in refusal.missing


def halved(index: int) -> EngineEvidence:
    """Saturated for twelve days, then half of the traffic."""
    hours = [
        engine_hour(i, running=240.0, kv_used=0.75, step_s=0.03)
        if i < FORTNIGHT_H - 48
        else engine_hour(i, running=100.0, kv_used=0.3, step_s=0.02)
        for i in range(FORTNIGHT_H)
    ]
    return replica(index, hours, settings=LIMITED)


def test_traffic_that_halved_two_days_ago_frees_no_replica() -> None:
    assert_no_saving(judge(fleet(halved(1), halved(2))))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_an_empty_fleet_is_refused_and_never_silent(rule: Any) -> None:
    advice = advise(fleet(replica(1)), [rule])
    without = replace(fleet(replica(1)), engines=())
    assert advise(without, [rule]).not_evaluated[0].missing == ("engine metrics",)
    assert advice.totals.spend_usd_month is not None


def test_the_parts_never_save_more_than_the_whole() -> None:
    crowd = [replica(i, settings=LIMITED) for i in range(1, 6)]
    advice = advise(fleet(*crowd), (small_batch.RULE, quantization_candidate.RULE, *RULES))
    cash, spend = advice.totals.cash_usd_month, advice.totals.spend_usd_month
    assert cash is not None
    assert spend is not None
    assert cash.p90 <= spend
    assert cash.p50 <= 4 * 1825.0 + 1e-6, "at least one replica stays"


def test_a_gpu_without_price_frees_capacity_and_says_so() -> None:
    case = fleet(*(replica(i, settings=LIMITED) for i in (1, 2)))
    bare = replace(case, gpus=tuple(replace(each, price=None) for each in case.gpus))
    (finding,) = [f for f in judge(bare).findings if f.rule_id == "too-many-replicas"]
    assert finding.saving.cash_usd_month is None
    assert finding.saving.capacity_gpu_h_month is not None
    assert "price" in (finding.no_figure or "")
    assert gpu().price is not None
