"""A model's name is exactly one architecture, or none; its precision is told apart."""

import pytest

from catalog.llm_models import WEIGHT_BYTES, normalised, precision_hint, resolve

CASES = [
    ("llama-2-13b", "llama-2-13b", None),
    ("/gpfs/scratch/models/llama/llama-2-13b", "llama-2-13b", None),
    ("/models/llama-2-13b/", "llama-2-13b", None),
    ("meta-llama/Llama-2-13b-chat-hf", "llama-2-13b", None),
    ("/root/.cache/huggingface/hub/models--meta-llama--Llama-2-13b-hf/snapshots/ab12", "llama-2-13b", None),
    ("opt-1.3b", "opt-1.3b", None),
    ("facebook/opt-2.7b", "opt-2.7b", None),
    ("facebook/opt-6.7b", "opt-6.7b", None),
    ("facebook/opt-13b", "opt-13b", None),
    ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b", None),
    ("meta-llama/Meta-Llama-3.1-8B-Instruct-FP8", "llama-3.1-8b", "fp8"),
    ("meta-llama/Llama-3.1-405B-Instruct-FP8", "llama-3.1-405b", "fp8"),
    ("RedHatAI/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", "llama-3.1-70b", "int8"),
    ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "llama-3.3-70b", "fp8"),
    ("TheBloke/Llama-2-13B-chat-GPTQ", "llama-2-13b", "int4"),
    ("TheBloke/Llama-2-13B-chat-AWQ", "llama-2-13b", "int4"),
    ("TheBloke/Mixtral-8x7B-Instruct-v0.1-AWQ", "mixtral-8x7b", "int4"),
    ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "qwen2.5-7b", "int8"),
    ("unsloth/Qwen2.5-7B-Instruct-bnb-4bit", "qwen2.5-7b", "int4"),
    ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b", None),
    ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b", "fp8"),
    ("hugging-quants/Meta-Llama-3.1-405B-Instruct-AWQ-INT4", "llama-3.1-405b", "int4"),
    ("nvidia/Llama-3.1-8B-Instruct-NVFP4", "llama-3.1-8b", "fp4"),
    ("llama-2-7b-chat.Q4_K_M.gguf", "llama-2-7b", "int4"),
    ("llama-2-7b.Q8_0.gguf", "llama-2-7b", "int8"),
    ("llama-2-7b.Q6_K.gguf", "llama-2-7b", "int6"),
    ("llama-2-7b.f16.gguf", "llama-2-7b", "fp16"),
    ("llama-2-7b-BF16", "llama-2-7b", "bf16"),
    ("llama3.1:8b-instruct-q4_K_M", "llama-3.1-8b", "int4"),
    ("qwen2.5:7b", "qwen2.5-7b", None),
    ("google/gemma-3-27b-it", "gemma-3-27b", None),
    ("mistralai/Mistral-7B-Instruct-v0.2", "mistral-7b-v0.2", None),
    ("mistralai/Mixtral-8x22B-v0.1", "mixtral-8x22b", None),
    ("deepseek-ai/DeepSeek-R1", "deepseek-r1", None),
    ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama-3.3-70b", None),
    ("deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek-v2-lite", None),
    ("openai/gpt-oss-20b", "gpt-oss-20b", None),
    ("openai/gpt-oss-120b", "gpt-oss-120b", None),
    ("tiiuae/falcon-40b-instruct", "falcon-40b", None),
    ("microsoft/phi-4", "phi-4", None),
    ("microsoft/Phi-3-mini-128k-instruct", "phi-3-mini-128k", None),
    ("meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8", "llama-4-maverick-17b-128e", "fp8"),
]


@pytest.mark.parametrize(("name", "model_key", "precision"), CASES)
def test_a_published_name_is_one_architecture_and_its_precision(
    name: str, model_key: str, precision: str | None
) -> None:
    spec = resolve(name)
    assert spec is not None
    assert spec.model_key == model_key
    assert precision_hint(name) == precision


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "/",
        "llama",
        "llama-2",
        "llama-13b-something",
        "llama-2-13b-lora-customer",
        "my-llama-2-13b",
        "Llama-3.2-11B-Vision-Instruct",
        "Qwen2.5-VL-7B-Instruct",
        "mistral-7b",  # v0.1 looks back 4096 tokens, v0.3 has another vocabulary
        "deepseek-r1:7b",  # a distilled Qwen under another name
        "opt-1.3",
        "gpt-4",
        "llama-2-130b",
    ],
)
def test_any_other_name_is_none(name: str | None) -> None:
    assert resolve(name) is None


def test_names_of_one_architecture_normalise_alike_and_once() -> None:
    for name, model_key, _ in CASES:
        assert normalised(normalised(name)) == normalised(name)
        if "distill" not in name.lower() and "mistral-7b" not in name.lower():
            assert normalised(name).startswith(normalised(model_key))


def test_a_name_that_tells_no_precision_hints_none() -> None:
    assert precision_hint(None) is None
    assert precision_hint("Llama-3.1-8B") is None
    assert precision_hint("qwen3-4b") is None


def test_every_hint_has_a_weight_size() -> None:
    assert {precision for *_, precision in CASES if precision} <= set(WEIGHT_BYTES)
