"""What a Prometheus has of GPUs and engines: metrics by name, GPUs by UUID, engines by instance, and how often they are scraped."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agent.engines import names_by_prefix
from agent.sources import dcgm
from agent.sources.prometheus.api import Api, NotUnderstoodError, PrometheusError, TooMuchError
from agent.sources.prometheus.selector import of_names, one_of, selector
from agent.sources.series import Registry
from agent.track import LONGEST_MS, median
from core.clock import iso
from core.evidence import Window
from core.units import MINUTE_MS, SECOND_MS

LEAST_STEP_MS: Final = 10_000
MOST_STEP_MS: Final = 4 * MINUTE_MS
"""A series that is scraped less often is stale to Prometheus itself between two scrapes."""
USUAL_STEP_MS: Final = MINUTE_MS
"""Where the server does not tell when it scraped."""
ANCHORS: Final = (
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_PROF_SM_ACTIVE",
    "nvidia_smi_memory_used_bytes",
    "nvidia_smi_utilization_gpu_ratio",
    "nvidia_smi_power_draw_watts",
)
"""Series of GPUs that nearly every exporter has, by which the times of its scrapes are asked."""
LOOKED_FOR: Final = ("DCGM_FI_*", "nvidia_smi_*", *(f"{prefix}*" for prefix in names_by_prefix()))
_ANY: Final = (
    '__name__=~"(?:DCGM_FI_|nvidia_smi_|vllm:|sglang:|tgi_|trtllm_|trtllm:|nv_trt_llm_|llamacpp:).+"'
)
_LOOK_MS: Final = 15 * MINUTE_MS
_LOOK_STEP_MS: Final = 5_000
_COARSE_POINTS: Final = 10_000
_LOOKED_AT: Final = 20
"""GPUs or engines whose scrapes are timed."""


@dataclass(frozen=True, slots=True)
class Family:
    """Metrics of one exporter or of engines.

    Attributes:
        label: label that names what a series is of. names: metrics that are there. anchors: those of them by which the
            times of scrapes are asked, the likeliest first. values: what the label is.
    """

    label: str
    names: tuple[str, ...]
    anchors: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """What was found.

    Attributes:
        dcgm, smi, engines: by exporter. matchers: what the user wants to match.
        relabelled: labels of what is scraped are renamed (``exported_pod``).
    """

    dcgm: Family
    smi: Family
    engines: Family
    matchers: tuple[str, ...]
    relabelled: bool

    @property
    def families(self) -> tuple[Family, ...]:
        """Those that have something."""
        return tuple(one for one in (self.dcgm, self.smi, self.engines) if one.names and one.values)

    @property
    def names(self) -> list[str]:
        """All metrics that are there."""
        return [name for family in self.families for name in family.names]

    @property
    def gpu_uuids(self) -> list[str]:
        """UUIDs of the cards."""
        return sorted({with_prefix(uuid) for uuid in (*self.dcgm.values, *self.smi.values)})


def with_prefix(uuid: str) -> str:
    """A UUID as the driver writes it; nvidia_gpu_exporter leaves the prefix out."""
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"


def look(api: Api, matchers: Sequence[str], window: Window) -> Catalog:
    """Find GPUs and engines with points in a window.

    Raises:
        PrometheusError: there are none, or the server cannot be read.
    """
    registry = Registry()
    told = api.label_values("__name__", f"{{{','.join([_ANY, *matchers])}}}", window.from_ms, window.to_ms)
    names = sorted(name for name in told if registry.knows(name) or name == dcgm.XID)

    def family(label: str, of: Iterable[str]) -> Family:
        listed = tuple(of)
        anchors = tuple(
            dict.fromkeys([*(name for name in ANCHORS if name in listed), *_of_kinds(listed), *listed])
        )
        values = []
        if listed:
            values = api.label_values(label, of_names(listed, matchers), window.from_ms, window.to_ms)
        return Family(label, listed, anchors, tuple(sorted(filter(None, values))))

    of_dcgm = [name for name in names if name.startswith("DCGM_FI_")]
    of_smi = [name for name in names if name.startswith("nvidia_smi_")]
    of_engines = [name for name in names if not name.startswith(dcgm.PREFIXES)]
    found = Catalog(
        family("UUID", of_dcgm),
        family("uuid", of_smi),
        family("instance", of_engines),
        tuple(matchers),
        _relabelled(api, of_dcgm, matchers, window),
    )
    if not found.families:
        matching = f" that match {{{','.join(matchers)}}}" if matchers else ""
        raise PrometheusError(
            f"{api.url} has no series of GPUs or LLM engines{matching} from {iso(window.from_ms)} to {iso(window.to_ms)}: "
            f"looked for {', '.join(LOOKED_FOR)} with a label UUID, uuid or instance; check --match, --days and the tenant (--header)"
        )
    return found


def _of_kinds(names: Sequence[str]) -> Iterator[str]:
    """A metric of each kind of engine: another kind has none of its names."""
    for prefix in names_by_prefix():
        own = [name for name in names if name.startswith(prefix) and not name.endswith("_info")]
        running = [name for name in own if "running" in name or "processing" in name]
        yield from (running or own)[:1]


def _relabelled(api: Api, names: Sequence[str], matchers: Sequence[str], window: Window) -> bool:
    if not names:
        return False
    match = of_names(names, [*matchers, 'exported_pod!=""'])
    try:
        return any(api.label_values("exported_pod", match, window.from_ms, window.to_ms))
    except NotUnderstoodError:
        return False


def scraped_every_ms(api: Api, found: Catalog, window: Window) -> int | None:
    """Distance of scrapes near the end of a window, the middle of all targets'; None: the server does not tell.

    Raises:
        PrometheusError: the server cannot be read.
    """
    try:
        newest = [_newest(api, found, family, window) for family in found.families]
        instants = [ts_ms for ts_ms in newest if ts_ms is not None]
        if not instants:
            return None
        distances = [
            d
            for family in found.families
            for d in _distances(api, found, family, max(instants) + _LOOK_STEP_MS)
        ]
    except NotUnderstoodError:
        return None
    if not distances:
        return None
    return min(max(round(median(distances) / 1000) * 1000, LEAST_STEP_MS), MOST_STEP_MS)


def _newest(api: Api, found: Catalog, family: Family, window: Window) -> int | None:
    """About when some of the targets were scraped last; None: nothing is told of them."""
    step_ms = max((window.to_ms - window.from_ms) // _COARSE_POINTS, LONGEST_MS - SECOND_MS)
    query = f"timestamp({selector(family.anchors[0], [_some(family, 5), *found.matchers])})"
    try:
        answer = api.range(
            query, window.to_ms - (window.to_ms - window.from_ms) // step_ms * step_ms, window.to_ms, step_ms
        )
    except TooMuchError:
        return None
    return max((round(float(one.values[-1][1]) * 1000) for one in answer if one.values), default=None)


def _some(family: Family, most: int) -> str:
    return one_of(family.label, family.values[:most])


def _distances(api: Api, found: Catalog, family: Family, to_ms: int) -> list[int]:
    """Distances of the scrapes of some targets, or of one where the server answers small questions only."""
    for most in (_LOOKED_AT, 1):
        query = f"timestamp({selector(family.anchors[0], [_some(family, most), *found.matchers])})"
        try:
            answer = api.range(query, to_ms - _LOOK_MS, to_ms, _LOOK_STEP_MS)
        except TooMuchError:
            continue
        scraped = [sorted({round(float(told) * 1000) for _at, told in one.values}) for one in answer]
        return [after - before for of_one in scraped for before, after in pairwise(of_one)]
    return []
