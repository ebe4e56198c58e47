"""Splits of public runs on H100 (ML.ENERGY): what the formula says of one GPU against two."""

import csv
import gzip
from pathlib import Path

import pytest

from advisor.estimators import shard
from advisor.estimators.decode_step import DecodeStep, Weights, formula
from catalog import llm_models
from catalog.gpu_specs import by_key

CONTEXT = 450.0
MODELS = {"Qwen 3 32B": "qwen3-32b", "Gemma 3 27B": "gemma-3-27b"}
Run = tuple[float, float, float]
"""Batch, tokens per second, seconds between tokens."""


def law(model: str, size: int) -> DecodeStep:
    llm, card = llm_models.resolve(model), by_key("H100-SXM5-80GB")
    assert llm is not None
    assert card is not None
    assert card.bf16_flops is not None
    return formula(
        weights=Weights(2 * llm.parameters),
        layers=llm.layers,
        active_parameters=llm.parameters,
        kv_bytes_per_token=llm_models.kv_bytes_per_token(llm),
        context_tokens=CONTEXT,
        prompt_per_generated=0.3,
        tensor_parallel=size,
        bandwidth_bytes_per_s=card.bandwidth_bytes_per_s,
        flops=card.bf16_flops,
        half_width=0.2,
    )


@pytest.fixture
def runs(shared_data: Path) -> dict[tuple[str, int], list[Run]]:
    """By model and split, ascending by batch."""
    path = shared_data / "mlenergy" / "v3_lm_arena_chat_h100.csv.gz"
    if not path.exists():
        pytest.skip(f"no {path.name} under {shared_data}")
    found: dict[tuple[str, int], list[Run]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["nickname"] in MODELS and row["weight_precision"] == "bfloat16":
                run = (
                    float(row["avg_batch_size"]),
                    float(row["output_throughput_tokens_per_sec"]),
                    float(row["median_itl_ms"]) / 1e3,
                )
                found.setdefault((MODELS[row["nickname"]], int(row["num_gpus"])), []).append(run)
    return {key: sorted(each) for key, each in found.items()}


@pytest.mark.shared_data
def test_what_a_second_gpu_gives_at_equal_batch(runs: dict[tuple[str, int], list[Run]]) -> None:
    errors = []
    for model in MODELS.values():
        for (alone, _, slow_s), (both, _, fast_s) in zip(runs[model, 1], runs[model, 2], strict=False):
            predicted = law(model, 1).step_s(alone) / law(model, 2).step_s(both)
            errors.append(abs(predicted / (slow_s / fast_s) - 1))
    assert len(errors) == 6
    assert max(errors) < 0.10
    assert sum(errors) / len(errors) < 0.06


@pytest.mark.shared_data
def test_per_gpu_at_the_promise_the_larger_split_of_a_tight_model_wins(
    runs: dict[tuple[str, int], list[Run]],
) -> None:
    """At 50 ms between tokens: 961 tok/s on one GPU, whose KV cache is full at 29; over 2,000 per GPU on two."""
    promise = 0.05
    llm, card = llm_models.resolve("qwen3-32b"), by_key("H100-SXM5-80GB")
    assert llm is not None
    assert card is not None
    kv = llm_models.kv_bytes_per_token(llm)
    predicted, measured = {}, {}
    for size in (1, 2):
        room = shard.room_tokens(
            tensor_parallel=size,
            memory_bytes=card.memory_bytes,
            weight_bytes=2 * llm.parameters,
            kv_bytes_per_token=kv,
        )
        one = shard.shard(
            law("qwen3-32b", size),
            tensor_parallel=size,
            room=room,
            end_tokens=750,
            promise_s=promise,
            ceiling=256,
        )
        assert one is not None
        predicted[size] = one.tokens_per_s_per_gpu.p50
        measured[size] = max(rate / size for _, rate, itl_s in runs["qwen3-32b", size] if itl_s <= promise)
    assert measured[2] > 2 * measured[1]
    assert predicted[2] > 1.5 * predicted[1]
    for size in (1, 2):
        assert predicted[size] == pytest.approx(measured[size], rel=0.25)
