"""KV pool, utilization and precision against the facts of advisor-rules 2.3, 3.1 and 3.2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.estimators import kv_pool, precision, utilization
from catalog import llm_models
from core.units import MIB

KV_BYTES = {
    "llama-2-7b": 524_288, "llama-2-13b": 819_200, "llama-3-8b": 131_072, "llama-3-70b": 327_680,
    "llama-3.1-405b": 516_096, "qwen3-8b": 147_456, "qwen3-14b": 163_840, "qwen3-32b": 262_144,
    "mistral-7b-v0.1": 131_072, "falcon-7b": 8_192, "falcon-40b": 122_880, "deepseek-v3": 70_272,
}  # fmt: skip


@pytest.mark.parametrize("model", KV_BYTES)
def test_kv_bytes_of_a_token(model: str) -> None:
    llm = llm_models.resolve(model)
    assert llm is not None
    assert kv_pool.token_bytes(llm, {}) == KV_BYTES[model]
    assert kv_pool.token_bytes(llm, {"cache_dtype": "fp8_e4m3"}) == KV_BYTES[model] / 2


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [
        ({"num_gpu_blocks": "2657", "block_size": "16"}, 42_512),
        ({"num_pages": "1000", "page_size": "64"}, 64_000),
        ({"max_total_num_tokens": "123456"}, 123_456),
        ({"num_gpu_blocks": "None", "block_size": "16"}, None),
        ({"num_gpu_blocks": "2657"}, None),
        ({}, None),
    ],
)
def test_the_pool_is_read_from_what_each_engine_publishes(
    settings: dict[str, str], tokens: float | None
) -> None:
    assert kv_pool.pool_tokens(settings) == tokens


def test_the_mean_context_needs_all_three_figures() -> None:
    assert kv_pool.mean_context_tokens(kv_used_ratio=0.5, pool=42_512, running=64) == pytest.approx(
        332.1, abs=0.1
    )
    assert kv_pool.mean_context_tokens(kv_used_ratio=None, pool=42_512, running=64) is None
    assert kv_pool.mean_context_tokens(kv_used_ratio=0.5, pool=42_512, running=0) is None


def test_a_request_ends_longer_than_it_is_on_average() -> None:
    """250 in, 260 out: on average 380 in cache, 510 at the end."""
    assert kv_pool.end_context_tokens(380, 250 / 260) == pytest.approx(510)


def test_the_published_batch_limit_of_the_pool_comes_out() -> None:
    """3.2: 2,671 blocks × 16 and 510 tokens at the end predict 84; the engine settled at 79–80."""
    limit = kv_pool.batch_limit(
        pool=2671 * 16, context_tokens=380, prompt_per_generated=250 / 260, running=80, kv_used_p95_ratio=0.95
    )
    assert limit in {83, 84}


@given(
    st.floats(1e3, 1e6), st.floats(10, 5_000), st.floats(0.01, 20), st.floats(1, 500), st.floats(0.001, 1.0)
)
def test_the_batch_limit_never_overfills_the_pool(
    pool: float, context: float, ratio: float, running: float, used: float
) -> None:
    limit = kv_pool.batch_limit(
        pool=pool, context_tokens=context, prompt_per_generated=ratio, running=running, kv_used_p95_ratio=used
    )
    assert limit == 1 or limit * context <= pool * (1 + 1e-9)


def test_the_worked_check_of_llama_2_13b() -> None:
    llm = llm_models.resolve("llama-2-13b")
    assert llm is not None
    weights = precision.weight_bytes_estimate(
        memory_used_bytes=59_336 * MIB, pool_tokens=2671 * 16, kv_bytes_per_token=819_200, tensor_parallel=1
    )
    assert (weights + precision.OVERHEAD_BYTES) / 1e9 == pytest.approx(27.2, abs=0.05)
    told = precision.from_memory(weights, llm.parameters, 1)
    assert told is not None
    assert told.is_16_bit
    assert "bytes per parameter" in told.basis


@pytest.mark.parametrize(
    ("ratio", "bits"),
    [(4.0, 32), (2.1, 16), (1.1, 8), (0.6, 4), (3.0, None), (1.5, None), (0.8, None), (0.3, None)],
)
def test_bands_of_bytes_per_parameter(ratio: float, bits: int | None) -> None:
    told = precision.from_memory(ratio * 70e9, 70e9, 1)
    assert (told.bits if told else None) == bits


def test_a_small_model_with_large_buffers_is_not_taken_for_32_bit() -> None:
    """OPT-1.3B at max_num_seqs 512: buffers lift 2 bytes per parameter to 3.7."""
    assert precision.from_memory(3.7 * 1.3157e9, 1.3157e9, 1) is None


@pytest.mark.parametrize(
    ("billions", "bits_now"), [(0.8, 8), (1.3, 8), (1.5, 8), (3.0, 8), (2.5, 4), (4.0, 4)]
)
def test_buffers_never_make_a_small_quantised_model_16_bit(billions: float, bits_now: int) -> None:
    """8- or 4-bit weights with up to 2.5 GB of buffers on top."""
    for extra_gb in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5):
        held = billions * 1e9 * bits_now / 8 + extra_gb * 1e9
        told = precision.from_memory(held, billions * 1e9, 1)
        assert told is None or told.bits == bits_now


@pytest.mark.parametrize(("billions", "ratio"), [(13.0, 2.02), (13.0, 2.2), (6.74, 2.02), (8.03, 2.0)])
def test_16_bit_models_of_7b_and_more_are_still_told_from_memory(billions: float, ratio: float) -> None:
    told = precision.from_memory(ratio * billions * 1e9, billions * 1e9, 1)
    assert told is not None
    assert told.is_16_bit


@pytest.mark.parametrize(
    ("settings", "bits"),
    [
        ({"quantization": "fp8"}, 8),
        ({"quantization": "awq_marlin", "dtype": "float16"}, 4),
        ({"quantize": "gptq"}, 4),
        ({"quantization": "None", "dtype": "torch.bfloat16"}, 16),
        ({"quantization": "None", "dtype": "half"}, 16),
        ({"dtype": "float32"}, 32),
        ({"dtype": "bfloat16"}, None),
        ({"quantization": "compressed-tensors", "dtype": "bfloat16"}, None),
        ({"dtype": "auto"}, None),
        ({}, None),
    ],
)
def test_flags_decide_only_when_they_say_it(settings: dict[str, str], bits: int | None) -> None:
    told = precision.from_settings(settings)
    assert (told.bits if told else None) == bits


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8", 8),
        ("TheBloke/Llama-2-13B-AWQ", 4),
        ("Llama-2-13B-GPTQ", 4),
        ("Llama-3.1-70B-quantized.w8a8", 8),
        ("Llama-3.1-8B-NVFP4", 4),
        ("meta-llama/Llama-3.1-8B", None),
        ("llama-2-13b", None),
        (None, None),
    ],
)
def test_names_tell_a_format_and_never_a_size(name: str | None, bits: int | None) -> None:
    told = precision.from_name(name)
    assert (told.bits if told else None) == bits


def test_published_weights_count_only_when_they_are_not_16_bit() -> None:
    assert precision.from_published("bf16") is None
    fp8 = precision.from_published("fp8")
    assert fp8 is not None
    assert fp8.bits == 8


def test_the_measured_spans_of_mbu_come_out() -> None:
    """2.3: Llama-2-7B MBU 0.77 → 0.64 for B 1 → 210; Llama-3.1-8B 0.66 / 0.03 at B 8 and 0.26 / 0.26 at 511."""

    def share(model: str, batch: float, rate: float, bandwidth: float, context: float) -> float:
        llm = llm_models.resolve(model)
        assert llm is not None
        return utilization.mbu(
            weight_bytes=2 * llm.parameters,
            running=batch,
            context_tokens=context,
            kv_bytes_per_token=llm_models.kv_bytes_per_token(llm),
            tensor_parallel=1,
            bandwidth_bytes_per_s=bandwidth,
            step_s=batch / rate,
        )

    assert share("llama-2-7b", 1, 92, 1.63e12, 380) == pytest.approx(0.77, abs=0.02)
    assert share("llama-2-7b", 209, 4073, 1.63e12, 380) == pytest.approx(0.64, abs=0.03)
    assert share("llama-3.1-8b", 8, 1070, 3.35e12, 448) == pytest.approx(0.66, abs=0.02)
    assert share("llama-3.1-8b", 511, 9806, 3.35e12, 448) == pytest.approx(0.26, abs=0.02)
    mfu = utilization.mfu(
        active_parameters=8.03e9,
        generated_tokens_per_s=9806,
        prompt_tokens_per_s=9806 * 250 / 396,
        tensor_parallel=1,
        flops=989e12,
    )
    assert mfu == pytest.approx(0.26, abs=0.01)


def test_a_step_needs_a_batch_and_a_rate() -> None:
    assert utilization.step_s(running=8, tokens_per_s=1000) == 0.008
    assert utilization.step_s(running=None, tokens_per_s=1000) is None
    assert utilization.step_s(running=8, tokens_per_s=0) is None
