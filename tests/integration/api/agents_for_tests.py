"""What agents add to the small fleet: the host, their own cost, states and events of cards, and who held them.

h1   its agent 0.3.0 delivered at ``NOW``; the host sample of the last ten minutes; GPU-a and GPU-b have a state
h3   an agent, but no GPU
GPU-a, first hour   a pod of namespace ml, of nobody; GPU-c, first hour: a Slurm job of bob
"""

from contextlib import closing
from typing import Final

from core.delivery import Delivery
from core.readings import GpuHealth, GpuIdentity, HostIdentity, WorkloadKey
from core.samples import GpuEvent, HostSample, ProcessSample
from store.dbapi import open_connection
from store.engine import make_engine
from store.ingest import Ingest
from store.rollup import roll_up
from tests.integration.api.fleet_for_tests import GIB, H100, MINUTE, NOW, SPAN, T0, A, B, C

POD: Final = WorkloadKey(
    "pod", "3fa2", "llama-0", host="h1", attributes=(("namespace", "ml"), ("pod", "llama-0"))
)
JOB: Final = WorkloadKey("slurm_job", "77", "job 77 (train)", user="bob", host="h2")
MACHINE: Final = {
    "cpu_busy_ratio": 0.25,
    "iowait_ratio": 0.01,
    "host_memory_used_bytes": 100.0 * GIB,
    "host_memory_total_bytes": 512.0 * GIB,
    "agent_cpu_ratio": 0.0031,
    "agent_memory_bytes": 41.0 * (1 << 20),
    "agent_tick_s": 0.0042,
    "agent_waiting_count": 0.0,
}
HEALTHY: Final = {
    "ecc_mode": "enabled",
    "ecc_corrected_count": 3.0,
    "ecc_uncorrected_count": 0.0,
    "ecc_aggregate_uncorrected_count": 1.0,
    "row_remap_corrected_count": 0.0,
    "row_remap_uncorrected_count": 0.0,
    "row_remap_pending": 0.0,
    "row_remap_failed": 0.0,
    "recovery_action": "none",
    "pcie_link_generation": 1.0,
    "pcie_link_max_generation": 5.0,
    "pcie_link_width": 16.0,
    "pcie_link_max_width": 16.0,
    "pcie_replay_count": 0.0,
    "persistence_mode": "enabled",
    "compute_mode": "default",
    "mig_mode": "disabled",
    "power_limit_w": 600.0,
    "power_limit_min_w": 200.0,
    "power_limit_max_w": 700.0,
    "power_limit_default_w": 700.0,
}
SICK: Final = HEALTHY | {
    "row_remap_pending": 1.0,
    "row_remap_uncorrected_count": 1.0,
    "ecc_uncorrected_count": 2.0,
    "recovery_action": "drain_and_reset",
    "pcie_link_width": 8.0,
}


def deliver(url: str) -> None:
    """Add it to a database that holds the small fleet, and roll it up."""
    held = range(6)
    first = Delivery(
        host=HostIdentity("h1", 64, 512 * GIB, "0.3.0"),
        gpus=[
            GpuIdentity(
                A, "h1", 0, H100, 80 * GIB, "00000000:1B:00.0", "580.95.05", 1.98e9, 700.0, "9.0", 1.0
            )
        ],
        host_samples=[HostSample("h1", T0 + 11 * SPAN, SPAN, MACHINE)],
        process_samples=[
            *(ProcessSample(A, T0 + slot * SPAN, SPAN, POD, 70.0 * GIB, None, 1) for slot in held),
            *(ProcessSample(C, T0 + slot * SPAN, SPAN, JOB, 8.0 * GIB, None, 1) for slot in held),
        ],
        health=[GpuHealth(A, NOW - 30_000, SICK), GpuHealth(B, NOW - 30_000, HEALTHY)],
        events=[
            *(
                GpuEvent(A, T0 + slot * MINUTE, "xid", "XID 31: GPU memory page fault.", 31)
                for slot in range(3)
            ),
            GpuEvent(A, T0 + 80 * MINUTE, "stuck", "A driver call for this GPU does not return."),
            GpuEvent(A, T0 + 100 * MINUTE, "found", "The GPU answers again."),
            GpuEvent(A, T0 + 101 * MINUTE, "row_remap", "A row remapping waits for a reset of the GPU."),
            GpuEvent(A, T0 + 102 * MINUTE, "of_the_future", "Something new."),
        ],
    )
    second = Delivery(host=HostIdentity("h3", 8, 64 * GIB, "0.3.0"), host_samples=[])
    second.host_samples.append(HostSample("h3", T0 + 11 * SPAN, SPAN, {"agent_waiting_count": 4.0}))
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        ingest.deliver(first, agent_id="a1", sequence=1, now_ms=NOW)
        ingest.deliver(second, agent_id="a3", sequence=1, now_ms=NOW)
        ingest.commit()
    roll_up(make_engine(url), now_ms=NOW)
