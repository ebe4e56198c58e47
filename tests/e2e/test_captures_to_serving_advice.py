"""Real vLLM runs of one load at several batch limits: what the rules about replicas, queue and KV cache say of them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SERVING = {
    "too-many-replicas",
    "overload",
    "kv-cache-precision",
    "kv-thrash",
    "kv-overprovisioned",
    "no-prefix-cache",
}


@pytest.fixture
def advice(shared_data: Path, tmp_path: Path) -> dict[str, Any]:
    """Advice on the runs of Llama-2-13B."""
    url = f"sqlite:///{tmp_path / 'captures.db'}"
    files = sorted((shared_data / "openmetrics").glob("llama-2-13b-*.prom.gz"))
    if not files:
        pytest.skip(f"no captures of Llama-2-13B under {shared_data}")
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
def test_a_batch_that_fills_the_cache_thrashes_and_minutes_save_nothing(advice: dict[str, Any]) -> None:
    told: dict[str, list[dict[str, Any]]] = {name: [] for name in SERVING}
    for item in advice["recommendations"]:
        if item["rule_id"] in SERVING:
            told[item["rule_id"]].append(item)
    refused = {(item["rule_id"], tuple(item["missing"])) for item in advice["not_evaluated"]}

    full = {item["subject"]["id"] for item in told["kv-thrash"]}
    assert len(full) == 2, "the runs at 128 and 512 preempt all the time, those at 1, 8 and 64 never"
    assert full == {item["subject"]["id"] for item in told["kv-cache-precision"]}
    for item in told["kv-cache-precision"]:
        gain = item["evidence"]
        assert 1 < gain["gain_p50"] < 2, "twice the tokens are never twice the rate"

    (queue,) = told["overload"]
    assert "offline batch" in queue["state"], "a benchmark puts all its requests in at once, and that is said"
    assert not told["too-many-replicas"]
    assert not told["kv-overprovisioned"], "half an hour holds no peak of two weeks"
    assert ("too-many-replicas", ("time",)) in refused
    assert not told["no-prefix-cache"]
    assert ("no-prefix-cache", ("how much prompts share",)) in refused
    for items in told.values():
        for item in items:
            assert not item["saving"] or not any(item["saving"].values()), item["rule_id"]
