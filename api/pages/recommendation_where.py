"""Where a recommendation is, and whose: hosts, GPUs, engine, workload, and the team that pays for most of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from sqlalchemy.orm import Session

from api.links import engine_path, gpu_path, host_path, owner_path, workload_path
from core.evidence import Window
from core.finding import Finding
from core.readings import GpuIdentity
from core.units import DAY_MS
from store.known import known_gpus
from store.queries import hours
from store.queries.gpu_payers import main_payers, payers

MOST_SHOWN: Final = 8
"""GPUs and hosts that are named at once; more are folded."""
LOOK_BACK_MS: Final = 30 * DAY_MS


@dataclass(frozen=True, slots=True)
class Place:
    """A thing with its page; ``href`` empty: it has none."""

    name: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Where:
    """What a recommendation is about.

    Attributes:
        teams: that pay for most of one of its GPUs at least. leave_alone: form that excludes it, filled in.
        names: GPUs for people, by UUID.
    """

    hosts: tuple[Place, ...]
    gpus: tuple[Place, ...]
    engines: tuple[Place, ...]
    workloads: tuple[Place, ...]
    teams: tuple[Place, ...]
    leave_alone: str
    names: Mapping[str, str]


def gpu_name(gpu: GpuIdentity) -> str:
    """``GPU 3 on node-07``; its UUID where no source says more."""
    if gpu.index is None:
        return gpu.gpu_uuid
    return f"GPU {gpu.index} on {gpu.host}" if gpu.host else f"GPU {gpu.index}"


def where_of(finding: Finding, known: Mapping[str, GpuIdentity], paid: Mapping[str, str]) -> Where:
    """Where and whose; pure. ``paid`` is the team that pays for most of each GPU."""
    gpus = [known[uuid] for uuid in finding.gpu_uuids if uuid in known]
    subject = finding.subject
    hosts = sorted({gpu.host for gpu in gpus if gpu.host})
    if subject.kind == "host" and subject.id not in hosts:
        hosts.append(subject.id)
    names = {gpu.gpu_uuid: gpu_name(gpu) for gpu in gpus}
    places = [(names.get(uuid, uuid), uuid) for uuid in finding.gpu_uuids]
    engines = (
        [Place(subject.label or subject.id, engine_path(subject.id))] if subject.kind == "engine" else []
    )
    workloads = (
        [Place(subject.label or subject.id, workload_path(subject.id))] if subject.kind == "workload" else []
    )
    teams = sorted({paid[uuid] for uuid in finding.gpu_uuids if uuid in paid})
    return Where(
        hosts=tuple(Place(name, host_path(name)) for name in hosts),
        gpus=tuple(Place(name, gpu_path(uuid)) for name, uuid in places),
        engines=tuple(engines),
        workloads=tuple(workloads),
        teams=tuple(Place(team, owner_path(team)) for team in teams),
        leave_alone=_leave_alone(finding, hosts),
        names=names,
    )


def _leave_alone(finding: Finding, hosts: list[str]) -> str:
    """The form of an exclusion with the narrowest part that holds the finding."""
    part = {}
    if finding.subject.kind in {"gpu", "engine", "host"}:
        part = {finding.subject.kind: finding.subject.id}
    elif len(hosts) == 1:
        part = {"host": hosts[0]}
    return f"/settings/rules?{urlencode({**part, 'rule': finding.rule_id})}#leave-alone" if part else ""


def read_where(session: Session, finding: Finding) -> Where:
    """Where and whose, from the store: payers of the last thirty days of data."""
    known = {gpu.identity.gpu_uuid: gpu.identity for gpu in known_gpus(session.connection())}
    data = hours.bounds(session)
    paid: dict[str, str] = {}
    if data is not None and finding.gpu_uuids:
        window = Window(data.to_ms - LOOK_BACK_MS, data.to_ms)
        paid = main_payers(payers(session, window, set(finding.gpu_uuids)))
    return where_of(finding, known, paid)
