"""GPUs that work for Python programs which are no engine known here: what they run is their own secret."""

from collections.abc import Collection, Iterator

from advisor.digest import digest
from advisor.gpu_jobs import is_python, main_use, served
from advisor.memo import OncePerEvidence
from advisor.model import counted
from core.evidence import Evidence, GpuEvidence
from core.finding import NotEvaluated

MIN_ACTIVE_H = 1.0
"""Less work than this is a trial."""


def _python_gpus(evidence: Evidence) -> tuple[GpuEvidence, ...]:
    """GPUs that worked for an hour or more, mainly for a Python program, and serve no engine that is seen."""
    engines = served(evidence)
    return tuple(
        gpu
        for gpu in evidence.gpus
        if gpu.gpu_uuid not in engines
        and (use := main_use(gpu)) is not None
        and is_python(use)
        and digest(evidence, gpu).active_h >= MIN_ACTIVE_H
    )


python_gpus = OncePerEvidence(_python_gpus)


def unseen(
    evidence: Evidence, rule_id: str, missing: tuple[str, ...], why: str, *, but: Collection[str] = ()
) -> Iterator[NotEvaluated]:
    """One sentence on all of them but those that were judged; nothing where there are none."""
    count = sum(gpu.gpu_uuid not in but for gpu in python_gpus(evidence))
    if count:
        who = "for Python programs without engine metrics"
        yield counted(
            rule_id, missing, count, f"1 GPU works {who}: {why}", f"{{count}} GPUs work {who}: {why}"
        )
