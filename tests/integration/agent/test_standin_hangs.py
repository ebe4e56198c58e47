"""A driver call that never returns: its GPU is unknown, everything else goes on, and it comes back by itself."""

import threading
import time
from pathlib import Path

import pytest
from live_agent import LiveAgent

from core.clock import now_ms
from tests.standin import profiles
from tests.standin.scenario import Scenario, gpu_uuid


def busy(gpus: int, *, lock: bool = False) -> Scenario:
    """On one timeline for all driver processes."""
    return profiles.busy_decode(gpus, start_s=now_ms() / 1000, global_lock=lock)


def hung_and_cleared(agent: LiveAgent, hanging: Scenario, healthy: Scenario, gpu: int) -> None:
    """The whole story of one GPU that hangs beside others."""
    lost, other = gpu_uuid(gpu), gpu_uuid(0)
    agent.until(lambda: agent.samples(lost, "covered_ms = 1000"))
    first_pid = agent.account["driver_pid"]
    began_ms = now_ms()
    agent.change(hanging)
    agent.until(lambda: agent.about("stuck") == {lost})
    told_ms = now_ms()
    agent.until(
        lambda: agent.samples(lost, f"activity = 'unknown' AND covered_ms = 0 AND ts_ms > {began_ms}")
    )
    # The others go on in the fresh process, and so does the host.
    agent.until(lambda: agent.samples(other, f"covered_ms = 1000 AND ts_ms > {told_ms}"))
    assert agent.rows(f"SELECT 1 FROM host_sample WHERE ts_ms > {began_ms}")
    assert agent.account["driver_pid"] != first_pid
    assert not Path(f"/proc/{first_pid}").exists()
    assert agent.about("stuck") == {lost}
    assert agent.account["silent_gpu_indices"] == [gpu]
    agent.change(healthy)
    agent.until(lambda: agent.about("found") == {lost})
    back_ms = now_ms()
    agent.until(lambda: agent.samples(lost, f"covered_ms = 1000 AND ts_ms > {back_ms}"))
    assert agent.account["silent_gpu_indices"] == []
    for sample in agent.samples(lost, "energy_j IS NOT NULL"):
        assert sample["energy_j"] == pytest.approx(0.42 * sample["covered_ms"], rel=0.03, abs=1)


@pytest.mark.parametrize(
    ("function", "gpu", "lock"),
    [
        ("nvmlDeviceGetComputeRunningProcesses_v3", 1, True),
        ("nvmlDeviceGetUtilizationRates", 2, True),
    ],
)
def test_a_gpu_whose_call_hangs_is_left_alone_and_comes_back(
    function: str, gpu: int, lock: bool, tmp_path: Path
) -> None:
    healthy = busy(3, lock=lock)
    hanging = busy(3, lock=lock).hang(function, gpu=gpu)
    hanging.start_s = healthy.start_s
    with LiveAgent(tmp_path, healthy) as agent:
        hung_and_cleared(agent, hanging, healthy, gpu)
        assert len(agent.events("stuck")) == 1
        assert [line["gpu_index"] for line in agent.log if "left alone" in line["event"]] == [gpu]


def test_a_driver_that_hangs_as_a_whole_makes_every_gpu_unknown_while_the_host_goes_on(
    tmp_path: Path,
) -> None:
    healthy = busy(2)
    both = {gpu_uuid(0), gpu_uuid(1)}
    with LiveAgent(tmp_path, busy(2).hang("nvmlInit_v2")) as agent:
        agent.until(lambda: any("does not answer" in line.get("why", "") for line in agent.log))
        agent.until(lambda: agent.rows("SELECT 1 FROM host_sample"))
        agent.change(healthy)
        agent.until(lambda: agent.samples(gpu_uuid(1), "covered_ms = 1000"))
        agent.change(busy(2).hang("nvmlDeviceGetCount_v2"))
        agent.until(lambda: agent.about("stuck") == both)
        agent.until(lambda: agent.samples(gpu_uuid(0), "activity = 'unknown' AND covered_ms = 0"))
        agent.change(healthy)
        agent.until(lambda: agent.about("found") == both)


def test_a_wait_for_events_that_hangs_costs_nothing_but_events(tmp_path: Path) -> None:
    healthy = busy(2)
    with LiveAgent(tmp_path, busy(2).hang("nvmlEventSetWait_v2")) as agent:
        agent.until(lambda: any("wait for driver events" in line["event"] for line in agent.log))
        said_ms = now_ms()
        agent.until(lambda: agent.samples(gpu_uuid(1), f"covered_ms = 1000 AND ts_ms > {said_ms}"))
        assert agent.events("stuck") == []
        healthy.xid(79, gpu=1, at=now_ms() / 1000 - (healthy.start_s or 0) + 4)
        agent.change(healthy)
        agent.until(lambda: agent.about("xid") == {gpu_uuid(1)})


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_nothing_piles_up_over_ten_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader alone: processes and threads of ten hangs, each cleared again."""
    import json

    from live_agent import DRIVER, QUICK, environment_of

    from agent import reader as module
    from agent.driver import process

    healthy = busy(2)
    hanging = busy(2).hang("nvmlDeviceGetUtilizationRates", gpu=1)
    for name, value in environment_of(tmp_path, healthy).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GPUWISE_TEST_DRIVER", json.dumps(QUICK))
    monkeypatch.setattr(process, "PROGRAM", (str(DRIVER),))
    for name, seconds in {
        "FIRST_WAIT_S": 0.1,
        "CALL_HANG_S": 0.3,
        "STEADY_S": 0.0,
        "LONGEST_WAIT_S": 0.1,
    }.items():
        monkeypatch.setattr(module, name, seconds)
    reader = module.Reader(interval_s=0.1, gpm_s=1.0, version_file=tmp_path / "none")
    threads, pids, files = threading.active_count(), 0, _open_files()
    deadline = time.monotonic() + 60
    try:
        for _cycle in range(10):
            for scenario, wanted in ((hanging, [1]), (healthy, [])):
                scenario.write(tmp_path / "scenario")
                while reader.silent != wanted:
                    reader.poll(0.05)
                    pids = max(pids, len(reader.pids))
                    assert time.monotonic() < deadline
        assert pids <= 2  # one that reads, one that asks the silent GPU
        assert threading.active_count() == threads
    finally:
        reader.close()
    assert _open_files() <= files
