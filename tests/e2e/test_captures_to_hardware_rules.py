"""Eight real vLLM runs of minutes: no rule on hardware may claim anything, and each says what it lacks."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HARDWARE = {
    "input-bound",
    "pcie-bound",
    "gpu-imbalance",
    "power-cap",
    "decode-clock",
    "throttled",
    "slow-clock",
    "unhealthy-gpu",
    "tensor-cores-unused",
}


def gpuwise(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gpuwise", *words], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.shared_data
@pytest.mark.timeout(240)
def test_minutes_of_serving_give_no_advice_on_hardware_and_say_why(shared_data: Path, tmp_path: Path) -> None:
    captures = sorted((shared_data / "openmetrics").glob("*.prom.gz"))
    if not captures:
        pytest.skip("the captures of vLLM runs are not here")
    url = f"sqlite:///{tmp_path}/captures.db"
    gpuwise("import", "openmetrics", *map(str, captures), "--database-url", url)
    advice: dict[str, Any] = json.loads(gpuwise("advise", "--json", "--database-url", url))
    assert not [item for item in advice["recommendations"] if item["rule_id"] in HARDWARE]
    refused = {item["rule_id"]: item for item in advice["not_evaluated"] if item["rule_id"] in HARDWARE}
    assert {"throttled", "slow-clock", "pcie-bound", "unhealthy-gpu", "decode-clock"} <= set(refused)
    assert "never asked" in refused["unhealthy-gpu"]["why"]
    assert all(item["missing"] for item in refused.values())
