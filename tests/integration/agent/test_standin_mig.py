"""MIG: instances with figures of their own, nothing copied from the card; and processes as every driver lists them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_agent import LiveAgent

from core.clock import now_ms
from tests.standin import profiles
from tests.standin.scenario import GIB, MIB, Scenario, gpu_uuid, mig_uuid

OF_THE_CARD = ("power_w", "energy_j", "temperature_c", "sm_clock_hz", "busy_ratio", "memory_busy_ratio")
MIG_CHANGED = "0x100"


@pytest.fixture
def pids() -> Iterator[list[int]]:
    """Three processes that live: the agent asks the kernel who they are."""
    held = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(3)]
    yield [one.pid for one in held]
    for one in held:
        one.kill()
        one.communicate()


def test_instances_have_figures_of_their_own_and_are_made_anew(tmp_path: Path, pids: list[int]) -> None:
    start_s = now_ms() / 1000

    def cut() -> Scenario:
        scenario = profiles.mig(start_s=start_s)
        return scenario.processes(f"compute:{pids[0]}:{38 * GIB}:1", f"compute:{pids[1]}:{16 * GIB}:2", gpu=0)

    card, busy, parked, empty = gpu_uuid(0), mig_uuid(0, 1), mig_uuid(0, 2), mig_uuid(0, 7)
    with LiveAgent(tmp_path, cut()) as agent:
        agent.until(lambda: agent.samples(busy, "covered_ms = 1000 AND sm_active_ratio IS NOT NULL"))
        agent.until(lambda: agent.processes(busy) and agent.processes(parked))
        agent.until(lambda: agent.samples(card, "covered_ms = 1000 AND sm_active_ratio IS NOT NULL"))

        # The card: power and clocks, but no share of time, which NVML refuses under MIG; idle is not claimed.
        for sample in agent.samples(card):
            assert sample["busy_ratio"] is None
            assert sample["activity"] not in {"empty", "parked"}
        assert agent.samples(card)[-1]["power_w"] == pytest.approx(310)

        sample = agent.samples(busy, "sm_active_ratio IS NOT NULL")[-1]
        assert sample["sm_active_ratio"] == pytest.approx(0.77)
        assert sample["memory_used_bytes"] == pytest.approx(38 * GIB, abs=GIB)
        assert agent.samples(parked, "sm_active_ratio IS NOT NULL")[-1]["sm_active_ratio"] == 0
        assert agent.samples(parked)[-1]["memory_used_bytes"] == pytest.approx(16 * GIB, abs=GIB)
        assert agent.samples(empty)[-1]["memory_used_bytes"] == pytest.approx(0, abs=GIB)
        for uuid in (busy, parked, empty):
            for sample in agent.samples(uuid):
                assert {name: sample[name] for name in OF_THE_CARD if sample[name] is not None} == {}
        for uuid, gib in ((busy, 38), (parked, 16)):
            for process in agent.processes(uuid):
                assert process["busy_ratio"] is None  # not attributable, never the card's
                assert process["memory_used_bytes"] == gib * GIB

        # Instance 1 is deleted and made again, smaller: the same number, another instance.
        changed_s = now_ms() / 1000 - start_s
        anew = cut().at(changed_s, 0, "event", MIG_CHANGED, 0)
        anew.at(changed_s, 0, "instance", 1, "none").at(changed_s, 0, "instance", 1, "MIG-made-anew", 20_096)
        anew.gpm({2: 11}, gpu=0, gi=1, at=changed_s)
        anew.processes(
            f"compute:{pids[2]}:{9 * GIB}:1", f"compute:{pids[1]}:{16 * GIB}:2", gpu=0, at=changed_s
        )
        agent.change(anew)
        agent.until(lambda: agent.about("mig") == {card})
        agent.until(lambda: busy in agent.about("lost"))
        agent.until(
            lambda: agent.samples("MIG-made-anew", "covered_ms = 1000 AND sm_active_ratio IS NOT NULL")
        )
        for sample in agent.samples("MIG-made-anew", "sm_active_ratio IS NOT NULL"):
            assert sample["sm_active_ratio"] == pytest.approx(0.11)  # no pair across two instances
            assert sample["memory_used_bytes"] == pytest.approx(9 * GIB, abs=GIB)
        gone_ms = agent.events("lost")[0]["ts_ms"]
        assert agent.samples(busy, f"ts_ms > {gone_ms}") == []
        assert agent.samples(parked, f"covered_ms = 1000 AND ts_ms > {gone_ms}")


def test_lists_are_merged_and_nothing_is_made_up(tmp_path: Path, pids: list[int]) -> None:
    one, two, three = pids
    scenario = profiles.busy_decode(start_s=now_ms() / 1000)
    scenario.processes(
        f"compute:{one}:{8 * GIB}",
        f"graphics:{one}:{8 * GIB}",
        f"mps:{two}:none",
        f"graphics:{three}:{100 * MIB}",
    )
    scenario.process_util(f"{one}:40:20:0:0", "!junk", f"{two}:30:0:0:0", "999999:7:0:0:0@30")
    with LiveAgent(tmp_path, scenario) as agent:
        agent.until(lambda: agent.samples(gpu_uuid(0), "process_count = 2 AND covered_ms = 1000"))
        agent.until(lambda: len({row["natural_key"] for row in agent.processes(gpu_uuid(0))}) == 3)
        held = {}
        for row in agent.processes(gpu_uuid(0)):
            pid = int(row["key"].split(":")[0])
            held[pid] = row["memory_used_bytes"], row["process_count"]
            share = {one: 0.4, two: 0.3, three: 0.0}[pid]
            assert row["busy_ratio"] in {None, 0.0} or row["busy_ratio"] == pytest.approx(share)
        # One memory, though two lists tell of it; unknown where the driver does not attribute any.
        assert held == {one: (8 * GIB, 1), two: (None, 1), three: (100 * MIB, 1)}
        assert agent.samples(gpu_uuid(0))[-1]["process_count"] == 2  # who only draws does not hold the card


def test_no_process_is_stored_that_there_is_not(tmp_path: Path, pids: list[int]) -> None:
    """Rows of 32 bytes, and a table of shares that speaks of the PIDs of another namespace."""
    scenario = profiles.layout_535(start_s=now_ms() / 1000)
    scenario.processes(*(f"compute:{pid}:{(at + 1) * GIB}" for at, pid in enumerate(pids)))
    scenario.process_util("4194000:80:0:0:0")
    with LiveAgent(tmp_path, scenario) as agent:
        agent.until(lambda: agent.samples(gpu_uuid(0), "process_count = 3 AND covered_ms = 1000"))
        stored = agent.until(lambda: agent.processes(gpu_uuid(0)))
    total: dict[int, list[dict[str, Any]]] = {}
    for row in stored:
        total.setdefault(row["ts_ms"], []).append(row)
    for rows_of_interval in total.values():
        assert sum(row["process_count"] for row in rows_of_interval) == 3
        assert sum(row["memory_used_bytes"] for row in rows_of_interval) == 6 * GIB
        assert [row["busy_ratio"] for row in rows_of_interval] == [None] * len(rows_of_interval)
