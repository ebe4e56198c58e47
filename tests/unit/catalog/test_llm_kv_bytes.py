"""KV-cache bytes of advisor-rules 3.1, windows and mixtures, over the shipped table."""

from dataclasses import replace
from pathlib import Path

import pytest

from catalog import llm_models
from catalog.llm_models import (
    COLUMNS,
    LlmSpec,
    kv_bytes_per_sequence,
    kv_bytes_per_token,
    resolve,
)
from catalog.loader import read_rows
from core.errors import CatalogueError


def _spec(name: str) -> LlmSpec:
    spec = resolve(name)
    assert spec is not None
    return spec


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [
        ("llama-2-7b", 524_288),
        ("llama-2-13b", 819_200),
        ("llama-3-8b", 131_072),
        ("llama-3-70b", 327_680),
        ("llama-3.1-405b", 516_096),
        ("qwen3-8b", 147_456),
        ("qwen3-14b", 163_840),
        ("qwen3-32b", 262_144),
        ("mistral-7b-v0.3", 131_072),
        ("falcon-7b", 8_192),
        ("falcon-40b", 122_880),
        ("deepseek-v3", 70_272),
    ],
)
def test_kv_bytes_per_token_are_those_of_the_advisor_rules(name: str, kv_bytes: int) -> None:
    assert kv_bytes_per_token(_spec(name)) == kv_bytes
    assert kv_bytes_per_token(_spec(name), 1.0) == kv_bytes / 2


def test_without_a_window_a_sequence_is_tokens_times_the_bytes_of_one() -> None:
    spec = _spec("llama-2-13b")
    assert kv_bytes_per_sequence(spec, 510) == 510 * 819_200


def test_local_layers_keep_only_their_window() -> None:
    spec = _spec("gpt-oss-20b")
    layer = 2 * 8 * 64 * 2
    assert kv_bytes_per_sequence(spec, 100) == 24 * 100 * layer
    assert kv_bytes_per_sequence(spec, 4096) == (12 * 128 + 12 * 4096) * layer


def test_a_model_whose_layers_are_all_local_stops_growing() -> None:
    spec = _spec("mistral-7b-v0.1")
    assert kv_bytes_per_sequence(spec, 8_000) == kv_bytes_per_sequence(spec, 4_096)


def test_weights_of_a_mixture_split_into_shared_and_experts() -> None:
    mixtral = _spec("mixtral-8x7b")
    # 32 layers × 8 experts × three matrices of 4096 × 14336
    assert mixtral.is_moe
    assert mixtral.expert_parameters == pytest.approx(32 * 8 * 3 * 4096 * 14336, rel=0.005)
    assert mixtral.shared_parameters + mixtral.expert_parameters == pytest.approx(mixtral.parameters)
    dense = _spec("llama-2-7b")
    assert (dense.is_moe, dense.expert_parameters, dense.shared_parameters) == (False, 0.0, dense.parameters)
    assert replace(mixtral, experts=None).expert_parameters == 0.0


GOOD = {
    "model_key": "m",
    "layers": "4",
    "hidden": "64",
    "heads": "8",
    "kv_heads": "2",
    "head_dim": "8",
    "parameters": "2000000",
    "native_precision": "bf16",
    "source": "s",
}


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("kv_heads", {"kv_heads": "3"}),
        ("experts_per_token", {"experts": "8"}),
        ("experts_per_token", {"experts": "2", "experts_per_token": "2", "active_parameters": "1000000"}),
        ("active_parameters", {"active_parameters": "1000000"}),
        ("active_parameters", {"experts": "8", "experts_per_token": "2"}),
        ("active_parameters", {"experts": "8", "experts_per_token": "2", "active_parameters": "3000000"}),
        ("sliding_layers", {"sliding_window": "128"}),
        ("sliding_layers", {"sliding_window": "128", "sliding_layers": "5"}),
        ("native_precision", {"native_precision": "fp12"}),
        ("source", {"source": ""}),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(
    tmp_path: Path, column: str, change: dict[str, str]
) -> None:
    path = tmp_path / "llm_models.csv"
    rows = [",".join({**GOOD, **more}.get(name, "") for name in COLUMNS) for more in ({}, change)]
    path.write_text("\n".join([",".join(COLUMNS), *rows]), encoding="utf-8")
    with pytest.raises(CatalogueError, match=f"llm_models.csv line 3, column {column}"):
        read_rows(path, COLUMNS, llm_models._parse)


def test_one_name_for_two_models_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one = _spec("llama-2-7b")
    two = replace(one, model_key="other", aliases=("Llama-2-7B-chat",))
    monkeypatch.setattr(llm_models, "models", lambda: (one, two))
    with pytest.raises(CatalogueError, match="means llama-2-7b and other"):
        llm_models._by_name.__wrapped__()
