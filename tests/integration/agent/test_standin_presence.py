"""GPUs that are lost, vanish, change places, sleep or may not be opened, and a driver that is replaced underneath."""

from pathlib import Path

import pytest
from live_agent import LiveAgent

from core.clock import now_ms
from tests.standin import profiles
from tests.standin.scenario import Scenario, gpu_uuid

LOST, UNKNOWN, NO_PERMISSION, MISMATCH = 15, 999, 4, 18


def busy(gpus: int, start_s: float) -> Scenario:
    return profiles.busy_decode(gpus, start_s=start_s)


def whole(agent: LiveAgent, gpu: int, since_ms: int = 0) -> None:
    """Wait for a sample that readings vouch for from end to end."""
    agent.until(lambda: agent.samples(gpu_uuid(gpu), f"covered_ms = 1000 AND ts_ms >= {since_ms}"))


def some(agent: LiveAgent, gpu: int, since_ms: int) -> None:
    """Wait for a sample that began after an instant."""
    agent.until(lambda: agent.samples(gpu_uuid(gpu), f"covered_ms > 0 AND ts_ms >= {since_ms}"))


def test_lost_cards_are_an_event_and_a_gap_and_come_back_by_their_uuid(tmp_path: Path) -> None:
    start_s = now_ms() / 1000
    healthy = busy(3, start_s)
    with LiveAgent(tmp_path, healthy) as agent:
        whole(agent, 2)
        driver_pid = agent.account["driver_pid"]

        agent.change(busy(3, start_s).lost(1, at=0))
        agent.until(lambda: agent.about("lost") == {gpu_uuid(1)})
        (event,) = agent.events("lost")
        assert event["code"] == LOST
        lost_ms = event["ts_ms"]
        some(agent, 2, now_ms())
        assert agent.samples(gpu_uuid(1), f"ts_ms > {lost_ms}") == []  # a gap, not a row of nothing
        agent.change(healthy)
        agent.until(lambda: agent.about("found") == {gpu_uuid(1)})
        some(agent, 1, now_ms())

        # GPU 0 vanishes: what was index 2 is index 1 now, and stays itself.
        agent.change(busy(3, start_s).absent(0).values(gpu=2, power_mw=100_000))
        agent.until(lambda: gpu_uuid(0) in agent.about("lost"))
        moved = agent.until(
            lambda: agent.rows("SELECT * FROM gpu WHERE gpu_uuid = ? AND gpu_index = 1", gpu_uuid(2))
        )
        some(agent, 2, now_ms())
        assert len(moved) == 1
        assert agent.samples(gpu_uuid(2))[-1]["power_w"] == 100
        assert agent.samples(gpu_uuid(1))[-1]["power_w"] == 420
        assert agent.about("lost") == {gpu_uuid(0), gpu_uuid(1)}
        agent.change(healthy)
        agent.until(lambda: gpu_uuid(0) in agent.about("found"))
        agent.until(lambda: agent.rows("SELECT 1 FROM gpu WHERE gpu_uuid = ? AND gpu_index = 2", gpu_uuid(2)))

        # A call that fails for ever with "unknown error": the card is lost once, not found and lost every minute.
        agent.change(busy(3, start_s).fail("nvmlDeviceGetUtilizationRates", UNKNOWN, gpu=1))
        agent.until(lambda: len(agent.events("lost")) == 3)
        some(agent, 0, now_ms() + 1000)
        assert len(agent.events("lost")) == 3
        assert len(agent.events("found")) == 2
        # … while one of the slow calls takes only what it would have told.
        agent.change(busy(3, start_s).fail("nvmlDeviceGetComputeRunningProcesses_v3", UNKNOWN, gpu=1))
        agent.until(lambda: len(agent.events("found")) == 3)
        agent.until(
            lambda: agent.samples(
                gpu_uuid(1), "process_count IS NULL AND busy_ratio IS NOT NULL AND covered_ms = 1000"
            )
        )
        some(agent, 1, now_ms() + 500)
        assert len(agent.events("lost")) == 3
        assert agent.account["driver_pid"] == driver_pid  # all of it in one driver process


def test_a_driver_that_refuses_everything_is_said_once_and_taken_up_again(tmp_path: Path) -> None:
    start_s = now_ms() / 1000
    healthy = busy(2, start_s)
    with LiveAgent(
        tmp_path, busy(2, start_s).fail("nvmlDeviceGetHandleByIndex_v2", NO_PERMISSION, gpu=0)
    ) as agent:
        whole(agent, 1)
        assert agent.rows("SELECT 1 FROM gpu WHERE gpu_uuid = ?", gpu_uuid(0)) == []
        agent.change(busy(2, start_s).fail("*", UNKNOWN).fail("nvmlInit_v2", UNKNOWN))
        agent.until(lambda: agent.about("lost") == {gpu_uuid(1)})
        agent.until(lambda: [line for line in agent.log if "device rules" in line.get("why", "")])
        agent.until(lambda: agent.account["driver_pid"] is None)
        agent.change(healthy)
        agent.until(lambda: agent.about("found") == {gpu_uuid(1)})
        whole(agent, 0)
        assert len([line for line in agent.log if "device rules" in line.get("why", "")]) == 1


def test_a_driver_upgrade_is_named_in_one_line_and_outlived(tmp_path: Path) -> None:
    start_s = now_ms() / 1000
    version = tmp_path / "version"
    version.write_text("NVRM version: 580.95.05\n")
    with LiveAgent(tmp_path, busy(1, start_s)) as agent:
        whole(agent, 0)
        # The packages are replaced: the new library does not fit the old module, whose version file changes later.
        agent.change(busy(1, start_s).fail("nvmlInit_v2", MISMATCH))
        version.write_text("NVRM version: 590.10\n")
        agent.until(lambda: agent.about("lost") == {gpu_uuid(0)})
        # The module is loaded anew, its counters begin at 0.
        upgraded = busy(1, start_s)
        upgraded.driver = "590.10.01"
        since_start_s = now_ms() / 1000 - start_s
        upgraded.at(since_start_s, "*", "energy", "restart")
        version.write_text("NVRM version: 590.10.01\n")
        agent.change(upgraded)
        agent.until(lambda: agent.about("found") == {gpu_uuid(0)})
        back_ms = agent.events("found")[0]["ts_ms"]
        whole(agent, 0, back_ms)
        (event,) = agent.events("driver")
        assert "590.10.01 instead of 580.95.05" in event["message"]
        assert len([line for line in agent.log if "upgrade" in str(line)]) == 1
        assert [line["event"] for line in agent.log if line["event"] == "driver answers again"]
        for sample in agent.samples(gpu_uuid(0), "energy_j IS NOT NULL"):
            assert sample["energy_j"] == pytest.approx(0.42 * sample["covered_ms"], rel=0.03, abs=1)


def test_a_card_that_sleeps_is_not_asked(tmp_path: Path) -> None:
    sysfs = tmp_path / "pci"
    for number, state in enumerate(("active", "suspended")):
        folder = sysfs / f"0000:{12 + 16 * number:02x}:00.0"
        (folder / "power").mkdir(parents=True)
        (sysfs.parent / "nvidia").mkdir(exist_ok=True)
        (folder / "driver").symlink_to(sysfs.parent / "nvidia")
        for name, text in {
            "vendor": "0x10de",
            "class": "0x030200",
            "power/control": "auto",
            "power/runtime_status": state,
        }.items():
            (folder / name).write_text(f"{text}\n")
    scenario = busy(2, now_ms() / 1000)
    with LiveAgent(tmp_path, scenario, driver={"sysfs": str(sysfs)}) as agent:
        whole(agent, 0)
        agent.order("pause", "--for", "2s")
        calls = agent.calls()
        assert ("nvmlDeviceGetUtilizationRates", 0) in calls
        assert [call for call in calls if call[1] == 1] == []
        (sysfs / "0000:1c:00.0" / "power" / "runtime_status").write_text("active\n")
        whole(agent, 1)  # awake: found by the next look round of the resumed agent
        assert agent.events("lost") == []
