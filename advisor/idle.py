"""Which GPUs stand idle now: one answer for all rules on idle GPUs, so that a node of both kinds is judged as one."""

from advisor.empty_streak import EmptyGpuLimits, stands_empty
from advisor.memo import OncePerEvidence
from advisor.parking import ParkedModelLimits, may_park, stands_parked
from core.evidence import Evidence
from core.parked_hours import read_together


def _idle_gpus(evidence: Evidence) -> frozenset[str]:
    """GPUs that could be released now: empty for long enough, or parked throughout, and seen doing so."""
    empty, parked = EmptyGpuLimits(), ParkedModelLimits()
    share = parked.whole_hour_ratio
    read_together([gpu.hours for gpu in evidence.gpus if may_park(evidence, gpu, share)])
    return frozenset(
        gpu.gpu_uuid
        for gpu in evidence.gpus
        if stands_empty(evidence, gpu, empty) or stands_parked(evidence, gpu, parked)
    )


idle_gpus = OncePerEvidence(_idle_gpus)
