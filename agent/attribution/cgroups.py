"""What the cgroup of a process says about it: container, pod, Slurm job, systemd unit, login session.

Pure: text in, facts out. Paths are relative to the reader's cgroup namespace (from a private one they begin with
``/..``), so components are searched anywhere in a path. Version 1 has a line per controller, version 2 one line
``0::path``, a hybrid host both. Source: nvml.md section 4.
"""

import re
from dataclasses import dataclass
from typing import Final

_CONTAINER: Final = re.compile(
    r"(?:^|[/:-])(?:(?P<runtime>docker|cri-containerd|crio|crio-conmon|libpod|libpod-conmon|libpod-payload|nerdctl)"
    r"[-/:])?(?P<id>[0-9a-f]{64})(?=$|[/.])"
)
_RUNTIMES: Final = {
    "docker": "docker",
    "cri-containerd": "containerd",
    "nerdctl": "containerd",
    "crio": "crio",
    "crio-conmon": "crio",
    "libpod": "podman",
    "libpod-conmon": "podman",
    "libpod-payload": "podman",
}
_POD: Final = re.compile(
    r"(?:^|[/-])pod(?P<uid>[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})"
    r"(?=$|[/.:])"
)
_SLURM: Final = re.compile(
    r"/(?:slurm[^/]*/uid_(?P<uid>\d+)|(?:[^/]+_)?slurmstepd\.scope)"
    r"/job_(?P<job>\d+)(?:/step_(?P<step>[^/]+))?"
)
_LXC: Final = re.compile(r"/(?:lxc\.payload[./]|lxc/)(?P<name>[^/]+)")
_USER: Final = re.compile(r"/user-(?P<uid>\d+)\.slice(?=$|/)")
_SESSION: Final = re.compile(r"/session-(?P<id>[^/]+)\.scope(?=$|/)")
_MANAGER: Final = re.compile(r"/user@\d+\.service(?=$|/)")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the kernel accounts a process. None where its cgroups do not say.

    Attributes:
        container_id: 64 hexadecimal digits of the innermost container.
        runtime: ``docker``, ``containerd``, ``crio``, ``podman``; None where the path does not name it.
        lxc_name: an LXC container is known by name only.
        pod_uid: with dashes; 32 digits without for a static pod.
        slurm_job, slurm_step: job number; step ``0``, ``batch``, ``extern``, ``interactive``.
        slurm_uid: user of the job where the path names it (version 1).
        unit: deepest ``*.service``, else deepest ``*.scope``.
        user_uid: user of the ``user-<uid>.slice``.
        session: login session.
        of_user_manager: the unit belongs to a user's own systemd, so its name is unique within the user only.
    """

    container_id: str | None = None
    runtime: str | None = None
    lxc_name: str | None = None
    pod_uid: str | None = None
    slurm_job: str | None = None
    slurm_step: str | None = None
    slurm_uid: int | None = None
    unit: str | None = None
    user_uid: int | None = None
    session: str | None = None
    of_user_manager: bool = False


NOWHERE: Final = Place()


def parse(text: str) -> Place:
    """Facts from the text of ``/proc/PID/cgroup``; anything that is no cgroup line is passed over."""
    paths = _paths(text)
    if not paths:
        return NOWHERE
    container_id, runtime = _container(paths)
    pods = [found["uid"] for path in paths for found in _POD.finditer(path)]
    slurm = next((found for path in paths if (found := _SLURM.search(path))), None)
    lxc = next((found["name"] for path in paths if (found := _LXC.search(path))), None)
    user = next((found["uid"] for path in paths if (found := _USER.search(path))), None)
    session = next((found["id"] for path in paths if (found := _SESSION.search(path))), None)
    unit, managed = _unit(paths)
    return Place(
        container_id=container_id,
        runtime=runtime,
        lxc_name=None if lxc is None or _CONTAINER.search(f"/{lxc}") else lxc,
        pod_uid=pods[-1].replace("_", "-") if pods else None,
        slurm_job=slurm["job"] if slurm else None,
        slurm_step=slurm["step"] if slurm else None,
        slurm_uid=int(slurm["uid"]) if slurm and slurm["uid"] else None,
        unit=unit,
        user_uid=int(user) if user else None,
        session=session,
        of_user_manager=managed,
    )


def _paths(text: str) -> list[str]:
    """Distinct paths; systemd's own hierarchy first, then the unified one: units are named there."""
    ranked: dict[str, int] = {}
    for line in text.splitlines():
        number, colon, rest = line.partition(":")
        controllers, second, path = rest.partition(":")
        if not colon or not second or not path.startswith("/") or path == "/":
            continue
        rank = 0 if controllers == "name=systemd" else 1 if number == "0" else 2
        ranked[path] = min(rank, ranked.get(path, rank))
    return sorted(ranked, key=ranked.__getitem__)


def _container(paths: list[str]) -> tuple[str | None, str | None]:
    """Innermost container: the last id of the path that nests most of them."""
    nested = max(([*_CONTAINER.finditer(path)] for path in paths), key=len)
    if not nested:
        return None, None
    inner = nested[-1]
    return inner["id"], _RUNTIMES.get(inner["runtime"] or "")


def _unit(paths: list[str]) -> tuple[str | None, bool]:
    """Deepest service (else scope) of the first path that has one, and whether a user's own systemd runs it."""
    for path in paths:
        words = path.split("/")[::-1]
        name = next((word for word in words if word.endswith(".service")), None) or next(
            (word for word in words if word.endswith(".scope")), None
        )
        if name is not None:
            manager = _MANAGER.search(path)
            return name, manager is not None and manager[0] != f"/{name}"
    return None, False
