"""Real vLLM runs at batch 1 and 8, and a small model's: what the rules about execution say of them, and what not."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CAPTURES = ("llama-2-13b-max_num_seqs_1", "llama-2-13b-max_num_seqs_8", "opt-1.3b-max_num_seqs_1")
RULES = {
    "host-bound-serving",
    "over-sharded",
    "speculative-decoding",
    "phase-split",
    "static-batching",
    "slow-attention",
}


@pytest.fixture
def advice(shared_data: Path, tmp_path: Path) -> dict[str, Any]:
    """Advice on the three runs."""
    url = f"sqlite:///{tmp_path / 'captures.db'}"
    files = [shared_data / "openmetrics" / f"{name}.prom.gz" for name in CAPTURES]
    if not all(path.exists() for path in files):
        pytest.skip(f"not all of {', '.join(CAPTURES)} are under {shared_data}")
    for words in (["import", "openmetrics", *map(str, files)], ["advise", "--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "gpuwise", *words, "--database-url", url],
            capture_output=True, text=True, cwd=ROOT, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.shared_data
@pytest.mark.timeout(240)
def test_small_batches_of_a_large_model_have_arithmetic_to_spare_and_save_no_money(
    advice: dict[str, Any],
) -> None:
    mine = [item for item in advice["recommendations"] if item["rule_id"] in RULES]
    assert {item["rule_id"] for item in mine} == {"speculative-decoding"}, (
        "no host, no split, no kernel is to blame"
    )
    assert len(mine) == 2
    for item in mine:
        assert item["evidence"]["running_p50"] in (1, 8)
        assert item["evidence"]["mbu_ratio"] > 0.75
        assert item["grade"] == "D"
        assert not item["saving"] or not any(item["saving"].values())

    refused = {(item["rule_id"], missing) for item in advice["not_evaluated"] for missing in item["missing"]}
    assert ("speculative-decoding", "weight precision") in refused, (
        "the small model's memory does not tell it"
    )
    assert ("phase-split", "ttft_sum_s") in refused
