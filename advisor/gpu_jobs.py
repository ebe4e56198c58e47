"""Which GPUs of a host belong to one job: told by the workloads that held them.

A job over several hosts is told host by host: a fleet is judged in chunks of whole hosts, however it is cut.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from advisor.memo import OncePerEvidence
from core.evidence import Evidence, GpuEvidence, WorkloadUse
from core.finding import Subject

PYTHON: Final = ("python", "pt_main_thread", "torchrun", "accelerate", "deepspeed")
"""Beginnings of the names of deep-learning processes."""


@dataclass(frozen=True, slots=True)
class Member:
    """A GPU of a job and the job's use of it."""

    gpu: GpuEvidence
    use: WorkloadUse


@dataclass(frozen=True, slots=True)
class Job:
    """A workload and the GPUs it held alone.

    Attributes:
        subject: the workload as what a finding is about.
        members: its GPUs, by use.
        certain: the workload's own key says so; else processes of one name that started in the same hour.
    """

    subject: Subject
    members: tuple[Member, ...]
    certain: bool


def main_use(gpu: GpuEvidence) -> WorkloadUse | None:
    """The workload that used the GPU most; None when none is known."""
    return gpu.uses[0] if gpu.uses else None


def is_python(use: WorkloadUse) -> bool:
    """Its executable is an interpreter of deep-learning programs, as far as names tell."""
    names = [use.workload.name, *(value for name, value in use.workload.attributes if name == "executable")]
    return any(name.rsplit("/", 1)[-1].lower().startswith(PYTHON) for name in names)


def names_no_program(use: WorkloadUse) -> bool:
    """A pod, a container or a job is named by people: what runs inside is not told."""
    told = any(name == "executable" for name, _ in use.workload.attributes)
    return use.workload.kind != "process" and not told


def _served(evidence: Evidence) -> frozenset[str]:
    """GPUs of an LLM engine."""
    return frozenset(uuid for engine in evidence.engines for uuid in engine.gpu_uuids)


served = OncePerEvidence(_served)


def _jobs(evidence: Evidence) -> Mapping[str, Job]:
    """Jobs by each of their GPUs; a GPU whose main workload shared it, or is not known, has none."""
    groups: dict[tuple[object, ...], list[Member]] = {}
    for gpu in evidence.gpus:
        use = main_use(gpu)
        if use is not None and not use.shared:
            groups.setdefault(_group(gpu, use), []).append(Member(gpu, use))
    return {
        member.gpu.gpu_uuid: job
        for members in groups.values()
        for job in (_job(members),)
        for member in members
    }


jobs = OncePerEvidence(_jobs)


def _group(gpu: GpuEvidence, use: WorkloadUse) -> tuple[object, ...]:
    """What the ranks of one job on one host have in common."""
    workload, host = use.workload, gpu.identity.host
    if workload.kind == "process":
        return workload.kind, host, workload.name, workload.user, use.first_ms
    return workload.kind, host, workload.key


def _job(members: list[Member]) -> Job:
    workload = members[0].use.workload
    keys = {member.use.workload.key for member in members}
    host = members[0].gpu.identity.host
    label = workload.name if host is None else f"{workload.name} on {host}"
    return Job(
        Subject("workload", f"{workload.kind}:{min(keys)}" + ("" if host is None else f"@{host}"), label),
        tuple(members),
        certain=len(keys) == 1,
    )


def ranks_of(evidence: Evidence, gpu: GpuEvidence) -> tuple[GpuEvidence, ...]:
    """All GPUs of the job that held this one; only itself when no job is known."""
    job = jobs(evidence).get(gpu.gpu_uuid)
    return (gpu,) if job is None else tuple(member.gpu for member in job.members)
