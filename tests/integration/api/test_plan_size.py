"""Size a model: REST and command line, prices of users and of the catalogue, and sentences for bad input."""

import json
import sys
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from fleet_for_tests import NOW, settings_for
from starlette.testclient import TestClient

from api.resources.plan_size import model_prices
from gpuwise.__main__ import main
from store.engine import make_engine, session_scope

CONTRACT = [
    *(
        "gpu_key",
        "gpus_needed",
        "weights_bytes",
        "kv_bytes_per_token",
        "kv_bytes",
        "activation_bytes",
        "fits",
    ),
    *("tokens_per_s", "itl_s", "usd_per_hour", "usd_per_million_tokens"),
]
LLAMA = {"model": "llama-3.1-8b", "context_tokens": 4096, "output_tokens": 512, "concurrency": 64}
OWN_CONFIG = {
    "model_type": "llama",
    "_name_or_path": "acme/acme-8b",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def ask(client: TestClient, status: int = 200, **body: Any) -> Any:
    answer = client.post("/api/v1/plan/size", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["plan", "size", *words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(autouse=True)
def settings_of_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's own settings."""
    config = tmp_path / "gpuwise.toml"
    config.write_text("")
    monkeypatch.setenv("GPUWISE_CONFIG", str(config))


def test_every_gpu_model_answers_with_the_fields_of_the_contract(client: TestClient) -> None:
    rows = ask(client, **LLAMA)["items"]
    assert len(rows) > 50
    for row in rows:
        assert list(row)[: len(CONTRACT)] == CONTRACT
        assert row["weights_bytes"] == pytest.approx(16_060_522_496)
        assert row["kv_bytes_per_token"] == 131_072
        assert (row["gpus_needed"] is None) == (row["tokens_per_s"] is None)
        assert row["why_not"] if row["gpus_needed"] is None else row["fits"]


def test_money_follows_from_price_gpus_and_rate(client: TestClient) -> None:
    answer = ask(client, **LLAMA, gpu=["H100-SXM5-80GB"])
    (row,) = answer["items"]
    assert row["price_basis"] == "your price for NVIDIA H100 80GB HBM3"
    assert row["usd_per_gpu_hour"] == "2.00"
    assert Decimal(row["usd_per_hour"]) == 2 * row["gpus_needed"]
    units = -(-row["gpus_needed"] // row["gpus_per_unit"])
    assert Decimal(row["usd_per_hour_in_units"]) == 2 * units * row["gpus_per_unit"]
    token = 1e6 * float(row["usd_per_hour"]) / (3600 * row["tokens_per_s"])
    assert float(row["usd_per_million_tokens"]) == pytest.approx(token, abs=1e-6)
    assert float(row["usd_per_million_tokens_in_out"]) == pytest.approx(token / 8, abs=1e-6)
    bounds = row["usd_per_million_tokens_range"]
    assert float(bounds["p10"]) < token < float(bounds["p90"])
    assert answer["asked"]["assumed"] == ["weights as published (bf16)"]


def test_cheapest_first_then_unpriced_then_what_misses_the_promise(client: TestClient) -> None:
    for sort, field in (("hour", "usd_per_hour"), ("token", "usd_per_million_tokens")):
        rows = ask(client, **LLAMA, itl_slo_ms=12, sort=sort)["items"]
        groups = [
            (2 if row["gpus_needed"] is None else int(not row["slo_met"]), row["usd_per_hour"] is None)
            for row in rows
        ]
        assert groups == sorted(groups)
        assert {group for group, _ in groups} == {0, 1, 2}
        for wanted in set(groups):
            money = [
                Decimal(row[field])
                for row, group in zip(rows, groups, strict=True)
                if group == wanted and row[field] is not None
            ]
            assert money == sorted(money)
        assert all(row["itl_s"] <= 0.012 for row in rows if row["slo_met"])
        assert all("over 12 ms" in row["why_not"] for row in rows if row["slo_met"] is False)


def test_a_price_for_all_is_of_the_cards_that_are_here(
    fresh_client: TestClient, filled_database: str
) -> None:
    keys = ["H100-SXM5-80GB", "H200-SXM-141GB", "MI300X"]
    for price in fresh_client.get("/api/v1/prices").json()["items"]:
        assert fresh_client.delete(f"/api/v1/prices/{price['id']}").status_code == 204
    body = {"scope_kind": "all", "usd_per_gpu_hour": "1.5", "gpus_per_unit": 1}
    assert fresh_client.post("/api/v1/prices", json=body).status_code == 201
    with session_scope(make_engine(filled_database)) as session:
        found = model_prices(session, settings_for(filled_database), NOW, keys)
    assert (found[keys[0]].usd_per_gpu_hour, found[keys[0]].from_user) == (Decimal("1.5"), True)
    assert found[keys[1]].from_user is False
    assert keys[2] not in found


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"model": "lama-3.1-8b"},
            "model is 'lama-3.1-8b', which the catalogue does not know: did you mean llama-3.1-8b",
        ),
        ({"model": None}, "model and config: give one of them"),
        ({"config": OWN_CONFIG}, "model and config: give one of them"),
        ({"model": None, "config": {}}, "config has none of num_hidden_layers"),
        ({"precision": "int3"}, "precision is 'int3'"),
        ({"kv_precision": "int4"}, "kv_precision is 'int4'"),
        ({"gpu": ["H100"]}, "gpu is 'H100', which the catalogue does not know: did you mean H100-PCIE-80GB"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"requests_per_s": 2.0}, "concurrency and requests_per_s: give one of them"),
        ({"context_tokens": 512}, "output_tokens is 512"),
        ({"itl_slo_ms": 0}, "itl_slo_ms is 0"),
        ({"ttft_slo_ms": 1e300}, "ttft_slo_ms is 1e+300"),
        ({"concurrency": None, "requests_per_s": 1e-300}, "requests_per_s is 1e-300"),
        ({"sort": "beauty"}, "sort is 'beauty'"),
    ],
)
def test_bad_input_is_a_sentence_with_field_and_value(
    client: TestClient, change: dict[str, Any], says: str
) -> None:
    assert says in ask(client, 400, **{**LLAMA, **change})["detail"]


def test_a_field_of_the_wrong_kind_is_refused(client: TestClient) -> None:
    assert "concurrency" in ask(client, 422, **{**LLAMA, "concurrency": "many"})["detail"]
    assert "colour" in ask(client, 422, **LLAMA, colour="red")["detail"]


def test_what_is_not_given_is_assumed_and_said(client: TestClient) -> None:
    asked = ask(client, model="qwen3-8b", gpu=["L4"])["asked"]
    assert (asked["context_tokens"], asked["output_tokens"], asked["concurrency"]) == (4096, 512, 32)
    assert asked["assumed"] == [
        "weights as published (bf16)",
        "context of 4,096 tokens",
        "512 of them generated",
        "32 requests at once",
    ]


def test_json_of_the_command_line_is_the_items_of_rest(
    capsys: pytest.CaptureFixture[str], client: TestClient, filled_sqlite: str
) -> None:
    words = ["--model", "llama-3.1-8b", "--requests-per-s", "3", "--gpu", "L4", "--gpu", "H100-SXM5-80GB"]
    code, out, err = run(capsys, *words, "--json", "--database-url", filled_sqlite)
    assert (code, err) == (0, "")
    asked = ask(client, model="llama-3.1-8b", requests_per_s=3.0, gpu=["L4", "H100-SXM5-80GB"])
    assert json.loads(out) == asked["items"]


@pytest.mark.parametrize("by_stdin", [True, False])
def test_a_model_of_ones_own_is_read_from_its_config(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    filled_sqlite: str,
    by_stdin: bool,
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(OWN_CONFIG))
    monkeypatch.setattr(sys, "stdin", StringIO(json.dumps(OWN_CONFIG)))
    code, out, _ = run(
        capsys,
        "--config",
        "-" if by_stdin else str(path),
        "--gpu",
        "H100-SXM5-80GB",
        "--database-url",
        filled_sqlite,
    )
    assert code == 0
    assert out.startswith("acme-8b, 8.03B weights in bf16")
    assert "weights are counted from config.json" in out


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "is no JSON"), ("[]", "is no JSON object"), (None, "No such file"), ("\udcff", "is no JSON")],
)
def test_a_config_that_cannot_be_read_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str | None, says: str
) -> None:
    path = tmp_path / "config.json"
    if text is not None:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    code, out, err = run(capsys, "--config", str(path))
    assert (code, out) == (2, "")
    assert str(path) in err
    assert says in err


def test_the_table_fits_a_terminal_and_says_what_it_rests_on(
    capsys: pytest.CaptureFixture[str], filled_sqlite: str
) -> None:
    words = [
        "--model",
        "llama-3.1-405b",
        "--precision",
        "fp8",
        "--itl-slo-ms",
        "20",
        "--database-url",
        filled_sqlite,
    ]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    head, table, missed, unsized, basis = out.split("\n\n")
    assert max(map(len, out.splitlines())) <= 100
    head, basis = (" ".join(part.split()) for part in (head, basis))
    assert "ITL ≤ 20 ms" in head
    assert "Rule of thumb" in head
    assert "Assumed: context of 4,096 tokens; 512 of them generated; 32 requests at once." in head
    assert table.startswith("GPU")
    assert missed.startswith("Not within the promise")
    assert unsized.startswith("Not sized:")
    assert "Price: catalogue: median on-demand" in basis

    assert "\u00a0" not in out
