"""Half an hour of real vLLM runs is no fortnight of peaks: sizing and sharing refuse, by name, and save nothing."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.shared_data


def gpuwise(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gpuwise", *words], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def advice(shared_data: Path, tmp_path: Path) -> Any:
    files = [
        str(shared_data / "openmetrics" / f"{name}.prom.gz")
        for name in ("llama-2-13b-max_num_seqs_1", "opt-1.3b-max_num_seqs_1")
    ]
    url = f"sqlite:///{tmp_path / 'captures.db'}"
    gpuwise("import", "openmetrics", *files, "--database-url", url)
    return json.loads(gpuwise("advise", "--json", "--database-url", url))


def test_short_captures_are_refused_and_save_nothing(advice: Any) -> None:
    ours = {"oversized-gpu", "shareable-gpu"}
    assert not [each for each in advice["recommendations"] if each["rule_id"] in ours]
    refused = [each for each in advice["not_evaluated"] if each["rule_id"] == "oversized-gpu"]
    assert len(refused) == 2
    assert {tuple(each["missing"]) for each in refused} <= {("time",), ("busy time",)}
