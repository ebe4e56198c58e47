"""Who held a GPU at a time, as far as the lists of processes tell: the jobs of now, and memory that nobody seems to own."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from advisor.memo import OncePerEvidence
from core.evidence import Evidence, WorkloadUse
from core.readings import WorkloadKey

FOREIGN: Final = "another PID namespace"
"""How a workload is named whose number the driver gives from outside the agent's container."""


def is_numbered(workload: WorkloadKey) -> bool:
    """A process of which only the number is known: gone from ``/proc``, or hidden from the agent."""
    return workload.kind == "process" and workload.key.endswith(":0")


def is_foreign(workload: WorkloadKey) -> bool:
    """A process that the agent cannot look up, because it sees another PID namespace than the driver."""
    return FOREIGN in workload.name


def during(uses: Iterable[WorkloadUse], from_ms: int, to_ms: int) -> list[WorkloadUse]:
    """Uses whose time touches the span; a use says its first and last hour, not the pauses between."""
    return [use for use in uses if use.first_ms < to_ms and use.last_ms > from_ms]


def _named(evidence: Evidence) -> Mapping[str | None, int]:
    """Workloads by host that were looked up and named: there the list of processes can be read."""
    seen: dict[str | None, int] = defaultdict(int)
    for gpu in evidence.gpus:
        seen[gpu.identity.host] += sum(not is_numbered(use.workload) for use in gpu.uses)
    return seen


def _foreign(evidence: Evidence) -> frozenset[str | None]:
    """Hosts whose agent looks from inside a container: what it does not list may well be there."""
    return frozenset(
        gpu.identity.host for gpu in evidence.gpus if any(is_foreign(use.workload) for use in gpu.uses)
    )


named_workloads = OncePerEvidence(_named)
blinkered_hosts = OncePerEvidence(_foreign)
