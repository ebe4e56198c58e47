"""The exact flags of each engine that change how it executes, not what it holds (advisor-rules 3.3 and the engines' own documentation)."""

from collections.abc import Mapping
from typing import Final

GRAPHS_ON: Final[Mapping[str, str]] = {
    "vllm": "vllm serve {model} --no-enforce-eager",
    "sglang": "python -m sglang.launch_server --model-path {model}",
    "tgi": "text-generation-launcher --model-id {model} --cuda-graphs 1,2,4,8,16,32",
}
GRAPHS_OFF_FLAG: Final[Mapping[str, str]] = {
    "vllm": "--enforce-eager",
    "sglang": "--disable-cuda-graph",
    "tgi": "--cuda-graphs 0",
}
HOST_RELIEF: Final[Mapping[str, str]] = {
    "vllm": "vllm serve {model} --async-scheduling --api-server-count 2",
    "sglang": "python -m sglang.launch_server --model-path {model} --tokenizer-worker-num 2",
}
SHARDS: Final[Mapping[str, str]] = {
    "vllm": "vllm serve {model} --tensor-parallel-size {shards}",
    "sglang": "python -m sglang.launch_server --model-path {model} --tp-size {shards}",
    "tgi": "text-generation-launcher --model-id {model} --num-shard {shards}",
    "trtllm": "trtllm-serve {model} --tp_size {shards}",
}
SPECULATE: Final[Mapping[str, str]] = {
    "vllm": """vllm serve {model} --speculative-config '{{"method": "ngram", "num_speculative_tokens": {tokens}, "prompt_lookup_max": 4}}'""",
    "sglang": "python -m sglang.launch_server --model-path {model} --speculative-algorithm EAGLE3"
    " --speculative-draft-model-path DRAFT --speculative-num-draft-tokens {tokens}",
    "tgi": "text-generation-launcher --model-id {model} --speculate {tokens}",
    "llamacpp": "llama-server -m {model} -md DRAFT.gguf --draft-max {tokens}",
}
CHUNKED_ON: Final[Mapping[str, str]] = {
    "vllm": "vllm serve {model} --enable-chunked-prefill --max-num-batched-tokens {tokens}",
    "sglang": "python -m sglang.launch_server --model-path {model} --chunked-prefill-size {tokens}",
    "tgi": "text-generation-launcher --model-id {model} --max-batch-prefill-tokens {tokens}",
    "trtllm": "trtllm-serve {model} --max_num_tokens {tokens}",
}
FAST_ATTENTION: Final[Mapping[str, str]] = {
    "vllm": "vllm serve {model} --attention-backend FLASH_ATTN",
    "sglang": "python -m sglang.launch_server --model-path {model} --attention-backend flashinfer",
    "llamacpp": "llama-server -m {model} -fa on",
}


def filled(table: Mapping[str, str], kind: str, model: str | None, **values: object) -> str | None:
    """The command of ``table`` for this engine; None for an engine without one."""
    template = table.get(kind)
    return None if template is None else template.format(model=model or "MODEL", **values)
