"""Keys at the edge that more than one part of the store must build alike."""

from core.readings import WorkloadKey


def workload_key(workload: WorkloadKey) -> str:
    """Host, kind and key of a workload in one text; unique in the fleet."""
    return "\x1f".join((workload.host or "", workload.kind, workload.key))
