"""R13: only the part of the cache beyond 1.3 times its highest use, and never money for memory."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, SETTINGS, engine_hour, evidence, gpu, histogram
from hypothesis import given
from hypothesis import strategies as st
from serving_builders import fleet, judge, replica

from advisor.estimators import kv_need
from advisor.rules.kv_overprovisioned import RULE, KvOverprovisionedLimits
from core.evidence import EngineEvidence
from core.finding import Finding, Grade, NotEvaluated
from core.units import GIB

QUIET: dict[str, Any] = {"running": 64.0, "kv_used": 0.1, "step_s": 0.012}


def run(
    *engines: EngineEvidence, limits: KvOverprovisionedLimits | None = None
) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, fleet(*engines), limits)


def test_the_need_is_weights_and_1_3_times_the_most_used_to_the_byte() -> None:
    """bf16 8.03 B; 0.13 of 400,000 tokens of 131,072 B; 2, 3.5 and 5 GB beside."""
    (finding,), none = run(replica(1, **QUIET))
    assert not none
    weights, token = 2 * 8_030_261_248, 131_072
    need = finding.evidence
    assert need["needed_pool_tokens"] == pytest.approx(52_000)
    for name, beside in (("p10", 2e9), ("p50", 3.5e9), ("p90", 5e9)):
        assert need[f"needed_bytes_{name}"] == pytest.approx(weights + 52_000 * token + beside)
    assert need["excess_bytes_p50"] == pytest.approx(348_000 * token)
    assert need["excess_bytes_p10"] <= need["excess_bytes_p50"] <= need["excess_bytes_p90"]
    assert finding.saving.is_empty
    assert (finding.no_figure or "").startswith("No figure, because")
    assert finding.grade is Grade.B


def test_the_share_still_holds_the_need() -> None:
    """Excess 348,000 tokens = 45.6 GB of 85.9: 0.9 − 0.53 = 0.37, rounded up."""
    (finding,), _ = run(replica(1, settings={**SETTINGS, "gpu_memory_utilization": "0.9"}, **QUIET))
    assert finding.actions[0].command is not None
    assert finding.actions[0].command.endswith("--gpu-memory-utilization 0.40")
    assert finding.evidence["needed_bytes_p50"] <= 0.40 * 80 * GIB


def test_the_busiest_hour_of_two_weeks_decides() -> None:
    hours = [engine_hour(i, **{**QUIET, "kv_used": 0.35 if i == 40 else 0.1}) for i in range(FORTNIGHT_H)]
    assert run(replica(1, hours)) == ([], [])


def test_a_longest_context_that_the_cache_must_hold_is_kept() -> None:
    settings = {**SETTINGS, "max_model_len": "131072"}
    (finding,), _ = run(replica(1, settings=settings, **QUIET))
    assert finding.evidence["needed_pool_tokens"] == 131_072
    tight = {**SETTINGS, "max_model_len": "390000"}
    assert run(replica(1, settings=tight, **QUIET)) == ([], [])


def test_prefixes_in_the_free_part_are_a_use() -> None:
    found, (refusal,) = run(replica(1, cached_prompt_tokens=1e7, **QUIET))
    assert not found
    assert refusal.missing == ("size of the prefix cache",)
    on = {**SETTINGS, "enable_prefix_caching": "True"}
    assert run(replica(1, settings=on, **QUIET))[1][0].missing == ("cached_prompt_tokens",)
    assert len(run(replica(1, settings=on, cached_prompt_tokens=0.0, **QUIET))[0]) == 1


def test_a_batch_limit_that_holds_requests_back_comes_first() -> None:
    settings = {**SETTINGS, "max_num_seqs": "64"}
    found, (refusal,) = run(replica(1, settings=settings, waiting=20.0, **QUIET))
    assert not found
    assert "raise it first" in refusal.why


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({"model": "in-house-9b"}, ("model architecture",)),
        ({"model": "google/gemma-3-27b-it"}, ("a memory model of sliding windows",)),
        ({"settings": {"tensor_parallel_size": "1"}}, ("KV pool size",)),
        ({"count": 168}, ("time",)),
    ],
)
def test_what_is_not_known_is_refused(more: dict[str, Any], missing: tuple[str, ...]) -> None:
    found, (refusal,) = run(replica(1, **QUIET, **more))
    assert not found
    assert refusal.missing == missing


def test_use_that_is_not_published_is_refused_and_reserved_memory_is_no_evidence() -> None:
    base = replica(1, **QUIET)
    blind = replace(base, hours=tuple(replace(hour, kv_used=histogram()) for hour in base.hours))
    assert run(blind)[1][0].missing == ("kv_used_ratio",)


def test_gaps_and_silence_are_refused() -> None:
    base = replica(1, **QUIET)
    assert run(replace(base, hours=base.hours[::2]))[1][0].missing == ("samples",)
    gone = judge(RULE, evidence([gpu(uuid="GPU-1", host="node-1")], [replace(base, hours=base.hours[:-96])]))
    assert gone[1][0].missing == ("recent samples",)


def test_unknown_weights_leave_the_need_unsaid_and_the_grade_lower() -> None:
    blind = {key: value for key, value in SETTINGS.items() if key not in {"quantization", "dtype"}}
    case = fleet(replica(1, settings=blind, **QUIET))
    case = replace(
        case,
        gpus=tuple(
            replace(each, hours=tuple(replace(h, memory_used_bytes=None) for h in each.hours))
            for each in case.gpus
        ),
    )
    (finding,), _ = judge(RULE, case)
    assert "needed_bytes_p50" not in finding.evidence
    assert finding.grade is Grade.C


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("sglang", {"mem_fraction_static": "0.88"}, "--mem-fraction-static 0.35"),
        ("tgi", {}, "--cuda-memory-fraction 0.50"),
        ("trtllm", {}, "--kv_cache_free_gpu_memory_fraction 0.15"),
        ("llamacpp", {}, "-c 52224"),
    ],
)
def test_every_engine_gets_its_own_flag(kind: str, settings: dict[str, str], words: str) -> None:
    (finding,), _ = run(replica(1, kind=kind, settings={**SETTINGS, **settings}, **QUIET))
    assert (finding.actions[0].command or "").endswith(words)


def test_a_latent_cache_is_kept_on_every_rank() -> None:
    assert kv_need.kv_copies(kv_heads=1, is_latent=True, tensor_parallel=8) == 8
    assert kv_need.kv_copies(kv_heads=8, is_latent=False, tensor_parallel=8) == 1
    assert kv_need.kv_copies(kv_heads=4, is_latent=False, tensor_parallel=8) == 2


@given(st.floats(1e3, 1e7), st.floats(0, 1), st.floats(0, 1), st.floats(0, 2e5))
def test_the_need_grows_with_the_use_and_never_beyond_the_pool(
    pool: float, used: float, more: float, longest: float
) -> None:
    low, high = (
        kv_need.needed_tokens(pool_tokens=pool, kv_used_max_ratio=min(1.0, share), longest_tokens=longest)
        for share in (used, used + more)
    )
    assert 0 <= low <= high <= pool
