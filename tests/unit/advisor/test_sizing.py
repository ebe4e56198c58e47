"""GPUs for a load: known answers, laws, and where there is no answer."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.estimators import decode_step
from advisor.estimators.sizing import Sized, Speed, size
from advisor.estimators.sizing_hardware import form_of
from advisor.estimators.sizing_load import Load
from advisor.estimators.sizing_replica import sizes
from catalog import gpu_specs, llm_models
from catalog.gpu_specs import GpuSpec
from catalog.llm_models import LlmSpec

MODELS = ("llama-3.1-8b", "qwen3-32b", "mixtral-8x7b", "deepseek-v2-lite", "gemma-3-27b", "falcon-7b")
GPUS = ("H100-SXM5-80GB", "A100-PCIE-40GB", "L4", "B200-SXM-180GB", "MI300X")


def llm(name: str) -> LlmSpec:
    found = llm_models.resolve(name)
    assert found is not None
    return found


def gpu(key: str) -> GpuSpec:
    found = gpu_specs.by_key(key)
    assert found is not None
    return found


def load(model: str = "llama-3.1-8b", form: str = "bf16", **more: object) -> Load:
    known = form_of(form)
    assert known is not None
    return replace(Load(llm(model), known, 2.0, 4096, 512, 32), **more)  # type: ignore[arg-type]  # any of its fields


def arriving(one: Load, rate: float) -> Load:
    return replace(one, concurrency=None, requests_per_s=rate)


def needed(found: Sized) -> float:
    """GPUs, or more than any number where there is no way."""
    return float("inf") if found.gpus is None or found.slo_met is False else found.gpus


H100 = gpu("H100-SXM5-80GB")


def on_h100(one: Load) -> Speed:
    found = size(one, H100).speed
    assert found is not None
    return found


LOADS = st.builds(
    load,
    st.sampled_from(MODELS),
    st.sampled_from(("bf16", "fp8", "int4")),
    context_tokens=st.integers(64, 60_000),
    output_tokens=st.integers(1, 60),
    concurrency=st.integers(1, 3000),
    itl_slo_s=st.none() | st.floats(0.005, 0.2),
    ttft_slo_s=st.none() | st.floats(0.05, 20),
)
SPECS = st.sampled_from(GPUS).map(gpu)


def test_memory_is_that_of_the_architecture() -> None:
    found = size(load(), H100)
    assert found.weight_bytes == pytest.approx(2 * 8_030_261_248)
    assert found.kv_token_bytes == 131_072
    assert found.kv_bytes == pytest.approx(32 * 4096 * 131_072)
    assert found.thumb_bytes == pytest.approx(8_030_261_248 * 16 / 8 * 1.25)
    assert found.thumb_gpus == 1
    assert found.per_gpu_bytes == pytest.approx(found.weight_bytes + found.kv_bytes + 3.5e9)


def test_an_8b_model_runs_on_one_h100_as_it_was_measured() -> None:
    found = size(load(context_tokens=650, output_tokens=400, concurrency=64), H100)
    assert (found.gpus, found.tensor_parallel, found.replicas, found.bound_by) == (1, 1, 1, None)
    assert found.speed is not None
    assert found.speed.tokens_per_s.p10 < 5147 < found.speed.tokens_per_s.p90  # advisor-rules 2.4
    assert found.speed.tokens_per_s.p50 == pytest.approx(64 / found.speed.itl_s.p50)
    assert found.speed.j_per_token.p10 < 0.119 < found.speed.j_per_token.p90  # the same row


def test_a_70b_model_is_split_until_it_fits() -> None:
    found = size(load("llama-3.1-70b"), H100)
    assert (found.tensor_parallel or 0) >= 4
    assert found.bound_by == "memory"
    assert found.per_gpu_bytes is not None
    assert found.per_gpu_bytes < H100.memory_bytes


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("llama-3.1-8b", (1, 2, 4, 8)),
        ("falcon-7b", (1,)),  # 71 heads
        ("qwen2.5-7b", (1, 2, 4)),  # 28 heads
        ("phi-4", (1, 2)),  # 10 KV heads
        ("gemma-3-4b", (1, 2, 4, 8)),  # 4 KV heads, each held twice on 8 GPUs
        ("deepseek-v3", (1, 2, 4, 8)),  # latent cache, held on every GPU
    ],
)
def test_ranks_divide_the_heads(model: str, expected: tuple[int, ...]) -> None:
    assert sizes(llm(model)) == expected


def test_a_model_that_no_node_holds_says_how_many_gpus_it_would_take() -> None:
    found = size(load("llama-3.1-405b"), gpu("A100-SXM4-40GB"))
    assert (found.fits, found.gpus, found.speed) == (False, None, None)
    assert "need 25 GPUs, more than a node of 8" in (found.why_not or "")


def test_a_promise_that_cannot_be_kept_says_why_and_is_sized_without_it() -> None:
    found = size(load("llama-3.1-70b", itl_slo_s=0.005), H100)
    assert found.slo_met is False
    assert found.gpus is not None
    assert (found.why_not or "").startswith("ITL of one request alone on 8 GPUs is 1")
    assert (found.why_not or "").endswith("over 5 ms")
    late = size(load("llama-3.1-70b", context_tokens=100_000, ttft_slo_s=0.1), H100)
    assert (late.why_not or "").startswith("TTFT of one request alone on 8 GPUs")


def test_a_promise_costs_gpus() -> None:
    free, bound = size(load(concurrency=400), H100), size(load(concurrency=400, itl_slo_s=0.012), H100)
    assert needed(bound) > needed(free)
    assert (bound.bound_by, bound.slo_met, free.slo_met) == ("slo", True, None)
    assert bound.speed is not None
    assert bound.speed.itl_s.p50 <= 0.012


def test_arriving_requests_run_at_once_by_littles_law() -> None:
    speed = on_h100(arriving(load(), 20.0))
    assert speed.tokens_per_s.p50 == pytest.approx(20 * 512)
    stay_s = 512 * speed.itl_s.p50 + (speed.ttft_s.p50 - speed.itl_s.p50)
    assert speed.concurrency == pytest.approx(20 * stay_s, rel=1e-6)
    assert speed.tokens_per_s.p50 <= 0.7 * speed.capacity_tokens_per_s.p50 * 1.0001


def test_a_trickle_of_requests_needs_one_gpu_and_sees_a_step_of_its_own() -> None:
    trickle, alone = on_h100(arriving(load(), 0.001)), on_h100(load(concurrency=1))
    assert trickle.concurrency < 0.1
    assert trickle.itl_s == alone.itl_s
    assert trickle.j_per_token == alone.j_per_token


def test_long_prompts_feel_their_own_attention() -> None:
    short, long = (on_h100(load(context_tokens=tokens, concurrency=1)) for tokens in (8_192, 131_072))
    assert long.ttft_s.p50 > 1.5 * (131_072 - 512) / (8_192 - 512) * short.ttft_s.p50


def test_four_bit_weights_are_no_faster_in_large_batches() -> None:
    def itl_s(form: str, concurrency: int) -> float:
        one = load(form=form, concurrency=concurrency, context_tokens=300, output_tokens=150)
        return on_h100(one).itl_s.p50

    assert itl_s("int4", 256) == pytest.approx(itl_s("bf16", 256))
    assert itl_s("int4", 8) < itl_s("bf16", 8)


@pytest.mark.parametrize(
    ("form", "key", "why_not", "note"),
    [
        ("fp8", "A100-SXM4-80GB", "", "no FP8 in the hardware"),
        ("fp8", "V100-SXM2-32GB", "FP8 weights ask for 7.5", ""),
        ("fp8", "H100-SXM5-80GB", "", ""),
        ("fp8", "MI300X", "", ""),
        ("fp8", "MI250X", "AMD: no source", ""),
        ("int8", "B200-SXM-180GB", "runs from 7.5 to below 10.0", ""),
        ("int8", "A100-SXM4-80GB", "", ""),
        ("int4", "T4", "4-bit weights ask for 8.0", ""),
        ("int4", "H100-SXM5-80GB", "", "4-bit weights only"),
        ("nvfp4", "RTX-PRO-6000-Workstation", "", ""),
        ("nvfp4", "H100-SXM5-80GB", "", "4-bit weights only"),
        ("bf16", "T4", "", "runs as fp16"),
        ("bf16", "P40", "no dense 16-bit rate", ""),
        ("bf16", "P100-PCIE-16GB", "vLLM asks for 7.0", ""),
    ],
)
def test_what_the_hardware_lacks_is_said(form: str, key: str, why_not: str, note: str) -> None:
    found = size(load("llama-3.2-3b", form, context_tokens=1024), gpu(key))
    assert found.fits
    assert found.weight_bytes > 0
    assert bool(why_not) == (found.speed is None) == (found.gpus is None)
    assert why_not in (found.why_not or "")
    said = [one for one in found.notes if "inferred" not in one]
    assert bool(note) == bool(said)
    assert note in " ".join(said)


def test_the_interval_is_that_of_the_estimators_and_wider_beyond_what_was_seen() -> None:
    assert on_h100(load(context_tokens=1024)).uncertainty_ratio == decode_step.HALF_WIDTH_DENSE_HOPPER
    assert on_h100(load(context_tokens=16_384)).uncertainty_ratio == decode_step.HALF_WIDTH_UNTRIED
    for one, key in (
        (load(context_tokens=1024), "A100-SXM4-80GB"),
        (load("llama-3.1-70b"), "H100-PCIE-80GB"),
    ):
        speed = size(one, gpu(key)).speed
        assert speed is not None
        assert speed.uncertainty_ratio == decode_step.HALF_WIDTH_ELSEWHERE


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"context_tokens": 1}, "context_tokens is 1"),
        ({"context_tokens": 10**9}, "context_tokens is 1000000000: give 2 to 100,000,000"),
        ({"output_tokens": 0}, "output_tokens is 0"),
        ({"output_tokens": 4096}, "fewer than context_tokens"),
        ({"concurrency": None}, "give one of them"),
        ({"requests_per_s": 1.0}, "give one of them"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"concurrency": None, "requests_per_s": float("nan")}, "requests_per_s is nan"),
        ({"itl_slo_s": -1.0}, "itl_slo_s is -1.0"),
        ({"ttft_slo_s": float("inf")}, "ttft_slo_s is inf"),
    ],
)
def test_a_load_that_cannot_be_is_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        load(**change)  # type: ignore[arg-type]  # any of its fields


@given(LOADS, SPECS, st.integers(0, 30_000))
def test_more_context_never_needs_fewer_gpus(one: Load, spec: GpuSpec, more: int) -> None:
    longer = replace(one, context_tokens=one.context_tokens + more)
    assert needed(size(longer, spec)) >= needed(size(one, spec))


@given(LOADS, SPECS, st.floats(0.01, 50), st.integers(0, 30_000), st.floats(1, 10))
def test_more_or_longer_arriving_requests_never_need_fewer_gpus(
    one: Load, spec: GpuSpec, rate: float, more: int, times: float
) -> None:
    here = needed(size(arriving(one, rate), spec))
    assert needed(size(arriving(one, rate * times), spec)) >= here
    assert needed(size(arriving(replace(one, context_tokens=one.context_tokens + more), rate), spec)) >= here


@given(LOADS, SPECS, st.integers(0, 1000))
def test_more_requests_at_once_never_need_fewer_gpus(one: Load, spec: GpuSpec, more: int) -> None:
    assert one.concurrency is not None
    assert needed(size(replace(one, concurrency=one.concurrency + more), spec)) >= needed(size(one, spec))


@given(LOADS, SPECS)
def test_a_looser_promise_never_needs_more_gpus(one: Load, spec: GpuSpec) -> None:
    looser = replace(one, itl_slo_s=one.itl_slo_s and 2 * one.itl_slo_s, ttft_slo_s=None)
    assert needed(size(looser, spec)) <= needed(size(one, spec))


@given(LOADS, st.sampled_from(("H100-SXM5-80GB", "A100-PCIE-40GB", "L4")).map(gpu))
def test_fewer_bits_never_take_more_memory_or_gpus(one: Load, spec: GpuSpec) -> None:
    found = [
        size(replace(one, form=form), spec) for name in ("bf16", "fp8", "int4") if (form := form_of(name))
    ]
    weights = [each.weight_bytes for each in found]
    assert weights == sorted(weights, reverse=True)
    assert needed(found[1]) <= needed(found[0])
    assert needed(found[2]) <= needed(found[0])
    assert needed(size(replace(one, kv_element_bytes=1.0), spec)) <= needed(size(one, spec))


@given(LOADS, SPECS)
def test_every_answer_is_whole(one: Load, spec: GpuSpec) -> None:
    found = size(one, spec)
    assert (found.gpus is None) == (found.speed is None) == (found.per_gpu_bytes is None)
    if found.gpus is None or found.speed is None or found.per_gpu_bytes is None:
        assert found.why_not is not None
        return
    assert found.gpus == (found.tensor_parallel or 0) * (found.replicas or 0)
    assert (found.gpus_p10 or 0) <= found.gpus <= (found.gpus_p90 or float("inf"))
    assert found.per_gpu_bytes <= 0.9 * spec.memory_bytes
    assert found.speed.power_w.p90 <= spec.tdp_w
    if found.slo_met:
        assert found.speed.itl_s.p50 <= (one.itl_slo_s or float("inf")) * (1 + 1e-6)
        assert found.speed.ttft_s.p50 <= (one.ttft_slo_s or float("inf")) * (1 + 1e-6)
