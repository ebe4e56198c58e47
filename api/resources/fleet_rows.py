"""GPUs and hosts with what they do now and their figures of a window: tables of a thousand of them, from sums.

``gpu_rows`` and ``host_rows`` are what pages ask; ``read_fleet``, ``fitting`` and ``by_host`` are their parts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from api.ranking import rank
from api.resources.gpu_totals import GpuTotal, gpu_totals
from api.resources.report import UNOWNED
from api.resources.report_sum import ratio
from api.resources.scope import Scope
from core.activity import IDLE, Activity
from core.evidence import Window
from core.finding import Status
from core.money import from_micro
from core.ownership import HostFacts, Owner
from core.readings import SLICE_PREFIX
from core.units import HOUR_MS, MINUTE_MS
from store.queries.advice_heads import AdviceHead, advice_heads
from store.queries.fleet_state import fleet_state
from store.queries.gpu_engines import EngineName, engines_by_gpu
from store.queries.gpu_now import GpuNow, gpus_now
from store.queries.gpu_strips import Strip, main_activities
from store.queries.host_facts import host_facts

SILENT_MS: Final = 3 * MINUTE_MS
"""A GPU without a sample for so long, while others have some, says nothing: neither idle nor at work."""
SILENT: Final = "silent"
"""Value of the filter by activity for those."""
STRIP_MS: Final = 24 * HOUR_MS
WAITING: Final = (Status.OPEN, Status.REOPENED, Status.CLAIMED)
"""Statuses that still ask for something."""
# Looked up in a dictionary: calling the enumeration costs more than all else of a row.
_ACTIVITIES: Final[Mapping[str | None, Activity | None]] = {None: None} | {one.value: one for one in Activity}


@dataclass(frozen=True, slots=True)
class FleetFilters:
    """What was asked for; empty: no condition. Several values of one condition: any of them.

    Attributes:
        owner: team that paid for most of a GPU's time, or ``unowned``. activity: of now, or ``silent``.
        label: ``name=value`` as said of the host. engine: name or served model. find: part of any name of the row.
    """

    host: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    activity: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    engine: tuple[str, ...] = ()
    find: str = ""


ALL: Final = FleetFilters()


@dataclass(frozen=True, slots=True)
class FleetGpu:
    """One GPU.

    Attributes:
        now: identity and newest sample. total: its window. owner: who paid for most of that; None: nobody.
        is_silent: no sample for ``SILENT_MS`` before the newest of the fleet.
        strip: main activity of each of the last 24 clock hours of the window, oldest first; None: no samples.
        engines: those on it. advice: what waits for somebody, the best first.
    """

    now: GpuNow
    total: GpuTotal
    is_silent: bool
    strip: Strip
    facts: HostFacts | None
    engines: tuple[EngineName, ...] = ()
    advice: tuple[AdviceHead, ...] = ()

    @property
    def activity(self) -> Activity | None:
        """What it does; None when it is silent or was never seen."""
        return None if self.is_silent else _ACTIVITIES[self.now.activity]

    @property
    def owner(self) -> Owner | None:
        """Who paid for most of its time."""
        return self.total.owner

    @property
    def team(self) -> str:
        """The team of that, or ``unowned``."""
        return team_of(self.owner)

    @property
    def labels(self) -> tuple[str, ...]:
        """``name=value`` of everything that is said of its host."""
        return () if self.facts is None else labels_of(self.facts)


@dataclass(frozen=True, slots=True)
class FleetHost:
    """GPUs of one host (None: of no known one) together; money None where none of them is priced."""

    host: str | None
    gpus: tuple[FleetGpu, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Product names of its GPUs, the most frequent first."""
        return tuple(name for name, _ in Counter(g.now.model for g in self.gpus).most_common() if name)

    @property
    def cost_usd(self) -> Decimal | None:
        """Cost of their clock time in the window."""
        return cost_usd(self.gpus)

    @property
    def idle_usd(self) -> Decimal | None:
        """Of it idle."""
        return idle_usd(self.gpus)

    @property
    def energy_kwh(self) -> float | None:
        """Energy at the GPUs that is known."""
        known = [gpu.total.energy_kwh for gpu in self.gpus if gpu.total.energy_kwh is not None]
        return sum(known) if known else None

    @property
    def coverage_ratio(self) -> float | None:
        """Share of their known time for which samples vouch."""
        return ratio(
            sum(gpu.total.covered_ms for gpu in self.gpus), sum(gpu.total.known_ms for gpu in self.gpus)
        )

    @property
    def counts(self) -> "StateCounts":
        """What they do now."""
        return state_counts(self.gpus)

    @property
    def advice(self) -> tuple[AdviceHead, ...]:
        """What waits for somebody about any of them, the best first."""
        found = {head.id: head for gpu in self.gpus for head in gpu.advice}
        return tuple(sorted(found.values(), key=lambda head: rank(head.finding)))


@dataclass(frozen=True, slots=True)
class StateCounts:
    """How many GPUs work, do nothing, cannot be told, are silent; and by activity."""

    work: int = 0
    idle: int = 0
    unknown: int = 0
    silent: int = 0
    by_activity: Mapping[Activity, int] = field(default_factory=dict)

    @property
    def all(self) -> int:
        """Every one."""
        return self.work + self.idle + self.unknown + self.silent


def gpu_rows(scope: Scope, filters: FleetFilters = ALL) -> list[FleetGpu]:
    """Every card that was known in the window and fits, by host and index."""
    return fitting(read_fleet(scope), filters)


def host_rows(scope: Scope, filters: FleetFilters = ALL) -> list[FleetHost]:
    """The same by host, by name; those of no known host last."""
    return by_host(gpu_rows(scope, filters))


def strip_window(window: Window) -> Window:
    """The last 24 clock hours of a window."""
    end = window.to_ms + -window.to_ms % HOUR_MS
    return Window(end - STRIP_MS, end)


def read_fleet(scope: Scope, host: str | None = None) -> list[FleetGpu]:
    """Every card that was known in the window, or never gave a sample; MIG slices are parts of one.

    Args:
        scope: session, settings, window.
        host: only those of this host; empty: of no known one.
    """
    session, window = scope.session, scope.window
    cards = [one for one in gpus_now(session, host) if not one.gpu_uuid.startswith(SLICE_PREFIX)]
    newest = fleet_state(session).newest_ms
    cards = [one for one in cards if _is_known_in(one, window)]
    ids = None if host is None else frozenset(one.id for one in cards)
    totals = gpu_totals(scope, ids)
    hours = strip_window(window)
    strips = main_activities(session, hours, ids)
    blank: Strip = (None,) * (STRIP_MS // HOUR_MS)
    facts = host_facts(session)
    engines = engines_by_gpu(session, window.from_ms)
    advice = _advice(scope)
    return [
        FleetGpu(
            now=one,
            total=totals.get(one.id) or GpuTotal(),
            is_silent=newest is not None
            and (one.seen_until_ms is None or newest - one.seen_until_ms > SILENT_MS),
            strip=strips.get(one.id, blank),
            facts=facts.get(one.host or ""),
            engines=engines.get(one.gpu_uuid, ()),
            advice=tuple(advice.get(one.gpu_uuid, ())),
        )
        for one in cards
    ]


def _is_known_in(one: GpuNow, window: Window) -> bool:
    if one.first_sample_ms is None or one.seen_until_ms is None:
        return True
    return one.first_sample_ms < window.to_ms and one.seen_until_ms > window.from_ms


def _advice(scope: Scope) -> dict[str, list[AdviceHead]]:
    found: dict[str, list[AdviceHead]] = {}
    for head in sorted(advice_heads(scope.session, WAITING), key=lambda one: rank(one.finding)):
        for gpu_uuid in head.finding.gpu_uuids:
            found.setdefault(gpu_uuid, []).append(head)
    return found


def labels_of(facts: HostFacts) -> tuple[str, ...]:
    """``name=value`` of everything that is said of a host."""
    return tuple(f"{name}={value}" for name, value in sorted(facts.named.items()))


def fitting(rows: Iterable[FleetGpu], filters: FleetFilters) -> list[FleetGpu]:
    """Rows that fit; pure."""
    tests: list[Callable[[FleetGpu], bool]] = []
    if filters.host:
        tests.append(lambda row: (row.now.host or "") in filters.host)
    if filters.model:
        tests.append(lambda row: (row.now.model or "") in filters.model)
    if filters.owner:
        tests.append(lambda row: row.team in filters.owner)
    if filters.activity:
        tests.append(lambda row: state_of(row) in filters.activity)
    if filters.label:
        tests.append(lambda row: any(label in filters.label for label in row.labels))
    if filters.engine:
        tests.append(
            lambda row: any(
                one.engine in filters.engine or one.model in filters.engine for one in row.engines
            )
        )
    if filters.find.strip():
        wanted = filters.find.strip().casefold()
        tests.append(lambda row: any(wanted in text.casefold() for text in _names(row)))
    return [row for row in rows if all(test(row) for test in tests)]


def _names(row: FleetGpu) -> list[str]:
    owner = () if row.owner is None else (row.owner.team, row.owner.project)
    named = (row.now.gpu_uuid, row.now.host, row.now.model, *owner, *row.labels)
    engines = (name for one in row.engines for name in (one.engine, one.model))
    return [text for text in (*named, *engines) if text]


def state_of(row: FleetGpu) -> str:
    """Value of the filter by activity that it fits; a card that was never seen is silent."""
    return SILENT if row.activity is None else row.activity.value


def by_host(rows: Iterable[FleetGpu]) -> list[FleetHost]:
    """Rows by host in the order in which hosts first come; pure."""
    found: dict[str | None, list[FleetGpu]] = {}
    for row in rows:
        found.setdefault(row.now.host, []).append(row)
    return [FleetHost(host, tuple(gpus)) for host, gpus in found.items()]


def state_counts(rows: Iterable[FleetGpu]) -> StateCounts:
    """What GPUs do now; pure."""
    activities = [row.activity for row in rows]
    by_activity = Counter(one for one in activities if one is not None)
    idle = sum(by_activity[one] for one in IDLE)
    unknown = by_activity[Activity.UNKNOWN]
    silent = activities.count(None)
    return StateCounts(len(activities) - idle - unknown - silent, idle, unknown, silent, dict(by_activity))


def team_of(owner: Owner | None) -> str:
    """The team of an owner, or ``unowned``."""
    return UNOWNED if owner is None else owner.team


def cost_usd(rows: Iterable[FleetGpu]) -> Decimal | None:
    """Cost of clock time of some GPUs together; None where none of them is priced."""
    totals = [row.total for row in rows]
    return _usd([one.cost_micro + one.paid_micro for one in totals if one.cost_micro is not None])


def idle_usd(rows: Iterable[FleetGpu]) -> Decimal | None:
    """Of it idle."""
    return _usd([row.total.idle_micro for row in rows if row.total.idle_micro is not None])


def _usd(known: Sequence[int]) -> Decimal | None:
    return from_micro(sum(known)) if known else None
