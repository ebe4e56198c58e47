"""Which workload a process belongs to, from facts that were read: pure.

In this order: pod, Slurm job, container, systemd service, the process itself. The kernel's word (cgroups, user id)
goes before the environment, which the process's owner writes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent.attribution.cgroups import NOWHERE, Place
from core.readings import WorkloadKey

_HOSTS_OF_OTHERS: Final = re.compile(
    r"(?:user@.*|session.*|slurm\w*|slurmstepd.*|containerd|kubelet|docker|crio|cri-o|cri-docker|podman|k3s.*|rke2.*"
    r"|sshd?(?:@.*)?|crond?|atd|getty@.*|serial-getty@.*|gdm\d?|sddm|lightdm|display-manager|condor|pbs|lsfd?|sge\w*)"
    r"\.service"
)
"""Services under which the work of others runs: what they start is told apart by process, container or job."""
_LONGEST_NAME: Final = 80
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e\xa0-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Image:
    """A run of an Apptainer image: it has no cgroup, so its first process is its identity."""

    path: str
    pid: int
    start_ms: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What was read of one process.

    Attributes:
        pid, start_ms: identity; 0 where the start is unknown.
        executable: file name of the program, else the name of the main thread.
        uid: real user id; whose it is, ``account_uid`` tells.
        place: its cgroups.
        environ: the named keys of its first environment that could be read.
        image: the Apptainer run it belongs to.
        namespace, pod: name of its pod, when known.
    """

    pid: int
    start_ms: int
    executable: str
    uid: int | None = None
    place: Place = NOWHERE
    environ: Mapping[str, str] | None = None
    image: Image | None = None
    namespace: str | None = None
    pod: str | None = None


def workload_of(facts: Facts, *, user: str | None, host: str | None) -> WorkloadKey:
    """The workload of a process.

    Args:
        facts: of the process.
        user: name to show.
        host: it runs on.
    """
    place = facts.place
    job = slurm_job(facts)
    unit = _unit(place)
    container = place.container_id or place.lxc_name
    if place.pod_uid:
        kind, key = "pod", place.pod_uid
        name = facts.pod or f"pod {place.pod_uid[:8]}"
    elif job:
        kind, key, name = "slurm_job", job, _job_name(job, facts.environ or {})
    elif container:
        kind, key = "container", container
        short = place.container_id[:12] if place.container_id else container
        name = f"{facts.executable} in {short}"
    elif facts.image:
        kind, key = "container", f"apptainer:{facts.image.pid}:{facts.image.start_ms}"
        name = f"{facts.executable} in {clean(facts.image.path.rsplit('/', 1)[-1])}"
    elif unit:
        kind, key, name = "systemd_unit", unit, place.unit or unit
    else:
        kind, key, name = "process", f"{facts.pid}:{facts.start_ms}", facts.executable
    return WorkloadKey(kind, key, name, user=user, host=host, attributes=_attributes(facts, job))


def slurm_job(facts: Facts) -> str | None:
    """Its Slurm job: by cgroup, else by environment (sites without the cgroup plugin)."""
    told = (facts.environ or {}).get("SLURM_JOB_ID", "")
    return facts.place.slurm_job or (told if told.isascii() and told.isdigit() else None)


def account_uid(facts: Facts) -> tuple[int | None, bool]:
    """The user to show, and whether it is a user of this host.

    In a container a number names a user of the image, which may be nobody or somebody else on this host; it is the
    host's where the container belongs to a user's slice (rootless), to a Slurm job, or is an Apptainer run.
    """
    place = facts.place
    if place.slurm_uid is not None:
        return place.slurm_uid, True
    inside = place.pod_uid or place.container_id or place.lxc_name
    if inside and place.user_uid is not None:
        return place.user_uid, True
    return facts.uid, not inside


def clean(text: str) -> str:
    """Text that a user wrote, fit for a table: printable and short."""
    return _UNPRINTABLE.sub("", text)[:_LONGEST_NAME]


def _unit(place: Place) -> str | None:
    """Key of its service; None for scopes, sessions and services that run the work of others."""
    unit = place.unit
    if unit is None or not unit.endswith(".service") or _HOSTS_OF_OTHERS.fullmatch(unit):
        return None
    return f"{place.user_uid}/{unit}" if place.of_user_manager and place.user_uid is not None else unit


def _job_name(job: str, environ: Mapping[str, str]) -> str:
    """``job 1234 (name)``; a task of an array by the number people know it by."""
    array, task = environ.get("SLURM_ARRAY_JOB_ID", ""), environ.get("SLURM_ARRAY_TASK_ID", "")
    mine = environ.get("SLURM_JOB_ID") == job
    number = f"{array}_{task}" if mine and array.isdigit() and task.isdigit() else job
    name = clean(environ.get("SLURM_JOB_NAME", "")) if mine else ""
    return f"job {number} ({name})" if name else f"job {number}"


def _attributes(facts: Facts, job: str | None) -> tuple[tuple[str, str], ...]:
    place, environ = facts.place, facts.environ or {}
    contained = place.pod_uid or place.container_id or place.lxc_name
    account = environ.get("SLURM_JOB_ACCOUNT", "") if job and environ.get("SLURM_JOB_ID") == job else ""
    known = {
        "namespace": facts.namespace,
        "pod": facts.pod,
        "pod_uid": place.pod_uid,
        "container_id": place.container_id,
        "slurm_job": job,
        "slurm_account": clean(account),
        "slurm_step": place.slurm_step,
        "systemd_unit": None if contained or job else place.unit,
        "executable": facts.executable,
        "image": None if facts.image is None else clean(facts.image.path.rsplit("/", 1)[-1]),
        "uid": None if facts.uid is None else str(facts.uid),
    }
    return tuple(sorted((name, value) for name, value in known.items() if value))
