"""Series of an answer → values of GPUs and engines at the instants at which they were scraped.

``query_range`` gives the last value up to five minutes on, and stamps it with the time asked for. ``timestamp()`` of one
series of a target tells when it was scraped, and so when all of its series were: a value that only lasts is no point,
and a series that stopped is a gap.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Final

from agent.sources import dcgm, series
from agent.sources.exposition import LineError
from agent.sources.prometheus.api import Series
from agent.sources.series import EngineEntity, GpuEntity, Registry, Thing
from agent.sources.workload_labels import Pod, pod_behind
from agent.xids import message
from core.plausible import plausible, refusal
from core.samples import GpuEvent
from core.units import MINUTE_MS

SHOWN: Final = 20
SILENT_MS: Final = 2 * MINUTE_MS
"""While a target is scraped more often than this, no other one tells of its GPUs."""
_NAME: Final = "__name__"
_TARGET: Final = ("instance", "job", "cluster", "prometheus", "prometheus_replica", "replica", "__replica__")
"""Labels that tell what was scraped, and by which of several servers that scrape the same."""

Labels = frozenset[tuple[str, str]]
Times = Mapping[int, int]
"""Instant of the question → instant at which the value was scraped; both UTC epoch milliseconds."""


@dataclass(slots=True)
class Tally:
    """What became of the points: counts, and the first sentences about what was wrong.

    ``points``: figures that were read. ``repeated``: those that only lasted from a scrape before. ``unknown``: DCGM's
    and Prometheus's ways to say that there is no value. ``refused``: figures that cannot be true.
    """

    points: int = 0
    repeated: int = 0
    unknown: int = 0
    refused: int = 0
    problems: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def problem(self, sentence: str) -> None:
        """Keep a sentence, once, and not more than ``SHOWN``."""
        if len(self.problems) < SHOWN:
            self.problems[sentence] = None

    def note(self, sentence: str) -> None:
        """Keep what was assumed, once."""
        if len(self.notes) < SHOWN:
            self.notes[sentence] = None


class Clock:
    """When the targets of one window were scraped.

    Args:
        step_ms: distance of the questions.
        exact: False where the server does not tell; a value is then taken to be of the time asked for.
    """

    def __init__(self, step_ms: int, *, exact: bool = True) -> None:
        self._step_ms, self.exact = step_ms, exact
        self._of_series: dict[Labels, Times] = {}
        self._of_target: dict[tuple[str, Labels], dict[int, int]] = defaultdict(dict)
        self._chosen: dict[tuple[str, Labels], Times] = {}

    def learn(self, answer: Iterable[Series]) -> set[str]:
        """Take ``timestamp()`` of some metric; whose series (``owner_of``) it told the times of."""
        owners = set()
        for one in answer:
            times = {round(at * 1000): round(float(told) * 1000) for at, told in one.values}
            owner = owner_of(one.labels)
            target = self._of_target[owner, _only(one.labels, _TARGET)]
            for at, scraped in times.items():
                target[at] = max(scraped, target.get(at, 0))
            self._of_series[_without_name(one.labels)] = times
            owners.add(owner)
        self._chosen = dict(self._choose())
        return owners

    def times(self, labels: Mapping[str, str]) -> Times | None:
        """When a series was scraped; None: its target is not known, or another one tells of the same GPU."""
        target = (owner_of(labels), _only(labels, _TARGET))
        chosen = self._chosen.get(target)
        if chosen is None:
            return None
        own = self._of_series.get(_without_name(labels))
        if own is None or len(chosen) == len(self._of_target[target]):
            return chosen if own is None else own
        return {at: scraped for at, scraped in own.items() if at in chosen}

    @property
    def doubled(self) -> set[str]:
        """Owners that several targets tell of at the same time."""
        return {
            owner
            for (owner, target), times in self._chosen.items()
            if len(times) < len(self._of_target[owner, target])
        }

    def _choose(self) -> Iterator[tuple[tuple[str, Labels], Times]]:
        """Of several targets of one owner the one that tells most; the others where it is silent."""
        owners: dict[str, list[Labels]] = defaultdict(list)
        for owner, target in self._of_target:
            owners[owner].append(target)
        for owner, targets in owners.items():
            if len(targets) == 1:
                yield (owner, targets[0]), self._of_target[owner, targets[0]]
                continue
            targets.sort(
                key=lambda target: (-len(set(self._of_target[owner, target].values())), sorted(target))
            )
            silent_ms = max(2 * self._step_ms, SILENT_MS)
            taken: list[int] = []
            for target in targets:
                free = {
                    at: scraped
                    for at, scraped in self._of_target[owner, target].items()
                    if not _is_among(taken, scraped, silent_ms)
                }
                yield (owner, target), free
                taken = sorted({*taken, *free.values()})


def _is_among(instants: Sequence[int], ts_ms: int, near_ms: int) -> bool:
    """Whether one of some instants in order is near before, and one near after: whoever told them goes on."""
    place = bisect_right(instants, ts_ms)
    return 0 < place < len(instants) and max(ts_ms - instants[place - 1], instants[place] - ts_ms) < near_ms


@dataclass(slots=True)
class Points:
    """The values of one window, in memory; ``things`` gives them by GPU or engine and time."""

    registry: Registry
    clock: Clock
    tally: Tally
    holders: dict[Pod, set[str]] = field(default_factory=lambda: defaultdict(set))
    _rows: dict[int, dict[int, dict[int, float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    _xids: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))

    def take(self, name: str, answer: Iterable[Series]) -> None:
        """Take the answer for one metric."""
        for one in answer:
            if name == dcgm.XID:
                self._take_xids(one)
                continue
            try:
                placed = self.registry.place(name, one.labels, "")
            except LineError as error:
                self.tally.problem(str(error))
                continue
            if placed is not None:
                self._take(name, one, placed)

    def things(self) -> Iterator[Thing | GpuEvent]:
        """Identities that are news, readings by GPU and time, and events; the values are gone afterwards."""
        slots, entities = self.registry.slots, self.registry.entities
        for number in list(self._rows):
            rows, entity = self._rows.pop(number), entities[number]
            for ts_ms in sorted(rows):
                yield from entity.things(ts_ms, rows.pop(ts_ms), slots)
        yield from self._events()

    def _take(self, name: str, one: Series, placed: series.Series) -> None:
        scraped, figures = self._new_points(one)
        if not figures:
            return
        entity = self.registry.entities[placed.entity]
        if isinstance(entity, EngineEntity) and entity.pod is not None:
            self.registry.seat(entity, self.holders.get(entity.pod, ()))
        rows, tally = self._rows[placed.entity], self.tally
        plain = isfinite(sum(figures)) and placed.last_value <= min(figures) and max(figures) <= placed.most
        if not plain:
            scraped, figures = self._careful(name, placed, scraped, figures)
        tally.points += len(figures)
        for slot, factor in placed.slots:
            pod = pod_behind(self.registry.slots[slot].holder)
            if pod is not None and isinstance(entity, GpuEntity):
                self.holders[pod].add(entity.identity.gpu_uuid)
            summed = self.registry.slots[slot].summed
            reading = self.registry.slots[slot].reading.lstrip("@")
            for ts_ms, figure in zip(scraped, figures, strict=True):
                value = figure * factor
                if not plain:
                    value = plausible(reading, value) or 0.0
                row = rows[ts_ms]
                row[slot] = value + row[slot] if summed and slot in row else value

    def _new_points(self, one: Series) -> tuple[list[int], list[float]]:
        """Instants and figures of what was scraped anew."""
        try:
            figures = [float(figure) for _at, figure in one.values]
            asked = [round(at * 1000) for at, _figure in one.values]
        except (TypeError, ValueError):
            self.tally.problem(f"{one.labels.get(_NAME, 'a series')} has a value that is no number")
            return [], []
        if not self.clock.exact:
            return asked, figures
        times = self.clock.times(one.labels)
        if times is None:
            return [], []
        scraped, kept, last = [], [], 0
        for at, figure in zip(asked, figures, strict=True):
            ts_ms = times.get(at, 0)
            if ts_ms > last:
                scraped.append(ts_ms)
                kept.append(figure)
                last = ts_ms
        self.tally.repeated += len(figures) - len(kept)
        return scraped, kept

    def _careful(
        self, name: str, placed: series.Series, scraped: Sequence[int], figures: Sequence[float]
    ) -> tuple[list[int], list[float]]:
        """What is a value and can be true; limits that an engine publishes go to its settings."""
        good: tuple[list[int], list[float]] = ([], [])
        readings = [(self.registry.slots[slot].reading.lstrip("@"), factor) for slot, factor in placed.slots]
        for ts_ms, figure in zip(scraped, figures, strict=True):
            if placed.is_blank(figure):
                self.tally.unknown += 1
                continue
            wrong = next((r for r, factor in readings if plausible(r, figure * factor) is None), None)
            if wrong is not None:
                self.tally.refused += 1
                self.tally.problem(f"{name}: {refusal(wrong, f'{figure:.15g}')}")
                continue
            good[0].append(ts_ms)
            good[1].append(figure)
        entity = self.registry.entities[placed.entity]
        if placed.settings and good[1] and isinstance(entity, EngineEntity):
            entity.learn(None, dict.fromkeys(placed.settings, f"{good[1][-1]:g}"))
        return good

    def _take_xids(self, one: Series) -> None:
        scraped, figures = self._new_points(one)
        owner = owner_of(one.labels)
        if owner.startswith(_GPU):
            codes = self._xids[owner.removeprefix(_GPU)]
            for ts_ms, figure in zip(scraped, figures, strict=True):
                if isfinite(figure) and 0 <= figure < dcgm.BLANKS_32.start:
                    codes[ts_ms] = max(int(figure), codes.get(ts_ms, 0))

    def _events(self) -> Iterator[GpuEvent]:
        """XIDs where the number changes: the same one again, and one before the first scrape, cannot be told."""
        for uuid, codes in self._xids.items():
            before = None
            for ts_ms in sorted(codes):
                code = codes[ts_ms]
                if before is not None and code not in {0, before}:
                    yield GpuEvent(uuid, ts_ms, "xid", message(code), code)
                before = code


_GPU: Final = "gpu "
_ENGINE: Final = "engine "


def owner_of(labels: Mapping[str, str]) -> str:
    """Whose a series is: ``gpu UUID`` of the card (also of its MIG slices), else ``engine INSTANCE``."""
    uuid = labels.get("UUID") or labels.get("uuid") or labels.get("gpu_uuid")
    if not uuid:
        return f"{_ENGINE}{labels.get('instance', '')}"
    return f"{_GPU}{uuid}" if uuid.startswith(("GPU-", "MIG-")) else f"{_GPU}GPU-{uuid}"


def _only(labels: Mapping[str, str], names: Iterable[str]) -> Labels:
    return frozenset((name, labels[name]) for name in names if labels.get(name))


def _without_name(labels: Mapping[str, str]) -> Labels:
    return frozenset((name, value) for name, value in labels.items() if name != _NAME)
