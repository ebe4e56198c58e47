"""Eight real vLLM runs on H100 64 GB: files in, figures and advice out, through the command line, on both databases.

The truth is computed here from the files' own text, by a parser of four lines that shares nothing with the importer.
"""

import gzip
import itertools
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
Series = list[tuple[float, float]]


@dataclass(frozen=True)
class Truth:
    """What one capture says of itself."""

    gpu_uuid: str
    energy_j: float
    tokens_per_s: float
    busy_s: float
    generated: float


def read_truth(path: Path) -> Truth:
    series: dict[str, Series] = {}
    uuid = ""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            name = line.split("{", 1)[0]
            value, at = line.rsplit("}", 1)[1].split()
            series.setdefault(name, []).append((float(at), float(value)))
            if not uuid and 'UUID="' in line:
                uuid = line.split('UUID="')[1].split('"')[0]
    power = series["DCGM_FI_DEV_POWER_USAGE"]
    energy = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(power))
    busy = [at for at, running in series["vllm:num_requests_running"] if running > 0]
    tokens = dict(series["vllm:generation_tokens_total"])
    span = max(busy) - min(busy)
    return Truth(uuid, energy, (tokens[max(busy)] - tokens[min(busy)]) / span, span, max(tokens.values()))


def gpuwise(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuwise", *words], capture_output=True, text=True, cwd=ROOT, check=False
    )


def table(url: str, *words: str) -> Any:
    done = gpuwise(*words, "--json", "--database-url", url)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def captures(shared_data: Path) -> list[Path]:
    return sorted((shared_data / "openmetrics").glob("*.prom.gz"))


@pytest.fixture
def imported(captures: list[Path], ready_database: str) -> str:
    done = gpuwise("import", "openmetrics", *map(str, captures), "--database-url", ready_database)
    assert done.returncode == 0, done.stderr
    return ready_database


def by_run(captures: list[Path]) -> dict[str, Truth]:
    return {path.name.removesuffix(".prom.gz"): read_truth(path) for path in captures}


def subject_of(truth: Truth, engines: list[dict[str, Any]]) -> str:
    return next(row["engine"] for row in engines if row["gpu_uuids"] == [truth.gpu_uuid])


@pytest.mark.shared_data
@pytest.mark.timeout(240)
def test_captures_become_true_figures_and_the_right_advice(captures: list[Path], imported: str) -> None:
    truths = by_run(captures)
    engines = table(imported, "engines")
    energy = {row["key"]: row for row in table(imported, "energy", "--by", "gpu")}
    assert len(engines) == len(truths) == len(energy) == 8

    for name, truth in truths.items():
        row = next(row for row in engines if row["gpu_uuids"] == [truth.gpu_uuid])
        tolerance = 0.08 if truth.busy_s < 120 else 0.03
        assert row["tokens_per_s"] == pytest.approx(truth.tokens_per_s, rel=tolerance), name
        assert row["tokens_generated"] == pytest.approx(truth.generated, rel=0.001), name
        assert energy[truth.gpu_uuid]["energy_j"] == pytest.approx(truth.energy_j, rel=0.005), name
        assert energy[truth.gpu_uuid]["method"] == "integrated"

    advice = table(imported, "advise")
    check_advice(truths, engines, advice)

    before = (engines, energy)
    again = gpuwise("import", "openmetrics", *map(str, captures), "--database-url", imported)
    assert again.returncode == 0, again.stderr
    after = (
        table(imported, "engines"),
        {row["key"]: row for row in table(imported, "energy", "--by", "gpu")},
    )
    assert after == before, "importing twice changes nothing"


def check_advice(truths: dict[str, Truth], engines: list[dict[str, Any]], advice: dict[str, Any]) -> None:
    found = {(r["rule_id"], r["subject"]["id"]): r for r in advice["recommendations"]}

    for name in ("llama-2-13b-max_num_seqs_1", "llama-2-13b-max_num_seqs_8"):
        engine = subject_of(truths[name], engines)
        assert ("memory-bound-decode", engine) in found, name
        small = found["small-batch", engine]
        assert "configuration" in small["state"], name
        assert any("--max-num-seqs" in (action.get("command") or "") for action in small["actions"])

    kv_limited = subject_of(truths["llama-2-13b-max_num_seqs_512"], engines)
    assert "configuration" not in found.get(("small-batch", kv_limited), {"state": ""})["state"]
    saturated = subject_of(truths["opt-1.3b-max_num_seqs_512"], engines)
    assert ("small-batch", saturated) not in found

    words = json.dumps([[r["title"], r["because"], r["actions"]] for r in advice["recommendations"]]).lower()
    assert "bigger gpu" not in words
    assert "larger gpu" not in words
    assert "more gpu memory" not in words

    short = [r for r in advice["recommendations"] if r["grade"] == "A"]
    assert not short, "minutes of data are never graded like two weeks of it"
    assert advice["not_evaluated"], "what could not be judged is said"
    assert all(item["why"] for item in advice["not_evaluated"])
