"""One look: a full card tells every field of the contract, an old one leaves unknown what it does not know."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from live_agent import ROOT, environment_of

from core.metrics import ENGINE_COLUMNS, GPU_COLUMNS, HOST_COLUMNS
from tests.standin import profiles
from tests.standin.scenario import GIB, MIB, Scenario

NOT_BEFORE_AMPERE = {"slowed_board_limit_s", "slowed_low_utilization_s", "slowed_reliability_s"}
"""Cumulative times that the H100 of the stand-in does not count (fields 77 to 79)."""


def once(folder: Path, scenario: Scenario) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "gpuwise", "agent", "--once", "--hostname", "node-a", "--dcgm-url", ""]
    done = subprocess.run(
        command,
        env=environment_of(folder, scenario),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@contextmanager
def vllm(folder: Path) -> Iterator[tuple[int, str]]:
    """A process with the command line of a vLLM server, and the page of one."""
    script = folder / "vllm"
    script.write_text(
        "import sys\nfrom http.server import ThreadingHTTPServer\nfrom bench.engine_page import _Page\n"
        "server = ThreadingHTTPServer(('127.0.0.1', int(sys.argv[3])), _Page)\nprint(server.server_port, flush=True)\n"
        "server.serve_forever()\n"
    )
    port = _free_port()
    words = [sys.executable, str(script), "serve", "--port", str(port), "--max-num-seqs", "64"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline().strip() == str(port)
        try:
            yield server.pid, f"127.0.0.1:{port}"
        finally:
            server.kill()


def _free_port() -> int:
    import socket

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def test_a_busy_card_tells_every_field_of_the_contract(tmp_path: Path) -> None:
    with vllm(tmp_path) as (pid, address):
        scenario = (
            profiles.busy_decode().processes(f"compute:{pid}:{71 * GIB}").process_util(f"{pid}:95:57:0:0")
        )
        (gpu,) = once(tmp_path, scenario)
    assert {name for name in GPU_COLUMNS if gpu[name] is None} == NOT_BEFORE_AMPERE
    assert gpu["busy_ratio"] == 0.97
    assert gpu["power_w"] == 420
    assert abs(gpu["energy_j"] / gpu["covered_s"] - 420) < 4
    assert gpu["sm_active_ratio"] == pytest.approx(0.7)
    assert gpu["activity"] == "memory_bound"
    assert [
        name for name in ("host", "index", "model", "memory_total_bytes", "pci_bus_id") if gpu[name] is None
    ] == []
    assert [
        name for name in ("driver_version", "compute_capability", "power_averaging_s") if gpu[name] is None
    ] == []
    assert gpu["health"]["ecc_mode"] == "enabled"
    assert gpu["health"]["recovery_action"] == "none"
    (process,) = gpu["processes"]
    assert (process["pid"], process["busy_ratio"], process["memory_used_bytes"]) == (
        pid,
        pytest.approx(0.95),
        71 * GIB,
    )
    assert process["workload"]["kind"]
    assert process["workload"]["key"]
    assert process["name"]
    assert process["user"]
    (engine,) = gpu["engines"]
    assert (engine["kind"], engine["model"]) == ("vllm", "meta-llama/Llama-3.1-8B")
    assert engine["settings"]["max_num_seqs"] == "64"
    assert engine["gpu_uuids"] == [gpu["gpu_uuid"]]
    assert address.rpartition(":")[2] in engine["engine"]
    assert engine["running_requests"] >= 32
    assert set(ENGINE_COLUMNS) <= set(engine)
    assert set(HOST_COLUMNS) <= set(gpu["machine"])
    assert gpu["machine"]["host_memory_used_bytes"] > 0
    assert gpu["machine"]["cpu_busy_ratio"] is not None


def test_what_a_card_does_not_know_is_null_and_never_zero(tmp_path: Path) -> None:
    bare = Scenario(card={}).at(0, 0, "uuid", "GPU-bare").fail("nvmlDeviceGetComputeRunningProcesses_v3", 3)
    folders = tmp_path / "old", tmp_path / "bare"
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor() as pool:  # each looks for some seconds
        (gpu,), (nameless,) = pool.map(once, folders, (profiles.old_driver_470(), bare))
    assert nameless["gpu_uuid"] == "GPU-bare"
    assert {name: nameless[name] for name in GPU_COLUMNS if nameless[name] is not None} == {}
    assert (nameless["activity"], nameless["processes"], nameless["health"]) == ("unknown", [], {})

    assert (gpu["busy_ratio"], gpu["power_w"], gpu["memory_used_bytes"]) == (0.8, 250, 20 * GIB + 600 * MIB)
    # Version 1 of the memory call, the only one there, counts the reserve as used.
    unknown = {name for name in GPU_COLUMNS if gpu[name] is None}
    profiling = {name for name in GPU_COLUMNS if name.endswith("_active_ratio")} | {"sm_occupancy_ratio"}
    assert profiling <= unknown
    assert {"memory_reserved_bytes", "jpeg_busy_ratio", "ofa_busy_ratio", "temperature_margin_c"} <= unknown
    assert {"slowed_sw_thermal_s", "slowed_hw_thermal_s", "slowed_power_brake_s"} <= unknown
    assert gpu["activity"] == "busy"
    assert "recovery_action" not in gpu["health"]
    assert "row_remap_pending" not in gpu["health"]
    assert {one["pid"]: one["memory_used_bytes"] for one in gpu["processes"]} == {6101: 19 * GIB, 77: GIB}
