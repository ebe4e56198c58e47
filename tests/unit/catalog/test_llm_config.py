"""Architectures read from a model's own configuration: counted weights against the catalogue's published ones."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.llm_config import read_config
from catalog.llm_config_words import READ
from catalog.llm_models import kv_bytes_per_sequence, kv_bytes_per_token, resolve
from core.errors import UsageError


def of(family: str, shape: str, **more: Any) -> dict[str, Any]:
    """A configuration in today's words: ``layers hidden heads kv_heads intermediate vocabulary``."""
    layers, hidden, heads, kv_heads, intermediate, vocabulary = map(int, shape.split())
    return {
        "model_type": family,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": intermediate,
        "vocab_size": vocabulary,
        "torch_dtype": "bfloat16",
        **more,
    }


LLAMA_8B = of("llama", "32 4096 32 8 14336 128256", tie_word_embeddings=False, max_position_embeddings=131072)
DEEPSEEK_V3 = of(
    "deepseek_v3", "61 7168 128 128 18432 129280", kv_lora_rank=512, q_lora_rank=1536, qk_rope_head_dim=64,
    qk_nope_head_dim=128, v_head_dim=128, n_routed_experts=256, n_shared_experts=1, num_experts_per_tok=8,
    moe_intermediate_size=2048, first_k_dense_replace=3, quantization_config={"quant_method": "fp8"},
)  # fmt: skip
GEMMA_3 = {
    "model_type": "gemma3",
    "text_config": {
        **of("gemma3_text", "62 5376 32 16 21504 262208", head_dim=128, sliding_window=1024),
        "max_position_embeddings": 131072,
        "sliding_window_pattern": 6,
    },
    "vision_config": {"hidden_size": 1152},
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama-3.1-8b": LLAMA_8B,
    "llama-3.1-70b": of("llama", "80 8192 64 8 28672 128256"),
    "qwen2.5-7b": of("qwen2", "28 3584 28 4 18944 152064", sliding_window=131072, use_sliding_window=False),
    "qwen3-0.6b": of("qwen3", "28 1024 16 8 3072 151936", head_dim=128, tie_word_embeddings=True),
    "qwen3-30b-a3b": of(
        "qwen3_moe", "48 2048 32 4 6144 151936", head_dim=128, num_experts=128, num_experts_per_tok=8,
        moe_intermediate_size=768, decoder_sparse_step=1, mlp_only_layers=[],
    ),
    "mistral-7b-v0.1": of("mistral", "32 4096 32 8 14336 32000", sliding_window=4096, max_position_embeddings=32768),
    "mixtral-8x7b": of("mixtral", "32 4096 32 8 14336 32000", num_local_experts=8, num_experts_per_tok=2, sliding_window=None),
    "gemma-2-9b": of("gemma2", "42 3584 16 8 14336 256000", head_dim=256, sliding_window=4096, max_position_embeddings=8192),
    "gemma-3-27b": GEMMA_3,
    "deepseek-v3": DEEPSEEK_V3,
    "phi-4": of("phi3", "40 5120 40 10 17920 100352", sliding_window=None),
    "phi-2": of("phi", "32 2560 32 32 10240 51200"),
    "gpt-oss-20b": of(
        "gpt_oss", "24 2880 64 8 2880 201088", head_dim=64, num_local_experts=32, num_experts_per_tok=4,
        sliding_window=128, max_position_embeddings=131072, quantization_config={"quant_method": "mxfp4"},
        layer_types=["sliding_attention", "full_attention"] * 12,
    ),
    "falcon-7b": {
        "model_type": "falcon", "num_hidden_layers": 32, "hidden_size": 4544, "num_attention_heads": 71,
        "vocab_size": 65024, "multi_query": True, "new_decoder_architecture": False,
    },
    "falcon-40b": {
        "model_type": "falcon", "num_hidden_layers": 60, "hidden_size": 8192, "num_attention_heads": 128,
        "num_kv_heads": 8, "vocab_size": 65024, "new_decoder_architecture": True,
    },
    "opt-6.7b": {
        "model_type": "opt", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
        "ffn_dim": 16384, "vocab_size": 50272, "torch_dtype": "float16",
    },
    "bloom-7b1": {"model_type": "bloom", "n_layer": 30, "n_embd": 4096, "n_head": 32, "vocab_size": 250880},
    "mpt-7b": {"model_type": "mpt", "n_layers": 32, "d_model": 4096, "n_heads": 32, "vocab_size": 50432},
    "gpt-j-6b": {"model_type": "gptj", "n_layer": 28, "n_embd": 4096, "n_head": 16, "vocab_size": 50400},
    "glm-4.5-air": of(
        "glm4_moe", "46 4096 96 8 10944 151552", head_dim=128, n_routed_experts=128, n_shared_experts=1,
        num_experts_per_tok=8, moe_intermediate_size=1408, first_k_dense_replace=1,
    ),
    "starcoder2-15b": of("starcoder2", "40 6144 48 4 24576 49152", sliding_window=4096, max_position_embeddings=16384,
                         tie_word_embeddings=False),
}  # fmt: skip
ROUNDED = {"glm-4.5-air": 0.03, "deepseek-v3": 0.01, "gpt-oss-20b": 0.01}
"""Cards that publish rounded counts."""


@pytest.mark.parametrize("name", FAMILIES)
def test_a_configuration_gives_the_architecture_of_the_catalogue(name: str) -> None:
    known, read = resolve(name), read_config(FAMILIES[name]).llm
    assert known is not None
    assert read.parameters == pytest.approx(known.parameters, rel=ROUNDED.get(name, 0.005))
    assert (read.layers, read.hidden, read.heads) == (known.layers, known.hidden, known.heads)
    assert (read.experts, read.experts_per_token) == (known.experts, known.experts_per_token)
    for context in (100, 100_000):
        assert kv_bytes_per_sequence(read, context) == kv_bytes_per_sequence(known, context)


@pytest.mark.parametrize(
    ("name", "share"), [("qwen3-30b-a3b", 0.03), ("mixtral-8x7b", 0.01), ("deepseek-v3", 0.03)]
)
def test_a_mixture_uses_few_of_its_weights_for_a_token(name: str, share: float) -> None:
    known = resolve(name)
    assert known is not None
    assert read_config(FAMILIES[name]).llm.active_parameters == pytest.approx(
        known.active_parameters, rel=share
    )


@pytest.mark.parametrize(
    ("said", "form"),
    [
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "awq", "bits": 4}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "mxfp4"}, "fp4"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4"),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "fp4"),
        ({"quant_method": "aqlm"}, None),
    ],
)  # fmt: skip
def test_the_published_format_is_read(said: dict[str, Any], form: str | None) -> None:
    config = {**LLAMA_8B, "quantization_config": said}
    if form is None:
        with pytest.raises(UsageError, match="quantization_config names no known format"):
            read_config(config)
    else:
        assert read_config(config).llm.native_precision == form
    assert read_config({**LLAMA_8B, "torch_dtype": "float16"}).llm.native_precision == "fp16"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"num_hidden_layers": None}, "has none of num_hidden_layers, n_layer"),
        ({"num_hidden_layers": "32"}, "field num_hidden_layers is '32'"),
        ({"hidden_size": -1}, "field hidden_size is -1"),
        ({"num_key_value_heads": 5}, "5 KV heads do not divide 32 heads"),
        ({"vocab_size": None}, "has none of vocab_size"),
        ({"is_encoder_decoder": True}, "only decoders"),
        ({"hybrid_override_pattern": "M-M*"}, "hybrid_override_pattern: some layers keep a state"),
        ({"layer_types": ["linear_attention", "full_attention"]}, "layer_types with linear_attention"),
        ({"num_local_experts": 8, "num_experts_per_tok": 8}, "8 experts per token of 8"),
        ({"num_local_experts": 8}, "has none of num_experts_per_tok"),
    ],
)
def test_what_cannot_be_sized_is_refused_by_its_field(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence.replace("*", r"\*")):
        read_config({**LLAMA_8B, **change})


def test_what_was_left_out_is_said() -> None:
    assert "vision and audio towers are not" in " ".join(read_config(GEMMA_3).notes)
    assert read_config({**LLAMA_8B, "rms_norm_eps": 1e-5, "bos_token_id": 1, "rope_theta": 5e5}).notes == (
        "weights are counted from config.json, within about 1 % of published counts",
    )
    odd = read_config({**DEEPSEEK_V3, "num_nextn_predict_layers": 1, "flux_capacitor": {}}).notes[-1]
    assert odd == "fields not understood, and not counted: flux_capacitor, num_nextn_predict_layers"


@given(
    st.dictionaries(
        st.sampled_from(sorted(READ)),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=5)
        | st.lists(st.none(), max_size=2),
        max_size=4,
    )
)
def test_whatever_stands_in_a_field_is_read_or_refused_in_a_sentence(odd: dict[str, Any]) -> None:
    try:
        llm = read_config({**LLAMA_8B, **odd}).llm
    except UsageError as error:
        assert "config.json" in str(error)  # noqa: PT017 - a refusal is one of two right answers
        return
    assert 0 < llm.active_parameters <= llm.parameters
    assert kv_bytes_per_sequence(llm, 1000) > 0


def test_latent_attention_keeps_the_latent_and_the_position() -> None:
    assert kv_bytes_per_token(read_config(DEEPSEEK_V3).llm) == 70_272  # advisor-rules 3.1
