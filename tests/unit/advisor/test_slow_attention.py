"""R29 and its estimator: only attention's share gets faster, and modern engines are left alone."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import SETTINGS, engine_hours, evidence, gpu, use
from hypothesis import given
from hypothesis import strategies as st
from serving_builders import fleet, judge, replica

from advisor.estimators import attention_share
from advisor.rules.slow_attention import RULE, SlowAttentionLimits
from catalog import llm_models
from core.evidence import EngineEvidence
from core.finding import Finding, Grade, NotEvaluated

PLAIN = {**SETTINGS, "attention_backend": "torch_native"}
LLAMA = llm_models.resolve("llama-3.1-8b")
CONTEXT = 8000.0


def long(**more: Any) -> EngineEvidence:
    """8 requests of 8,000 tokens in a pool of 400,000."""
    return replica(1, **{"kv_used": 0.16, "step_s": 0.0102, "settings": PLAIN, **more})


def run(
    engine: EngineEvidence, limits: SlowAttentionLimits | None = None
) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, fleet(engine), limits)


def test_decode_attention_by_hand() -> None:
    seconds = attention_share.decode_s(
        batch=8,
        context_tokens=8000,
        kv_bytes_per_token=131_072,
        tensor_parallel=1,
        bandwidth_bytes_per_s=3.35e12,
    )
    assert seconds == pytest.approx(8 * 8000 * 131_072 / 3.35e12)


def test_prefill_attention_by_hand() -> None:
    """Each prompt token looks back on n/2: 4·(n/2)·heads·d per layer."""
    assert LLAMA is not None
    seconds = attention_share.prefill_s(
        LLAMA, batch=8, prompt_tokens=4000, prompt_per_generated=2, tensor_parallel=1, flops=989e12
    )
    assert seconds == pytest.approx(1.35 * 8 * 2 * 4 * 2000 * 32 * 32 * 128 / 989e12)


def test_local_layers_look_back_on_their_window_only() -> None:
    assert LLAMA is not None
    local = replace(LLAMA, sliding_window=512, sliding_layers=32)
    more = {"batch": 1.0, "prompt_tokens": 8000.0, "prompt_per_generated": 1.0, "tensor_parallel": 1}
    whole = attention_share.prefill_s(LLAMA, **more, flops=1e15)  # type: ignore[arg-type]
    part = attention_share.prefill_s(local, **more, flops=1e15)  # type: ignore[arg-type]
    assert part == pytest.approx(whole * 512 / 4000)


def test_amdahl() -> None:
    assert attention_share.end_to_end(0.5, 2.0) == pytest.approx(1 / 0.75)
    assert attention_share.gain(0.0).p90 == 1
    assert attention_share.share(1.0, 0.0) is None


@given(st.floats(0, 0.95), st.floats(1, 100))
def test_the_gain_never_exceeds_what_attention_leaves(share: float, speedup: float) -> None:
    gain = attention_share.end_to_end(share, speedup)
    assert 1 - 1e-12 <= gain <= 1 / (1 - share) + 1e-9
    assert gain <= speedup + 1e-9


@given(st.floats(0, 10), st.floats(1e-6, 10))
def test_a_share_is_a_share(attention_s: float, step_s: float) -> None:
    found = attention_share.share(attention_s, step_s)
    assert found is not None
    assert 0 <= found <= 0.95


def test_a_plain_kernel_at_long_context_gains_attentions_share_only() -> None:
    (finding,), none = run(long())
    assert not none
    assert LLAMA is not None
    decode = 8 * CONTEXT * 131_072 / 3.35e12
    prompt = CONTEXT * 1 / 1.5
    prefill = 1.35 * 8 * 4 * (prompt / 2) * 32 * 32 * 128 / 989e12
    share = (decode + prefill) / 0.0102
    assert finding.evidence["attention_share_ratio"] == pytest.approx(share, abs=1e-5)
    assert finding.evidence["gain_p50"] == pytest.approx(1 / (1 - share * 2 / 3), abs=1e-5)
    assert finding.saving.is_empty
    assert (finding.no_figure or "").startswith("No figure, because")
    assert finding.grade is Grade.D
    shares = [value for _, value in finding.chart["series"]]
    assert shares == sorted(shares)
    assert shares[-1] < 1


def test_llama_cpp_gets_its_own_flag() -> None:
    off = {**SETTINGS, "flash_attn": "off"}
    (finding,), _ = run(long(kind="llamacpp", settings=off))
    assert finding.actions[0].command == "llama-server -m meta-llama/Llama-3.1-8B-Instruct -fa on"


@pytest.mark.parametrize(
    "settings_",
    [
        SETTINGS,
        {**SETTINGS, "flash_attn": "auto"},
        {**SETTINGS, "flash_attn": "on"},
        {**SETTINGS, "attention_backend": "FLASHINFER"},
    ],
    ids=["default", "auto", "on", "flashinfer"],
)
def test_modern_engines_are_left_alone(settings_: dict[str, str]) -> None:
    assert run(long(settings=settings_)) == ([], [])


def test_short_contexts_are_silent() -> None:
    assert run(replica(1, settings=PLAIN)) == ([], [])


def test_a_share_too_small_for_a_restart_is_silent() -> None:
    assert run(long(running=1.0, kv_used=0.0075, step_s=0.0075)) == ([], [])


def test_cards_that_cannot_run_it_are_silent() -> None:
    engine = long()
    old = gpu(uuid="GPU-1", gpu_key="T4")
    found, none = judge(RULE, evidence([old], [engine]))
    assert (found, none) == ([], [])


def test_what_is_not_known_is_refused() -> None:
    unknown = long(model="acme/secret-7")
    assert "model architecture" in run(unknown)[1][0].missing
    no_pool = {"attention_backend": "torch_native", "tensor_parallel_size": "1"}
    assert run(long(settings=no_pool))[1][0].missing == ("kv_used_ratio and KV pool size",)
    no_card = gpu(uuid="GPU-1", gpu_key=None)
    assert judge(RULE, evidence([no_card], [long()]))[1][0].missing == ("GPU model in the catalogue",)


def test_thin_data_and_gaps_are_refused() -> None:
    brief = replica(1, engine_hours(1, kv_used=0.16, seconds=300.0), settings=PLAIN)
    assert run(brief)[1][0].missing == ("busy time",)
    whole = long()
    assert run(replace(whole, hours=whole.hours[::2]))[1][0].missing == ("samples",)


def test_python_programs_beside_engines_are_named_as_unseen() -> None:
    other = gpu(uuid="GPU-2", uses=(use(),))
    healthy = gpu(uuid="GPU-1")
    found, (refusal,) = judge(RULE, evidence([healthy, other], [replica(1)]))
    assert not found
    assert refusal.subject.kind == "fleet"
    assert "1 GPU works" in refusal.why
    assert "attention kernel" in refusal.missing


def test_no_engine_is_said() -> None:
    assert judge(RULE, evidence([gpu()]))[1][0].missing == ("engine metrics",)
