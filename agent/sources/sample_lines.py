"""Lines of exposition text → values of GPUs and engines, counted and, where they are wrong, refused with a sentence."""

from collections import defaultdict
from pathlib import Path
from typing import Final

from agent.sources.exposition import (
    MILLISECONDS_FROM,
    LineError,
    name_of,
    split_line,
    ts_ms_of,
    value_of,
)
from agent.sources.report import FileReport, FormatError
from agent.sources.series import EngineEntity, Registry, Series
from core.clock import iso
from core.plausible import plausible, refusal

SERIES_KEPT: Final = 200_000
"""Resolved series remembered; labels that never repeat would otherwise fill the memory."""
LATEST_MS: Final = 10**14
"""No time stamp is later (the year 5138)."""
HOPELESS_LINES: Final = 50
"""A file whose first lines are all unreadable is something else."""

Value = tuple[int, int, int, float]
"""Instant (ms), entity, slot, value."""


class SampleLines:
    """Turns the lines of one file into values; counts and sentences go to its report.

    Attributes:
        streams: the file goes scrape after scrape: a value older than its entity's latest is refused.
    """

    def __init__(
        self,
        registry: Registry,
        report: FileReport,
        path: Path,
        at_ms: int | None,
        latest_ms: int | None = None,
    ) -> None:
        self._latest_ms = LATEST_MS if latest_ms is None else latest_ms
        self._registry, self._report, self._path, self._at_ms = registry, report, path, at_ms
        self._series: dict[str, Series] = {}
        self._names: dict[str, bool] = {}
        self._fallback = path.name.split(".")[0]
        self._unit: str | None = None
        self._floor: dict[int, int] = defaultdict(int)
        self.streams = False

    def values(self, lines: list[str], first: int) -> list[Value]:
        """Values of the lines, which are numbered from ``first``.

        The lines of a known series whose value and time are plain are nearly all of them: they are taken
        here, everything else by ``_careful``.

        Raises:
            FormatError: this is no such text, or its samples carry no time.
        """
        latest = self._latest_ms
        known, report, floor, streams = self._series, self._report, self._floor, self.streams
        found: list[Value] = []
        plain = 0
        for number, line in enumerate(lines, first):
            close = line.rfind("}") + 1
            series = known.get(line[:close])
            if series is not None:
                try:
                    figure, stamp = map(float, line[close:].split())
                except ValueError:
                    figure = stamp = 0.0
                ts_ms = round(stamp * 1000) if stamp < MILLISECONDS_FROM else round(stamp)
                entity = series.entity
                if (
                    series.last_ms < ts_ms <= latest
                    and series.last_value <= figure <= series.most
                    and (not streams or floor[entity] <= ts_ms)
                ):
                    series.last_ms = ts_ms
                    if series.counter:
                        series.last_value = figure
                    if streams:
                        floor[entity] = ts_ms
                    plain += 1
                    for slot, factor in series.slots:
                        found.append((ts_ms, entity, slot, figure * factor))
                    continue
            found += self._careful(line, number)
        report.read += plain
        report.kept += plain
        return found

    def end(self) -> None:
        """Say in which unit time stamps were."""
        if self._unit is not None:
            self._report.assumed.append(f"time stamps were read as {self._unit}")

    def _careful(self, line: str, number: int) -> list[Value]:
        if not line or line[0] == "#" or line.isspace():
            return []
        report = self._report
        report.read += 1
        try:
            text, figure, stamp = split_line(line)
            value = value_of(figure)
            series = self._resolve(text) if self._wanted(text) else None
            if series is None:
                report.ignored += 1
                return []
            ts_ms = self._instant(stamp, number)
            values = self._take(series, text, ts_ms, value, number)
        except LineError as error:
            report.refuse(number, str(error))
            if report.refused >= HOPELESS_LINES and not report.kept and not report.ignored:
                raise FormatError(
                    f"{self._path}: this is not Prometheus or OpenMetrics text: none of its first {HOPELESS_LINES} lines is a sample"
                ) from error
            return []
        report.kept += 1
        return values

    def _wanted(self, text: str) -> bool:
        name = name_of(text)
        wanted = self._names.get(name)
        if wanted is None:
            wanted = self._names[name] = self._registry.knows(name)
        return wanted

    def _resolve(self, text: str) -> Series | None:
        series = self._series.get(text)
        if series is not None:
            return series
        if len(self._series) >= SERIES_KEPT:
            self._series.clear()
        series = self._registry.resolve(text, self._fallback)
        if series is not None:
            self._series[text] = series
        return series

    def _instant(self, stamp: str | None, number: int) -> int:
        if stamp is not None:
            ts_ms = self._no_later(ts_ms_of(stamp))
            if self._unit is None:
                self._unit = "milliseconds" if float(stamp) >= MILLISECONDS_FROM else "seconds"
            return ts_ms
        if self._at_ms is None:
            raise FormatError(
                f"{self._path}:{number}: samples carry no time stamp: give the time of the scrape with --at, e.g. --at 2026-11-20T12:00:00Z"
            )
        return self._no_later(self._at_ms)

    def _no_later(self, ts_ms: int) -> int:
        if ts_ms > self._latest_ms:
            raise LineError(f"{iso(ts_ms)} is in the future: check the clock or the time zone")
        return ts_ms

    def _take(self, series: Series, text: str, ts_ms: int, value: float, number: int) -> list[Value]:
        if ts_ms <= series.last_ms:
            what = "repeats its time" if ts_ms == series.last_ms else "goes back in time"
            raise LineError(f"{name_of(text)} {what}: {iso(ts_ms)} after {iso(series.last_ms)}")
        if self.streams:
            latest = self._floor[series.entity]
            if ts_ms < latest:
                raise LineError(f"{name_of(text)} goes back in time: {iso(ts_ms)} after {iso(latest)}")
            self._floor[series.entity] = ts_ms
        series.last_ms = ts_ms
        if series.is_blank(value):
            self._report.unknown(number, name_of(text), f"{value:.15g}")
            return []
        values = self._plausible(series, text, ts_ms, value, number)
        if series.slots and not values:
            return []
        if series.counter:
            if value < series.last_value:
                self._report.note(
                    f"{name_of(text)} fell from {series.last_value:g} to {value:g}: the counter was reset, a new segment starts",
                    number,
                )
            series.last_value = value
        if series.settings:
            entity = self._registry.entities[series.entity]
            assert isinstance(entity, EngineEntity)
            entity.learn(None, dict.fromkeys(series.settings, f"{value:g}"))
        return values

    def _plausible(self, series: Series, text: str, ts_ms: int, value: float, number: int) -> list[Value]:
        """The value for each of its slots; nothing, and a sentence, when it cannot be true."""
        values: list[Value] = []
        for slot, factor in series.slots:
            reading = self._registry.slots[slot].reading.lstrip("@")
            figure = plausible(reading, value * factor)
            if figure is None:
                self._report.refuse_value(number, name_of(text), refusal(reading, f"{value:.15g}"))
                return []
            values.append((ts_ms, series.entity, slot, figure))
        return values
