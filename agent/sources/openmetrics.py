"""Prometheus and OpenMetrics text with time stamps → readings.

Text written scrape after scrape streams. Text written metric after metric (``promtool tsdb
dump-openmetrics`` and most exports) is brought into the order of time on disk first, all files together, so
that memory stays constant and the files of one GPU or engine join.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from agent.sources.exposition import MILLISECONDS_FROM
from agent.sources.report import FileReport
from agent.sources.sample_lines import SampleLines, Value
from agent.sources.series import EngineEntity, Registry, Thing
from agent.sources.spill import Spill
from agent.sources.text import TextFile


class OpenMetrics:
    """Reads any number of files: ``read`` each, then ``rest``.

    Args:
        host: name for the host of everything in the files; None: as the labels say.
        at_ms: instant of samples that carry no time stamp; None: such a file is refused.
        latest_ms: samples later than this are refused; None: none is.
    """

    def __init__(
        self, *, host: str | None = None, at_ms: int | None = None, latest_ms: int | None = None
    ) -> None:
        self._registry = Registry(host)
        self._at_ms, self._latest_ms = at_ms, latest_ms
        self._spill: Spill | None = None

    def read(
        self, path: Path, report: FileReport, progress: Callable[[int], None] = lambda _bytes: None
    ) -> Iterator[Thing]:
        """Readings of one file as far as it is in the order of time; the others come from ``rest``.

        Args:
            path: file, gzip or not.
            report: gets the counts and sentences.
            progress: called now and then with the bytes of the file read so far.

        Raises:
            FormatError: this is no such text, or its samples carry no time.
            GpuwiseError: unreadable file, full disk.
        """
        file = TextFile(path)
        lines = SampleLines(self._registry, report, path, self._at_ms, self._latest_ms)
        layout = _Layout(self._registry)
        for block in file.blocks():
            start = 0
            for line in block if layout.streams is None else ():
                start += 1
                held = layout.hold(lines.values([line], file.line + start))
                if held:  # now it is clear
                    lines.streams = bool(layout.streams)
                    yield from self._place(held, layout)
                    break
            yield from self._place(
                lines.values(block[start:] if start else block, file.line + 1 + start), layout
            )
            progress(file.bytes_read)
        if file.cut is not None:
            report.problem(file.line + 1, f"{file.cut}; what came before is kept")
        yield from layout.end()
        lines.end()

    def rest(self) -> Iterator[Thing]:
        """Readings of the files that were not in the order of time, and what engines said last of themselves, with their GPUs."""
        if self._spill is not None:
            slots, entities = self._registry.slots, self._registry.entities
            summed = frozenset(number for number, slot in enumerate(slots) if slot.summed)
            with self._spill as spill:
                for ts_ms, entity, values in spill.in_order(summed):
                    yield from entities[entity].things(ts_ms, values, slots)
            self._spill = None
        self._registry.seat_all()
        for known in self._registry.entities:
            if isinstance(known, EngineEntity) and known.identity != known.told:
                known.told = known.identity
                yield known.identity

    def _place(self, values: list[Value], layout: "_Layout") -> list[Thing]:
        """Readings that the values complete in a file that streams; of another one they go to disk."""
        if layout.streams:
            return layout.take(values)
        if values:
            if self._spill is None:
                self._spill = Spill()
            self._spill.add(values)
        return []


class _Layout:
    """Whether a file goes scrape after scrape or metric after metric, and the open instants of one that streams.

    Told by the first entity whose time moves on: with one value seen at its first instant the file goes
    metric after metric (or has one metric only, which the order of time on disk serves as well).
    """

    def __init__(self, registry: Registry) -> None:
        self.streams: bool | None = None
        self._registry = registry
        self._held: list[Value] = []
        self._first: dict[int, tuple[int, set[str]]] = {}
        self._open: dict[int, tuple[int, dict[int, float]]] = {}

    def hold(self, values: Iterable[Value]) -> list[Value]:
        """Keep values until the layout is clear; then all that was kept."""
        for value in values:
            ts_ms, entity, slot, _figure = value
            self._held.append(value)
            first_ms, seen = self._first.setdefault(entity, (ts_ms, set()))
            if ts_ms == first_ms:
                seen.add(_family(self._registry.slots[slot].reading))
            elif self.streams is None:
                self.streams = len(seen) > 1 and ts_ms > first_ms
        if self.streams is None:
            return []
        held, self._held = self._held, []
        return held

    def take(self, values: Iterable[Value]) -> list[Thing]:
        """Add values to their instants; the readings that this completes."""
        things: list[Thing] = []
        instants, slots, entities = self._open, self._registry.slots, self._registry.entities
        for ts_ms, entity, slot, figure in values:
            held = instants.get(entity)
            if held is None or ts_ms > held[0]:
                if held is not None:
                    things += entities[entity].things(*held, slots)
                instants[entity] = (ts_ms, {slot: figure})
            elif slot in held[1] and slots[slot].summed:
                held[1][slot] += figure
            else:
                held[1][slot] = figure
        return things

    def end(self) -> Iterator[Thing]:
        """The instants still open."""
        for ts_ms, entity, slot, figure in self._held:
            self._open.setdefault(entity, (ts_ms, {}))[1][slot] = figure
        for entity, (ts_ms, instant) in self._open.items():
            yield from self._registry.entities[entity].things(ts_ms, instant, self._registry.slots)
        self._open = {}


def _family(reading: str) -> str:
    """Sum and count of one histogram stand together in text that goes metric after metric."""
    return reading.partition("_sum_")[0].removesuffix("_count")


def first_instant_ms(path: Path) -> int | None:
    """About when a file begins: the time stamp of its first sample; None when it has none."""
    for number, line in enumerate(TextFile(path)):
        if line and not line.startswith("#"):
            try:
                stamp = float(line.split()[-1])
            except ValueError:
                return None
            return round(stamp) if stamp >= MILLISECONDS_FROM else round(stamp * 1000)
        if number > 10_000:
            break
    return None
