"""R14: prefill times what is shared; where nobody knows what prompts share, it refuses."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, SETTINGS, engine_hour, evidence, gpu
from hypothesis import given
from hypothesis import strategies as st
from serving_builders import fleet, judge, replica

from advisor.estimators import prefix_cache
from advisor.estimators.decode_step import DecodeStep
from advisor.rules.no_prefix_cache import RULE, NoPrefixCacheLimits
from core.evidence import EngineEvidence
from core.finding import Finding, NotEvaluated, Range

PROMPTS: dict[str, Any] = {"running": 64.0, "kv_used": 0.2, "step_s": 0.045, "prompt_per_generated": 10.0}
"""Ten prompt tokens for one generated: half of a step computes prompts."""
OFF = {**SETTINGS, "enable_prefix_caching": "False"}
TOLD = NoPrefixCacheLimits(shared_prompt_ratio=0.6)


def run(
    *engines: EngineEvidence, limits: NoPrefixCacheLimits | None = None
) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, fleet(*engines), limits)


def cached(index: int, share: float, **more: Any) -> EngineEvidence:
    """A replica that finds ``share`` of its prompt tokens."""
    hour = engine_hour(**PROMPTS)
    assert hour.prompt_tokens is not None
    return replica(index, cached_prompt_tokens=share * hour.prompt_tokens, **PROMPTS, **more)


def test_off_without_knowing_what_prompts_share_is_refused() -> None:
    found, (refusal,) = run(replica(1, settings=OFF, **PROMPTS))
    assert not found
    assert refusal.missing == ("how much prompts share",)
    assert "one replica for a busy hour" in refusal.why


def test_a_low_hit_ratio_alone_may_be_unique_prompts() -> None:
    found, (refusal,) = run(cached(1, 0.05))
    assert not found
    assert refusal.missing == ("how much prompts share",)


def test_told_what_prompts_share_it_follows_the_formula() -> None:
    (finding,), none = run(replica(1, settings=OFF, **PROMPTS), limits=TOLD)
    assert not none
    fixed = 1.08 * 2 * 8_030_261_248 / 3.35e12 + 2.0e-3
    flop = 1.35 * 2 * 8_030_261_248 * 11 / 989e12
    each = 0.2 * 400_000 / 64 * 131_072 / 3.35e12 + 42e-6 + flop
    share = 64 * flop * 10 / 11 / (fixed + 64 * each)
    facts = finding.evidence
    assert facts["prefill_share_p50"] == pytest.approx(share, rel=1e-5)
    assert facts["time_saved_ratio_p50"] == pytest.approx(0.6 * share, rel=1e-5)
    assert facts["time_saved_ratio_p10"] == pytest.approx(0.8 * share * 0.3, rel=1e-5)
    assert facts["gain_p50"] == pytest.approx(1 / (1 - 0.6 * share), rel=1e-5)
    assert finding.cause == "off"
    assert finding.saving.is_empty
    assert (finding.no_figure or "").startswith("No figure, because one replica")
    assert "--enable-prefix-caching" in (finding.actions[0].command or "")


def test_a_replica_that_finds_its_prompts_shows_what_the_other_could() -> None:
    (finding,), none = run(cached(1, 0.7), replica(2, settings=OFF, **PROMPTS))
    assert not none
    assert finding.subject.id == "node-2:8000/0"
    assert finding.evidence["expected_hit_ratio"] == pytest.approx(0.7)
    assert "node-1" in finding.because


def test_prompts_that_are_found_are_left_alone() -> None:
    assert run(cached(1, 0.25)) == ([], [])
    assert run(cached(1, 0.1), limits=NoPrefixCacheLimits(shared_prompt_ratio=0.1)) == ([], [])


def test_missed_prefixes_are_a_matter_of_routing() -> None:
    (finding,), _ = run(cached(1, 0.7), cached(2, 0.05))
    assert finding.cause == "missed"
    assert "same replica" in finding.actions[0].text
    assert finding.actions[0].command is None


def test_short_prompts_cost_too_little_to_matter() -> None:
    assert run(replica(1, settings=OFF, running=8.0), limits=TOLD) == ([], [])


def test_many_replicas_save_whole_gpus_to_the_cent() -> None:
    found, _ = run(*(replica(i, settings=OFF, **PROMPTS) for i in range(1, 13)), limits=TOLD)
    saved = [f.saving.cash_usd_month for f in found if f.saving.cash_usd_month is not None]
    then = found[0].evidence["replicas_then"]
    assert 12 - then == 3
    assert len(saved) == 1, "the others fall away at the middle of the range, not at its low end"
    assert [round(each.p50, 2) for each in saved] == [1825.00] * len(saved)


def test_two_replicas_stay_two() -> None:
    found, _ = run(*(replica(i, settings=OFF, **PROMPTS) for i in (1, 2)), limits=TOLD)
    assert len(found) == 2
    assert all(finding.saving.is_empty for finding in found)
    assert "2 replicas stay 2" in (found[0].no_figure or "")


def test_nothing_published_is_refused_with_the_names() -> None:
    found, (refusal,) = run(replica(1, **PROMPTS), limits=TOLD)
    assert not found
    assert refusal.missing == ("cached_prompt_tokens", "enable_prefix_caching")


def test_an_unknown_model_is_refused() -> None:
    found, (refusal,) = run(replica(1, settings=OFF, model="in-house-9b", **PROMPTS), limits=TOLD)
    assert not found
    assert "model architecture" in refusal.missing


def test_thin_short_and_silent_data_are_refused() -> None:
    base = replica(1, settings=OFF, **PROMPTS)
    assert run(replace(base, hours=base.hours[::2]), limits=TOLD)[1][0].missing == ("samples",)
    short = replica(1, settings=OFF, count=1, seconds=240.0, **PROMPTS)
    assert run(short, limits=TOLD)[1][0].missing == ("busy time",)
    gone = replica(1, settings=OFF, count=FORTNIGHT_H - 96, **PROMPTS)
    silent = judge(RULE, evidence([gpu(uuid="GPU-1", host="node-1")], [gone]), TOLD)
    assert silent[1][0].missing == ("recent samples",)


def test_sharing_a_gpu_is_refused() -> None:
    pair = [replica(i, settings=OFF, uuid="GPU-1", name=f"node-1:800{i}/0", **PROMPTS) for i in (1, 2)]
    assert {refusal.missing for refusal in run(*pair, limits=TOLD)[1]} == {("a GPU of its own",)}


def test_the_hit_ratio_of_no_prompts_is_unknown() -> None:
    assert prefix_cache.hit_ratio(None, 100.0) is None
    assert prefix_cache.hit_ratio(5.0, 0.0) is None
    assert prefix_cache.hit_ratio(50.0, 200.0) == 0.25


@given(st.floats(1e-3, 0.1), st.floats(0, 1e-3), st.floats(1e-6, 1e-3), st.floats(1, 500), st.floats(0, 100))
def test_shares_stay_shares_and_the_gain_is_at_least_none(
    fixed: float, rest: float, flop: float, batch: float, ratio: float
) -> None:
    step = DecodeStep(fixed, rest + flop, "formula", 0.2, flop_s=flop)
    share = prefix_cache.prefill_share(step, batch, ratio)
    assert share is not None
    assert 0 <= share.p10 <= share.p50 <= share.p90 <= 1
    low, high = (
        prefix_cache.speedup(prefix_cache.time_saved(share, Range(hit, hit, hit))) for hit in (0.2, 0.8)
    )
    assert 1 <= low.p50 <= high.p50 <= 10
