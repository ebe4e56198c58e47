"""Faults through the whole agent: whatever call fails with whatever code, nothing wrong is stored and nothing dies.

Every function with every code is gone through in one process by ``test_collectors_faults``; here are some of each
kind on the way into the database.
"""

import time
from functools import partial
from pathlib import Path

from live_agent import LiveAgent

from core.clock import now_ms
from core.metrics import GPU_COLUMNS
from tests.standin import profiles
from tests.standin.drivers import SYMBOL_SINCE
from tests.standin.scenario import Scenario, functions, gpu_uuid

NO_PERMISSION, NOT_FOUND, TIMEOUT, LOST, MEMORY, UNKNOWN = 4, 6, 10, 15, 20, 999
FAULTS = (
    ("nvmlDeviceGetUtilizationRates", NO_PERMISSION),
    ("nvmlDeviceGetFieldValues", TIMEOUT),
    ("nvmlDeviceGetMemoryInfo_v2", MEMORY),
    ("nvmlDeviceGetComputeRunningProcesses_v3", LOST),
    ("nvmlDeviceGetProcessesUtilizationInfo", NOT_FOUND),
    ("nvmlGpmSampleGet", NO_PERMISSION),
    ("nvmlGpmMetricsGet", UNKNOWN),
    ("nvmlEventSetWait_v2", UNKNOWN),
    ("nvmlDeviceGetUUID", UNKNOWN),
    ("nvmlDeviceGetCount_v2", UNKNOWN),
)
LASTS_S = 0.6
"""Two rounds of each thread of the driver process."""
GROWING = {"energy_j", "slowed_power_cap_s"}
RATES = {"nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s", "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"}
"""Told by GPM, by counters or by the driver's own 20 ms: near each other, not the same."""


def wrong(
    agent: LiveAgent, right: dict[str, float | None], uuid: str
) -> list[tuple[str, float, float | None]]:
    """What was stored and is neither unknown nor what the scenario says."""
    found = []
    for sample in agent.samples(uuid):
        covered = sample["covered_ms"] / 1000
        for name in GPU_COLUMNS:
            value, good = sample[name], right[name]
            if value is None or name == "process_count":
                continue
            if (
                name in GROWING
            ):  # told for a part of the interval when its field failed in the rest: never more
                if value > (good or 0) * covered + 0.05 * (good or 0) + 1e-3 or value < 0:
                    found.append((name, value, good))
                continue
            room = 0.25 * (good or 0) if name in RATES else 1e-6 * (good or 0)
            if good is None or abs(value - good) > room:
                found.append((name, value, good))
    return found


def test_faults_on_the_way_into_the_database_store_nothing_wrong(tmp_path: Path) -> None:
    start_s = now_ms() / 1000

    def card() -> Scenario:
        return profiles.busy_decode(2, start_s=start_s)

    victim, other = gpu_uuid(0), gpu_uuid(1)
    with LiveAgent(tmp_path, card(), driver={"RESCAN_S": 0.3, "PROCESSES_S": 0.2, "HEALTH_S": 0.2}) as agent:
        agent.until(lambda: agent.samples(victim, "covered_ms = 1000 AND sm_active_ratio IS NOT NULL"))
        agent.until(lambda: agent.samples(victim, "covered_ms = 1000 AND process_count = 1"))
        right = agent.samples(victim)[-1]
        told = {name: right[name] for name in GPU_COLUMNS}
        for function, code in FAULTS:
            agent.change(card().fail(function, code, gpu=0 if function != "nvmlDeviceGetCount_v2" else "*"))
            time.sleep(LASTS_S)
        agent.change(card())
        cleared_ms = now_ms()
        for uuid in (victim, other):
            again = f"covered_ms = 1000 AND busy_ratio > 0 AND process_count = 1 AND ts_ms > {cleared_ms}"
            agent.until(partial(agent.samples, uuid, again))
            assert wrong(agent, told, uuid) == []
        # Nothing in a process list that is not in the scenario, and of shares what it says or "did nothing".
        for row in agent.processes(victim):
            assert row["key"] == f"{profiles.DECODE_PID}:0" or row["process_count"] == 1
            assert row["busy_ratio"] is None or 0 <= row["busy_ratio"] <= 0.95 + 1e-9


def test_a_driver_without_any_optional_function_still_tells_the_rest(tmp_path: Path) -> None:
    needed = {"nvmlInit_v2", "nvmlInitWithFlags", "nvmlShutdown", "nvmlErrorString", "nvmlDeviceGetCount_v2"}
    needed |= {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetUtilizationRates"}
    scenario = profiles.busy_decode(start_s=now_ms() / 1000)
    scenario.without = tuple(sorted({*functions(), *SYMBOL_SINCE} - needed))
    with LiveAgent(tmp_path, scenario) as agent:
        agent.until(lambda: agent.samples(gpu_uuid(0), "covered_ms = 1000"))
        sample = agent.samples(gpu_uuid(0))[-1]
        known = {name for name in GPU_COLUMNS if sample[name] is not None}
        assert known == {"busy_ratio", "busy_max_ratio", "busy_min_ratio", "memory_busy_ratio"}
        assert agent.events("lost") == []
    # No write and no NULL handle either: the stand-in ends the process with a sentence at both.
    assert [line for line in agent.log if "ended unexpectedly" in str(line)] == []
