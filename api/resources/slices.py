"""GPU-hours cut by what people group on. Whatever the cut, its parts add up to the same fleet.

Key None is what cannot be said: GPU time that no known workload, user, engine or owner held. Gaps (time between
a GPU's first and last sample without samples) are slices too: known time that nothing covers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

from api.resources.book import Book
from api.resources.by import By
from api.resources.gpu_slice import Slice, gap, whole
from api.resources.scope import Scope
from api.resources.splits import by_activity, by_engine, by_workload
from api.words import workload_kind
from core.clock import from_ms as at_utc
from core.readings import WorkloadKey
from store.queries import fleet, hour_sums
from store.queries.fleet import FleetGpu
from store.queries.hour_sums import WorkloadSum

__all__ = ["NOT_HELD", "UNOWNED", "By", "gpu_label", "key_of", "slices", "time_key"]

UNOWNED: Final = "unowned"
"""Label of the one row of ``by=owner`` as long as no owner rules exist; its key is null."""
NOT_HELD: Final = "not attributed"
"""Label of GPU time that no known workload or engine held; its key is null."""
NO_USER: Final = "no known user"
NO_NAMESPACE: Final = "no namespace"
"""Labels of time that nobody held and of time whose holder has none: one group, its key is null."""


def slices(scope: Scope, book: Book, by: By) -> Iterator[Slice]:
    """The book's GPU-hours, and its gaps, under the keys of ``by``; the slices of a stretch come one after the other."""
    match by:
        case By.ACTIVITY:
            for gpu_uuid, from_ms, known_s, hours in book.grid():
                part = gap(gpu_uuid, from_ms, known_s) if hours is None else whole(hours, from_ms, known_s)
                yield from by_activity(part, hours)
        case By.ENGINE:
            engines = _engines_by_hour(scope)
            for part, _ in _whole_stretches(book, None, NOT_HELD):
                yield from by_engine(part, engines.get((part.gpu_uuid, part.from_ms), []))
        case By.WORKLOAD | By.USER | By.NAMESPACE:
            usages = _usages(scope, book)
            name, nobody = _NAMED[by]
            for part, start_ms in _whole_stretches(book, None, nobody):
                yield from by_workload(part, usages.get((part.gpu_uuid, start_ms), []), name)
        case _:
            for part, _ in _whole_stretches(book, by, ""):
                yield part


def _whole_stretches(book: Book, by: By | None, label: str) -> Iterator[tuple[Slice, int]]:
    """Every stretch of the book as one slice, with the stretch's own start."""
    for gpu_uuid, from_ms, known_s, hours in book.grid():
        key, name = (None, label) if by is None else key_of(book.gpus[gpu_uuid], from_ms, by)
        start_ms = book.stretches.start_of(from_ms)
        if hours is None:
            yield gap(gpu_uuid, from_ms, known_s, key=key, label=name), start_ms
        else:
            yield whole(hours, from_ms, known_s, key=key, label=name), start_ms


def key_of(gpu: FleetGpu, from_ms: int, by: By) -> tuple[str | None, str]:
    """Key and label of a GPU's stretch, for keys that it has as a whole."""
    identity = gpu.identity
    match by:
        case By.GPU:
            return identity.gpu_uuid, gpu_label(gpu)
        case By.HOST:
            return identity.host, identity.host or "host unknown"
        case By.MODEL:
            return identity.model, identity.model or "model unknown"
        case By.OWNER:
            return None, UNOWNED
        case _:
            key = time_key(from_ms, by)
            return key, key


def gpu_label(gpu: FleetGpu) -> str:
    """A GPU for people: ``GPU 3 on node-07``, else its UUID."""
    identity = gpu.identity
    if identity.index is None:
        return identity.gpu_uuid
    return f"GPU {identity.index}" + (f" on {identity.host}" if identity.host else "")


def time_key(at_ms: int, by: By) -> str:
    """Start of the hour as ISO 8601, or its day, ISO week or month, all UTC."""
    at = at_utc(at_ms)
    match by:
        case By.HOUR:
            return f"{at:%Y-%m-%dT%H:00:00Z}"
        case By.DAY:
            return f"{at:%Y-%m-%d}"
        case By.WEEK:
            year, week, _ = at.isocalendar()
            return f"{year}-W{week:02d}"
        case By.MONTH:
            return f"{at:%Y-%m}"
        case _:
            raise ValueError(f"{by} is no span of time")


def _engines_by_hour(scope: Scope) -> dict[tuple[str, int], list[tuple[str, str]]]:
    engines = {engine.identity.engine: engine for engine in fleet.engines(scope.session)}
    found: dict[tuple[str, int], list[tuple[str, str]]] = defaultdict(list)
    for name, hour_ms in hour_sums.engines_seen(scope.session, scope.window):
        engine = engines.get(name)
        if engine is None:
            continue
        label = engine.identity.model or engine.identity.engine
        for gpu_uuid in engine.gpu_uuids:
            found[gpu_uuid, hour_ms].append((name, label))
    return found


def _usages(scope: Scope, book: Book) -> dict[tuple[str, int], list[WorkloadSum]]:
    found: dict[tuple[str, int], list[WorkloadSum]] = defaultdict(list)
    for usage in hour_sums.workload_sums(scope.session, scope.window, book.stretches):
        found[usage.gpu_uuid, usage.from_ms].append(usage)
    return found


def _workload_name(workload: WorkloadKey) -> tuple[str | None, str]:
    key = "/".join((workload.kind, workload.host or "", workload.key))
    return key, f"{workload.name} · {workload_kind(workload)}"


def _user_name(workload: WorkloadKey) -> tuple[str | None, str]:
    return workload.user, workload.user or NO_USER


def _namespace_name(workload: WorkloadKey) -> tuple[str | None, str]:
    namespace = dict(workload.attributes).get("namespace")
    return namespace, namespace or NO_NAMESPACE


_NAMED: Final[dict[By, tuple[Callable[[WorkloadKey], tuple[str | None, str]], str]]] = {
    By.WORKLOAD: (_workload_name, NOT_HELD),
    By.USER: (_user_name, NO_USER),
    By.NAMESPACE: (_namespace_name, NO_NAMESPACE),
}
"""Key and label of a workload's time, and the label of time without any."""
