"""Which GPUs a question for idleness is about: those of a host, or those that a pod or job holds now."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from sqlalchemy.orm import Session

from api.resources.fleet_rows import SILENT_MS
from core.clock import from_ms
from core.errors import NotFoundError, UsageError
from core.evidence import Window
from core.readings import SLICE_PREFIX, WorkloadKey
from core.units import DAY_MS, HOUR_MS
from store.queries import idle_now
from store.queries.idle_now import GpuSeen

GONE_MS: Final = 7 * DAY_MS
"""A card that its host has not shown for so long was taken out; until then its silence is unknown, not idle."""
GONE_SLICE_MS: Final = HOUR_MS
"""A MIG slice that its card no longer shows was deleted; slices are made and deleted all day."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for: exactly one of these."""

    gpu: str | None = None
    host: str | None = None
    pod: str | None = None
    job: str | None = None
    workload: str | None = None

    @property
    def kind_and_id(self) -> tuple[str, str]:
        """The one that was given.

        Raises:
            UsageError: none, or several.
        """
        named = [(field.name, getattr(self, field.name)) for field in fields(self)]
        given = [(kind, text) for kind, text in named if text]
        if len(given) != 1:
            raise UsageError(f"give one of gpu, host, pod, job and workload: {len(given) or 'none'} given")
        return given[0]


@dataclass(frozen=True, slots=True)
class Subject:
    """What to look at.

    Attributes:
        gpus: all must be idle. slices: MIG slices of those. workload_ids: who holds them; empty: whoever.
        nothing: why there is no GPU to look at.
    """

    gpus: tuple[GpuSeen, ...]
    slices: tuple[GpuSeen, ...] = ()
    workload_ids: frozenset[int] = frozenset()
    nothing: str = ""


def second(at_ms: int) -> str:
    """A time in a sentence: UTC, to the second."""
    return f"{from_ms(at_ms):%Y-%m-%dT%H:%M:%SZ}"


def subject_of(session: Session, now_ms: int, asked: Asked) -> Subject:
    """The GPUs of what was asked for.

    Raises:
        UsageError: not one of them was asked for, or its name is of several. NotFoundError: nothing of that name.
    """
    kind, name = asked.kind_and_id
    if kind == "gpu":
        found = idle_now.gpus_of_uuid(session, name)
        if not found:
            raise NotFoundError(f"no GPU {name}: GET /api/v1/gpus lists those known here")
        return Subject(tuple(found), _slices(session, found))
    if kind == "host":
        return _host(session, now_ms, name)
    return _held(session, now_ms, kind, name, _workloads(session, kind, name))


def _host(session: Session, now_ms: int, name: str) -> Subject:
    key = idle_now.host_id(session, name)
    if key is None:
        raise NotFoundError(f"no host {name}: GET /api/v1/hosts lists those known here")
    every = idle_now.gpus_of_hosts(session, [key])
    cards = [one for one in every if not one.is_slice]
    here = [one for one in cards if now_ms - (one.seen_until_ms or 0) <= GONE_MS] or cards
    slices = tuple(one for one in every if one.is_slice)
    return Subject(tuple(here), slices, nothing=f"no GPU of host {name} is known")


def _slices(session: Session, gpus: Sequence[GpuSeen]) -> tuple[GpuSeen, ...]:
    cards = [one for one in gpus if not one.is_slice]
    hosts = {one.host_id for one in cards if one.host_id is not None}
    found = idle_now.gpus_of_hosts(session, hosts) if hosts else []
    for card in cards:
        if card.host_id is None:
            found += idle_now.slices_of_nowhere(session, card.gpu_uuid)
    return tuple(one for one in found if any(is_slice_of(one, card) for card in cards))


def is_slice_of(one: GpuSeen, card: GpuSeen) -> bool:
    """A slice says its card in its UUID (dcgm-exporter), or stands at its place (NVML)."""
    if not one.is_slice or card.is_slice:
        return False
    inner, slash, _ = one.gpu_uuid.removeprefix(SLICE_PREFIX).partition("/")
    if slash:
        return inner == card.gpu_uuid
    if card.host_id is None or one.host_id != card.host_id:
        return False
    # Where the source does not say the place, the slice may be of any card of the host: unknown is not idle.
    return one.gpu_index is None or card.gpu_index is None or one.gpu_index == card.gpu_index


def _workloads(session: Session, kind: str, name: str) -> list[tuple[int, int | None, WorkloadKey]]:
    if kind == "workload":
        of_kind, _, rest = name.partition("/")
        host, _, key = rest.partition("/")
        found = idle_now.workloads_named(session, kind=of_kind, key=key)
        found = [one for one in found if (one[2].host or "") == host]
    elif kind == "job":
        found = idle_now.workloads_named(session, kind="slurm_job", key=name)
    else:
        namespace, slash, short = name.rpartition("/")
        found = idle_now.workloads_named(session, kind="pod", key=name, name=short)
        if slash:
            found = [one for one in found if _namespace(one[2]) == namespace]
        spaces = {_namespace(one[2]) for one in found}
        if len(spaces) > 1:
            raise UsageError(
                f"pods of {len(spaces)} namespaces are named {name}: give NAMESPACE/NAME, or the pod's UID"
            )
    if not found:
        raise NotFoundError(
            f"no {kind} {name} was seen on a GPU: GET /api/v1/workloads lists those known here"
        )
    return found


def _namespace(workload: WorkloadKey) -> str:
    return dict(workload.attributes).get("namespace", "")


def _held(
    session: Session,
    now_ms: int,
    kind: str,
    name: str,
    workloads: Sequence[tuple[int, int | None, WorkloadKey]],
) -> Subject:
    """GPUs that it holds now, and those that it held when they fell silent: of them nobody knows."""
    ids = frozenset(id_ for id_, _, _ in workloads)
    used = idle_now.gpus_used(session, ids, now_ms - GONE_MS)
    hosts = {host_id for _, host_id, _ in workloads if host_id is not None}
    candidates = {one.id: one for one in idle_now.gpus_of_hosts(session, hosts)}
    candidates |= {one.id: one for one in idle_now.gpus_of_ids(session, used)}
    near = Window(now_ms - SILENT_MS - HOUR_MS, now_ms + SILENT_MS)
    held = idle_now.held_until(session, candidates, ids, near)
    gpus = []
    for one in candidates.values():
        until = one.seen_until_ms or 0
        told_ms = max(held.get(one.id, 0), min(used.get(one.id, 0), until))
        if held.get(one.id, 0) >= now_ms - SILENT_MS or (
            told_ms and until < now_ms - SILENT_MS and told_ms >= until - SILENT_MS
        ):
            gpus.append(one)
    last_ms = max((*held.values(), *used.values()), default=None)
    seen = "" if last_ms is None else f", and was last seen on one before {second(min(last_ms, now_ms))}"
    nothing = (
        f"{kind} {name} is not seen to hold any GPU now{seen}: whether one is granted to it is not known"
    )
    gpus.sort(key=lambda one: (one.host or "", one.gpu_index is None, one.gpu_index or 0, one.gpu_uuid))
    return Subject(tuple(gpus), _slices(session, gpus), ids, nothing)
