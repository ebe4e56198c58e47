"""A history from Prometheus into the database: window by window, oldest first, each rolled up before the next.

A window's samples go the way of every other sample. Of windows that are older than raw samples are kept only the hours
stay. What was stored is done: a run that was stopped goes on there, and one more run adds what is new.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from agent.sources.prometheus.api import PrometheusError, TooMuchError
from agent.sources.prometheus.catalog import Catalog
from agent.sources.prometheus.points import owner_of
from agent.sources.prometheus.window import Reader, longest_ms
from core.evidence import Window
from core.settings import Settings
from core.sharing import ShareMethod
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from store.dbapi import open_connection
from store.engine import make_engine
from store.imported import Imported
from store.retention import purge
from store.rollup import roll_up

CHUNK_READINGS = 20_000
"""Readings held in memory at once: some 60 MB."""
WINDOWS_H = (24, 12, 6, 3, 1)
SETTLED_MS = 10 * MINUTE_MS
"""An hour is done when it ended so long ago: remote writes and long scrapes come late."""

Progress = Callable[[int, int], None]
"""Called with the hours of GPUs and engines that are through, and how many there are."""


@dataclass(slots=True)
class HistoryReport:
    """What became of an import: counts of rows by kind, and hours of GPUs and engines by what was done with them.

    ``known``: hours that the database had from elsewhere. ``done``: hours that an earlier run had stored.
    """

    gpu_samples: int = 0
    process_samples: int = 0
    engine_samples: int = 0
    events: int = 0
    new_rows: int = 0
    known: int = 0
    known_gpus: set[str] = field(default_factory=set)
    done_hours: int = 0
    from_ms: int | None = None
    to_ms: int | None = None
    gpu_uuids: set[str] = field(default_factory=set)
    engines: set[str] = field(default_factory=set)


def owners_of(found: Catalog) -> list[str]:
    """GPUs first, then engines: who holds a GPU tells which GPUs an engine has."""
    owners = {owner_of({family.label: value}): None for family in found.families for value in family.values}
    return sorted(owners, key=lambda owner: (not owner.startswith("gpu "), owner))


def windows_of(window: Window, owners: int, step_ms: int) -> Iterator[Window]:
    """A window in parts that begin at the same instants in every run."""
    fitting = [
        hours * HOUR_MS
        for hours in WINDOWS_H
        if hours * HOUR_MS <= longest_ms(step_ms)
        and (hours <= 6 or owners * hours * HOUR_MS // step_ms <= CHUNK_READINGS)
    ]
    length = fitting[0]
    start = window.from_ms // length * length
    while start < window.to_ms:
        yield Window(max(start, window.from_ms), min(start + length, window.to_ms))
        start += length


def run(
    reader: Reader,
    source: str,
    window: Window,
    settings: Settings,
    *,
    now_ms: int,
    progress: Progress | None = None,
) -> HistoryReport:
    """Read a window of time and store it.

    Args:
        reader: of the server. source: the words by which a later run knows this one.
        window: from a full hour on; may end within one, which a later run completes.
        settings: of the database. now_ms: the time. progress: told after every piece.

    Raises:
        StoreError: the database refuses. PrometheusError: the server cannot be read. What was stored stays.
    """
    history = _History(reader, settings, now_ms, HistoryReport(), progress)
    with open_connection(settings.database_url) as connection:
        history.run(Imported(connection, source, reader.span_ms), window)
    return history.report


@dataclass(slots=True)
class _History:
    reader: Reader
    settings: Settings
    now_ms: int
    report: HistoryReport
    progress: Progress | None
    _most: int = 1 << 30
    _through: int = 0
    _total: int = 0
    _old_day: int | None = None

    def run(self, imported: Imported, whole: Window) -> None:
        owners = owners_of(self.reader.found)
        self._total = len(owners) * _hours(whole)
        for window in windows_of(whole, len(owners), self.reader.step_ms):
            before = self.report.new_rows
            try:
                for group, part in self._groups(imported, owners, window):
                    self._piece(imported, group, part)
            except PrometheusError as error:
                if self.report.new_rows > before:
                    self._fold(window)
                if not self.report.new_rows:
                    raise
                raise PrometheusError(
                    f"{error}; what was stored before stays: the same command goes on from there"
                ) from error
            if self.report.new_rows > before:
                self._fold(window)
        self._purge()

    def _groups(
        self, imported: Imported, owners: Sequence[str], window: Window
    ) -> Iterator[tuple[list[str], Window]]:
        """Owners that are read together, and what of the window is left of them."""
        lefts: dict[tuple[bool, int, int], list[str]] = {}
        for owner in owners:
            left = imported.left(owner, window)
            if left is not None:
                lefts.setdefault((not owner.startswith("gpu "), left.from_ms, left.to_ms), []).append(owner)
            done = _hours(window) - (0 if left is None else _hours(left))
            self.report.done_hours += done
            self._tell(done)
        for (_is_engine, from_ms, to_ms), group in sorted(lefts.items()):
            most = max(1, CHUNK_READINGS * self.reader.step_ms // (to_ms - from_ms))
            for at in range(0, len(group), most):
                yield group[at : at + most], Window(from_ms, to_ms)

    def _piece(self, imported: Imported, group: Sequence[str], window: Window) -> None:
        """Read and store one piece, or its parts where the server answers smaller questions only."""
        if len(group) > self._most:
            self._halves(imported, group, window)
            return
        try:
            told = self.reader.read(group, window)
        except TooMuchError:
            if len(group) > 1:
                self._most = (len(group) + 1) // 2
                self._halves(imported, group, window)
                return
            middle = (window.from_ms + window.to_ms) // 2 // HOUR_MS * HOUR_MS
            if middle <= window.from_ms:
                raise
            for part in (Window(window.from_ms, middle), Window(middle, window.to_ms)):
                self._piece(imported, group, part)
            return
        done_ms = min(window.to_ms, self.now_ms - SETTLED_MS) // HOUR_MS * HOUR_MS
        done = Window(window.from_ms, max(done_ms, window.from_ms))
        kept = imported.keep(told.delivery, sorted(told.owners), done)
        report, rows = self.report, kept.kept
        report.new_rows += kept.new_rows
        report.known += len(kept.gpu_hours_known) + len(kept.engine_hours_known)
        report.known_gpus |= {uuid for uuid, _hour in kept.gpu_hours_known}
        report.gpu_samples += len(rows.gpu_samples)
        report.process_samples += len(rows.process_samples)
        report.engine_samples += len(rows.engine_samples)
        report.events += len(rows.events)
        report.gpu_uuids |= {sample.gpu_uuid for sample in rows.gpu_samples}
        report.engines |= {sample.engine for sample in rows.engine_samples}
        starts = [sample.ts_ms for sample in rows.gpu_samples] + [s.ts_ms for s in rows.engine_samples]
        if starts:
            from_ms, to_ms = min(starts), max(starts) + self.reader.span_ms
            report.from_ms = from_ms if report.from_ms is None else min(report.from_ms, from_ms)
            report.to_ms = to_ms if report.to_ms is None else max(report.to_ms, to_ms)
        self._tell(len(group) * _hours(window))

    def _halves(self, imported: Imported, group: Sequence[str], window: Window) -> None:
        half = len(group) // 2
        for part in (group[:half], group[half:]):
            self._piece(imported, part, window)

    def _fold(self, window: Window) -> None:
        """Hours of what came; raw samples past their age go again, a day at a time."""
        method = ShareMethod(self.settings.usage_share_method)
        engine = make_engine(self.settings.database_url)
        roll_up(engine, now_ms=max(self.now_ms, window.to_ms), share_method=method)
        day = window.from_ms // DAY_MS
        if self._old_day is not None and day > self._old_day:
            self._purge()
        if day < self.now_ms // DAY_MS - self.settings.raw_days:
            self._old_day = day

    def _purge(self) -> None:
        if self._old_day is not None:
            self._old_day = None
            engine, settings = make_engine(self.settings.database_url), self.settings
            purge(engine, now_ms=self.now_ms, raw_days=settings.raw_days, hour_days=settings.hour_days)

    def _tell(self, hours: int) -> None:
        self._through += hours
        if self.progress is not None:
            self.progress(self._through, self._total)


def _hours(window: Window) -> int:
    """Hours that a window touches."""
    return -(-window.to_ms // HOUR_MS) - window.from_ms // HOUR_MS
