"""The exact flag of each engine for what advice asks to change (advisor-rules 3.3)."""

from collections.abc import Mapping
from typing import Final

from advisor.estimators.quantization import Scheme

BATCH: Final[Mapping[str, str]] = {
    "vllm": "vllm serve {model} --max-num-seqs {batch}",
    "sglang": "python -m sglang.launch_server --model-path {model} --max-running-requests {batch}",
    "tgi": "text-generation-launcher --model-id {model} --max-batch-size {batch}",
    "trtllm": "trtllm-serve {model} --max_batch_size {batch}",
    "llamacpp": "llama-server -m {model} -np {batch}",
}
BATCH_FLAG: Final[Mapping[str, str]] = {
    "vllm": "--max-num-seqs",
    "sglang": "--max-running-requests",
    "tgi": "--max-batch-size",
    "trtllm": "--max_batch_size",
    "llamacpp": "-np",
}
QUANTIZE: Final[Mapping[tuple[str, str], str]] = {
    ("vllm", "fp8"): "vllm serve {model} --quantization fp8",
    ("sglang", "fp8"): "python -m sglang.launch_server --model-path {model} --quantization fp8",
    ("tgi", "fp8"): "text-generation-launcher --model-id {model} --quantize fp8",
    ("trtllm", "fp8"): "trtllm-serve {model}-FP8",
    ("vllm", "int8"): "vllm serve {model}-quantized.w8a8",
    ("sglang", "int8"): "python -m sglang.launch_server --model-path {model} --quantization w8a8_int8",
    ("vllm", "int4"): "vllm serve {model}-AWQ",
    ("sglang", "int4"): "python -m sglang.launch_server --model-path {model}-AWQ",
    ("tgi", "int4"): "text-generation-launcher --model-id {model}-AWQ --quantize awq",
    ("llamacpp", "fp8"): "llama-quantize {model}.gguf Q8_0",
    ("llamacpp", "int8"): "llama-quantize {model}.gguf Q8_0",
    ("llamacpp", "int4"): "llama-quantize {model}.gguf Q4_K_M",
}
KV_PRECISION: Final[Mapping[str, str]] = {
    "vllm": "vllm serve {model} --kv-cache-dtype fp8",
    "sglang": "python -m sglang.launch_server --model-path {model} --kv-cache-dtype fp8_e5m2",
    "tgi": "text-generation-launcher --model-id {model} --kv-cache-dtype fp8_e5m2",
    "llamacpp": "llama-server -m {model} -fa on -ctk q8_0 -ctv q8_0",
}


def batch_flag(kind: str) -> str:
    """Name of the flag that limits the batch; ``the batch limit`` where the engine is not one we know."""
    return BATCH_FLAG.get(kind, "the batch limit")


def batch_command(kind: str, model: str | None, batch: int) -> str | None:
    """Start command with a new batch limit; None for an engine we do not know."""
    return _filled(BATCH.get(kind), model, batch=batch)


def quantize_command(kind: str, model: str | None, scheme: Scheme) -> str | None:
    """Start command with quantised weights (or the tool that makes them); None where there is none."""
    return _filled(QUANTIZE.get((kind, scheme.key)), model)


def kv_precision_command(kind: str, model: str | None) -> str | None:
    """Start command with an 8-bit KV cache; None where there is none."""
    return _filled(KV_PRECISION.get(kind), model)


def _filled(template: str | None, model: str | None, **values: object) -> str | None:
    return None if template is None else template.format(model=model or "MODEL", **values)
