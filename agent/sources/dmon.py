"""``nvidia-smi dmon`` logs → readings: the table as it stands on a terminal, and its CSV form.

dmon names GPUs by index only, and times only when it was asked to (``-o DT``): who they are and when it was
come from outside.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.sources.cells import SMI_UNITS, CellError, Stamps, figure_of, no_later, reader_of
from agent.sources.report import FileReport
from agent.sources.series import Thing
from agent.sources.text import TextFile
from core.clock import iso
from core.metrics import GPU_METRICS, Metric
from core.readings import GpuIdentity, GpuReading
from core.units import DAY_MS, HOUR_MS

COLUMNS: Final[Mapping[str, Metric]] = {
    metric.dmon: metric for metric in GPU_METRICS if metric.dmon is not None and metric.of is None
}
_OTHERS: Final = frozenset({"enc", "dec", "jpg", "ofa", "pviol", "tviol", "bar1", "sbecc", "dbecc", "pci"})
GPU: Final = "gpu"
DATE: Final = "date"
TIME: Final = "time"


@dataclass(frozen=True, slots=True)
class Table:
    """A header: columns and, from the line after it, their units; ``commas`` for the CSV form.

    ``times`` says what the time column holds: ``none``, ``relative`` (seconds since the start), ``clock``
    (time of day) or ``date`` (date and time of day).
    """

    fields: tuple[str, ...]
    units: tuple[str, ...]
    commas: bool

    @property
    def times(self) -> str:
        """See the class."""
        if TIME not in self.fields:
            return "none"
        unit = self.units[self.fields.index(TIME)].lower() if self.units else ""
        if unit in {"s", ""}:
            return "relative"
        return "date" if DATE in self.fields else "clock"


def _cut(line: str, *, commas: bool) -> list[str]:
    text = line.lstrip("# ").rstrip()
    return [part.strip() for part in text.split(",")] if commas else text.split()


def table_of(line: str) -> Table | None:
    """The header that a line is; None when it is none (``pmon`` has a ``pid`` column and is none)."""
    commas = "," in line
    fields = tuple(part.lower() for part in _cut(line, commas=commas))
    if GPU not in fields or "pid" in fields or len(set(fields)) != len(fields):
        return None
    known = sum(field in COLUMNS or field in _OTHERS for field in fields)
    return Table(fields, (), commas) if known and known >= len(fields) - 4 else None


def with_units(table: Table, line: str) -> Table | None:
    """The header completed by its line of units; None when the line is none."""
    units = tuple(_cut(line, commas=table.commas))
    if len(units) != len(table.fields) or units[table.fields.index(GPU)].lower() != "idx":
        return None
    return Table(table.fields, units, table.commas)


class _Columns:
    """How to read the rows under one header."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.gpu = table.fields.index(GPU)
        self.time = table.fields.index(TIME) if TIME in table.fields else None
        self.date = table.fields.index(DATE) if DATE in table.fields else None
        self.values: list[tuple[int, str, Callable[[str], float | None]]] = []
        for place, field in enumerate(table.fields):
            metric = COLUMNS.get(field)
            if metric is not None:
                unit = table.units[place] if table.units else SMI_UNITS[metric.unit]
                self.values.append((place, metric.name, reader_of(metric.name, unit)))


class DmonLog:
    """Reads one file.

    Args:
        path: file, gzip or not.
        report: gets the counts and sentences.
        gpu_of: UUID of a GPU index; None refuses its rows.
        host: name of the host, if known.
        anchor_ms: start of a log whose times are relative or absent, date of one with times of day only.
        interval_ms: distance of the rows of one GPU where the log has no times.
        utc_offset_ms: what local times of the log are ahead of UTC.
        latest_ms: rows later than this are refused; None: none is.
    """

    def __init__(
        self,
        path: Path,
        report: FileReport,
        *,
        gpu_of: Callable[[int], str | None],
        host: str | None = None,
        anchor_ms: int | None = None,
        interval_ms: int | None = None,
        utc_offset_ms: int = 0,
        latest_ms: int | None = None,
    ) -> None:
        self._latest_ms = latest_ms
        self._file, self._report = TextFile(path), report
        self._gpu_of, self._host = gpu_of, host
        self._anchor_ms, self._interval_ms, self._offset = anchor_ms, interval_ms, utc_offset_ms
        self._stamps = Stamps(utc_offset_ms)
        self._rows: dict[int, int] = {}
        self._last_ms: dict[str, int] = {}
        self._day_ms: int | None = None
        self._clock_ms = 0

    def read(self, progress: Callable[[int], None] = lambda _bytes: None) -> Iterator[Thing]:
        """Identities and readings as they stand in the file; refused rows are counted."""
        columns: _Columns | None = None
        text, report = self._file, self._report
        for number, line in enumerate(text, 1):
            if number % 5_000 == 0:
                progress(text.bytes_read)
            if not line or line.isspace():
                continue
            first = line.lstrip("# ")[:1]
            if not first.isdigit():
                columns = self._header(line, columns)
                continue
            if columns is None:
                continue
            report.read += 1
            try:
                things = self._row(columns, line, number)
            except CellError as error:
                report.refuse(number, str(error))
                continue
            report.kept += 1
            yield from things
        progress(text.bytes_read)
        if text.cut is not None:
            report.problem(text.line + 1, f"{text.cut}; what came before is kept")

    def _header(self, line: str, columns: _Columns | None) -> _Columns | None:
        """A line that is no row: header, units, or something else that changes nothing."""
        table = table_of(line)
        if table is not None:
            return _Columns(table)
        if columns is not None:
            completed = with_units(columns.table, line)
            if completed is not None:
                return _Columns(completed)
            if not line.startswith("#"):
                self._report.read += 1
                self._report.refuse(self._file.line, f"this is no row of dmon: {line[:60]!r}")
        return columns

    def _row(self, columns: _Columns, line: str, number: int) -> list[Thing]:
        table = columns.table
        cells = _cut(line, commas=table.commas)
        if len(cells) != len(table.fields):
            raise CellError(f"{len(cells)} cells where the header has {len(table.fields)}: {line[:60]!r}")
        if not cells[columns.gpu].isdecimal():
            raise CellError(f"GPU index {cells[columns.gpu]!r} is not a number")
        index = int(cells[columns.gpu])
        uuid = self._gpu_of(index)
        if uuid is None:
            raise CellError(f"it is not known which GPU index {index} is")
        ts_ms = no_later(self._instant(columns, cells, index), self._latest_ms)
        last = self._last_ms.get(uuid)
        if last is not None and ts_ms <= last:
            what = "repeats the time" if ts_ms == last else "time goes back"
            raise CellError(f"{what} of GPU {index}: {iso(ts_ms)} after {iso(last)}")
        values: dict[str, float] = {}
        for place, name, read in columns.values:
            try:
                value = read(cells[place])
            except CellError as error:
                self._report.refuse_value(number, table.fields[place], str(error))
                continue
            if value is None:
                self._report.unknown(number, table.fields[place], cells[place])
            else:
                values[name] = value
        self._last_ms[uuid] = ts_ms
        reading = GpuReading(uuid, ts_ms, values)
        return [reading] if last is not None else [GpuIdentity(uuid, host=self._host, index=index), reading]

    def _instant(self, columns: _Columns, cells: list[str], index: int) -> int:
        kind = columns.table.times
        if columns.time is None or kind == "none":
            if self._anchor_ms is None or self._interval_ms is None:
                raise CellError(
                    "the log has no times: give its start with --start and the distance of its rows with --interval"
                )
            row = self._rows.get(index, 0)
            self._rows[index] = row + 1
            return self._anchor_ms + row * self._interval_ms
        cell = cells[columns.time]
        if kind == "relative":
            seconds = figure_of(cell, 1.0)
            if seconds is None:
                raise CellError(f"time {cell!r} cannot be read")
            if self._anchor_ms is None:
                raise CellError("times are relative: give the start of the log with --start")
            return self._anchor_ms + round(seconds * 1000)
        if kind == "date" and columns.date is not None:
            day = cells[columns.date].replace("/", "").replace("-", "")
            return self._stamps.ts_ms(f"{day[:4]}/{day[4:6]}/{day[6:]} {cell}")
        return self._of_day(cell)

    def _of_day(self, cell: str) -> int:
        """A time of day; it belongs to the day of ``anchor_ms`` and, past midnight, to the next one."""
        if self._anchor_ms is None:
            raise CellError("the log has times of day but no date: give its start with --start")
        if self._day_ms is None:
            local = self._anchor_ms + self._offset
            self._day_ms = local - local % DAY_MS
        clock = Stamps().ts_ms(f"1970/01/01 {cell}")
        if clock < self._clock_ms - 12 * HOUR_MS:
            self._day_ms += DAY_MS
        self._clock_ms = clock
        return self._day_ms + clock - self._offset
