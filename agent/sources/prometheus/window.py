"""A window of time of some GPUs and engines: the questions, and samples from the answers.

A window is read with margins and folded by itself, so its samples are the same however a history is cut into windows,
and a window that was stored is done.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from agent.batch import Batch
from agent.sources.prometheus.api import Api, NotUnderstoodError, Series
from agent.sources.prometheus.catalog import Catalog, Family
from agent.sources.prometheus.points import Clock, Points, Tally, owner_of
from agent.sources.prometheus.selector import one_of, selector
from agent.sources.series import GpuEntity, Registry
from agent.sources.workload_labels import Pod
from agent.track import GAP_INTERVALS, LONGEST_MS
from core.delivery import Delivery
from core.evidence import Window
from core.samples import GpuEvent
from core.units import SECOND_MS

SPANS_MS: Final = tuple(seconds * SECOND_MS for seconds in (20, 30, 60, 120, 240))
"""Lengths of samples; all divide the hour, and none is that of a live sample, so the two are told apart."""
MOST_POINTS: Final = 11_000
"""Prometheus answers no more of one series (``exceeded maximum resolution``)."""
ASKED_ANCHORS: Final = 8
"""More metrics than these are not tried for the times of a target: every kind of engine has one among them."""


def span_ms_of(step_ms: int) -> int:
    """Length of samples whose readings lie ``step_ms`` apart: every sample has one."""
    return next(span for span in SPANS_MS if span >= step_ms or span == SPANS_MS[-1])


def margin_ms_of(step_ms: int) -> int:
    """What is read before and after a window: enough for the cadence to be known and for a segment over the border."""
    return max((GAP_INTERVALS + 1) * step_ms, LONGEST_MS) + step_ms


def longest_ms(step_ms: int) -> int:
    """The longest window that one question may span, margins and all."""
    return (MOST_POINTS - 1) * step_ms - 2 * margin_ms_of(step_ms)


@dataclass(slots=True)
class Told:
    """Samples of a window, and whose points there were (``owner_of``)."""

    delivery: Delivery
    owners: set[str]


@dataclass(slots=True)
class Reader:
    """Reads windows of one server; what it learns of GPUs and engines stays from window to window.

    Attributes:
        api, found, step_ms: of whom, what and how finely.
        until_ms: there are no points later than this.
        host: name for the host of everything; None: as the labels say.
    """

    api: Api
    found: Catalog
    step_ms: int
    until_ms: int
    host: str | None = None
    tally: Tally = field(default_factory=Tally)
    _registry: Registry = field(init=False)
    _exact: bool | None = None
    """Whether the server tells when it scraped; None: not known yet."""
    _holders: dict[Pod, set[str]] = field(default_factory=dict)
    """Of the window that begins at ``_held_ms``: its engines may be read after its GPUs."""
    _held_ms: int = 0

    def __post_init__(self) -> None:
        """Start with nothing known."""
        self._registry = Registry(self.host, self.found.relabelled)

    @property
    def span_ms(self) -> int:
        """Length of the samples."""
        return span_ms_of(self.step_ms)

    def read(self, owners: Sequence[str], window: Window) -> Told:
        """Samples of some GPUs and engines that start within a window.

        Raises:
            TooMuchError: ask for fewer or for a shorter window. PrometheusError: the server cannot be read.
        """
        clock = Clock(self.step_ms, exact=self._exact is not False)
        points = Points(self._registry, clock, self.tally)
        if window.from_ms != self._held_ms:
            self._held_ms, self._holders = window.from_ms, {}
        points.holders.update(self._holders)
        wanted, told = set(owners), set[str]()
        for family in self.found.families:
            # What dcgm-exporter tells of, nvidia_gpu_exporter tells less well.
            told |= self._take(family, wanted - told, window, points)
        self._holders.update(points.holders)
        if clock.doubled:
            others = f" (and {len(clock.doubled) - 1} more)" if len(clock.doubled) > 1 else ""
            self.tally.note(
                f"{min(clock.doubled)}{others} is scraped by more than one target: one of them is read at a time"
            )
        return Told(self._fold(points, window), told)

    def _take(self, family: Family, wanted: set[str], window: Window, points: Points) -> set[str]:
        values = [value for value in family.values if owner_of({family.label: value}) in wanted]
        if not values:
            return set()
        margin_ms = margin_ms_of(self.step_ms)
        start_ms = (window.from_ms - margin_ms) // self.step_ms * self.step_ms
        end_ms = -(-(window.to_ms + margin_ms) // self.step_ms) * self.step_ms
        asked = Window(start_ms, min(end_ms, -(-self.until_ms // self.step_ms) * self.step_ms))
        told = self._learn_times(family, values, asked, points.clock)
        if not told:
            return told
        seen = [value for value in values if owner_of({family.label: value}) in told]
        for name in family.names:
            points.take(name, self._ask(selector(name, self._matchers(family, seen)), asked))
        return told

    def _learn_times(self, family: Family, values: Sequence[str], asked: Window, clock: Clock) -> set[str]:
        """When the targets were scraped; of which owners there is anything at all."""
        left, told = list(values), set[str]()
        for anchor in family.anchors[:ASKED_ANCHORS]:
            series = selector(anchor, self._matchers(family, left))
            if self._exact is not False:
                told |= self._scraped(series, asked, clock)
            if self._exact is False:
                told |= {owner_of(one.labels) for one in self._ask(series, asked)}
            left = [value for value in left if owner_of({family.label: value}) not in told]
            if not left:
                break
        return told

    def _scraped(self, series: str, asked: Window, clock: Clock) -> set[str]:
        """Let the clock learn when ``series`` was scraped; a server that does not tell is not asked again."""
        answer: list[Series] = []
        with suppress(NotUnderstoodError):
            answer = self._ask(f"timestamp({series})", asked)
        if answer:
            self._exact = True
            return clock.learn(answer)
        if self._exact is None and self._ask(series, asked):
            self._exact = clock.exact = False
            self.tally.note(
                "the server does not tell when it scraped: the last value of a series that stopped may last five minutes too long"
            )
        return set()

    def _matchers(self, family: Family, values: Sequence[str]) -> list[str]:
        whose = [] if len(values) == len(family.values) else [one_of(family.label, values)]
        if not whose:
            whose = [f'{family.label}!=""']
        return [*whose, *self.found.matchers]

    def _ask(self, query: str, asked: Window) -> list[Series]:
        return self.api.range(query, asked.from_ms, asked.to_ms, self.step_ms)

    def _fold(self, points: Points, window: Window) -> Delivery:
        batch = Batch(span_ms=self.span_ms)
        for entity in self._registry.entities:
            if isinstance(entity, GpuEntity):
                batch.gpu_fold.identify(entity.identity)
        for thing in points.things():
            if isinstance(thing, GpuEvent):
                batch.delivery.events.append(thing)
            else:
                batch.take(thing, write=False)
        batch.flush()
        return within(batch.take_delivery(), window)


def within(delivery: Delivery, window: Window) -> Delivery:
    """Samples and events that start within a window."""

    def inside(ts_ms: int) -> bool:
        return window.from_ms <= ts_ms < window.to_ms

    return replace(
        delivery,
        gpu_samples=[one for one in delivery.gpu_samples if inside(one.ts_ms)],
        process_samples=[one for one in delivery.process_samples if inside(one.ts_ms)],
        engine_samples=[one for one in delivery.engine_samples if inside(one.ts_ms)],
        events=[one for one in delivery.events if inside(one.ts_ms)],
    )
