"""``nvidia-smi --query-gpu=… --format=csv`` logs → readings; also the CSV sections of longer texts.

A header names the columns; it may come again (a log that was appended to) or further down (a saved terminal
session). ``--query-compute-apps`` sections give processes.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agent.sources.cells import (
    SMI_UNITS,
    CellError,
    Stamps,
    figure_of,
    is_unknown,
    no_later,
    reader_of,
    value_of,
)
from agent.sources.report import FileReport
from agent.sources.series import Thing, process_key
from agent.sources.text import TextFile
from core.clock import iso
from core.metrics import GPU_METRICS, Metric
from core.readings import GpuIdentity, GpuReading, ProcessReading

_FIELD: Final = re.compile(r"([A-Za-z_][\w.]*)(?: \[([^\]]*)\])?$")
RELATIVE: Final = "time"
ABSOLUTE: Final = "timestamp"
UUID: Final = "uuid"
MASKED_UUID: Final = "GPU-00000000-0000-0000-0000-000000000000"
"""What virtual machines and cleaned logs show instead of the card's own."""

EVENT_BITS: Final = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
}
"""Columns ``clocks_event_reasons.…`` (older: ``clocks_throttle_reasons.…``) → bit of nvmlClocksEventReasons."""
_REASONS: Final = ("clocks_event_reasons.", "clocks_throttle_reasons.")
_FLAGS: Final = "event_reasons_flags"
IDENTITY: Final = {
    "name": "model",
    "gpu_name": "model",
    "index": "index",
    "pci.bus_id": "pci_bus_id",
    "driver_version": "driver_version",
    "hostname": "host",
    "memory.total": "memory_total_bytes",
    "clocks.max.sm": "max_sm_clock_hz",
    "power.default_limit": "power_limit_default_w",
}


def _metrics() -> dict[str, tuple[Metric, int]]:
    """nvidia-smi field → metric and rank among the fields that give it."""
    return {
        field: (metric, rank)
        for metric in GPU_METRICS
        if metric.of is None
        for rank, field in enumerate(metric.smi)
    }


METRICS: Final = _metrics()


@dataclass(frozen=True, slots=True)
class Header:
    """A line of column names.

    Attributes:
        kind: ``gpu`` (query-gpu), ``apps`` (query-compute-apps) or ``other`` (some other nvidia-smi table).
        fields: names without units. units: per field, text in the brackets; empty where there is none.
    """

    kind: str
    fields: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def is_relative(self) -> bool:
        """Its times are seconds since the start of the log."""
        return ABSOLUTE not in self.fields and RELATIVE in self.fields


def header_of(line: str) -> Header | None:
    """The header that a line is; None when it is none."""
    if "," not in line or line.startswith("#"):
        return None
    found = [_FIELD.match(part.strip()) for part in line.split(",")]
    if not all(found):
        return None
    fields = tuple(match[1] for match in found if match)
    units = tuple(match[2] or "" for match in found if match)
    timed = ABSOLUTE in fields or RELATIVE in fields
    if not timed and UUID not in fields and "gpu_uuid" not in fields:
        return None
    if "pid" in fields:
        return Header("apps" if any(name.startswith("used") for name in fields) else "other", fields, units)
    is_gpu = any(
        field in METRICS or field.startswith(_REASONS) or field == "memory.total" for field in fields
    )
    return Header("gpu" if is_gpu else "other", fields, units)


Reader = Callable[[str], float | None]


class _Columns:
    """How to read the rows under one ``gpu`` header."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.count = len(header.fields)
        self.time = (
            header.fields.index(RELATIVE if header.is_relative else ABSOLUTE) if self.is_timed else None
        )
        self.uuid = header.fields.index(UUID) if UUID in header.fields else None
        self.values: list[tuple[int, str, int, str, Reader]] = []
        self.bits: list[tuple[int, int]] = []
        self.identity: list[tuple[int, str]] = []
        for place, (field, unit) in enumerate(zip(header.fields, header.units, strict=True)):
            self._add(place, field, unit)
        if any(name == _FLAGS for _place, name, *_rest in self.values):
            self.bits = []

    @property
    def is_timed(self) -> bool:
        return ABSOLUTE in self.header.fields or RELATIVE in self.header.fields

    def _add(self, place: int, field: str, unit: str) -> None:
        if field in IDENTITY:
            self.identity.append((place, field))
            return
        found = METRICS.get(field)
        if found is None:
            reason = next(
                (field.removeprefix(prefix) for prefix in _REASONS if field.startswith(prefix)), None
            )
            if reason in EVENT_BITS:
                self.bits.append((place, EVENT_BITS[reason]))
            return
        metric, rank = found
        read = reader_of(metric.name, unit or SMI_UNITS.get(metric.unit, ""))
        self.values.append((place, metric.name, rank, field, read))

    def read(self, cells: Sequence[str], line: int, report: FileReport) -> dict[str, float]:
        """Values of one row; unknown cells are left out and counted, and so are those that cannot be right."""
        values: dict[str, float] = {}
        ranks: dict[str, int] = {}
        missing: list[tuple[str, str, str]] = []
        for place, name, rank, field, read in self.values:
            try:
                value = read(cells[place])
            except CellError as error:
                report.refuse_value(line, field, str(error))
                continue
            if value is None:
                missing.append((name, field, cells[place]))
            elif name not in values or rank < ranks[name]:
                values[name], ranks[name] = value, rank
        for name, field, cell in missing:
            if name not in values:
                report.unknown(line, field, cell)
        if self.bits:
            flags = self._flags(cells)
            if flags is not None:
                values[_FLAGS] = flags
        return values

    def _flags(self, cells: Sequence[str]) -> float | None:
        """The mask put together from columns that say ``Active`` or ``Not Active``; None: all are unknown."""
        flags, known = 0, False
        for place, bit in self.bits:
            cell = cells[place]
            if cell == "Active":
                flags |= bit
                known = True
            elif cell == "Not Active":
                known = True
        return float(flags) if known else None


class SmiLog:
    """Reads one file.

    Args:
        path: file, gzip or not.
        report: gets the counts and sentences.
        gpu_uuid: the GPU of a log without a ``uuid`` column.
        host: name of the host; None: the log's ``hostname`` column, if any.
        anchor_ms: instant at which a relative time column is 0; None: such rows are refused.
        utc_offset_ms: what local times of the log are ahead of UTC.
        latest_ms: rows later than this are refused; None: none is.
    """

    def __init__(
        self,
        path: Path,
        report: FileReport,
        *,
        gpu_uuid: str | None = None,
        host: str | None = None,
        anchor_ms: int | None = None,
        utc_offset_ms: int = 0,
        latest_ms: int | None = None,
    ) -> None:
        self._latest_ms = latest_ms
        self._file = TextFile(path)
        self._report = report
        self._gpu_uuid, self._host, self._anchor_ms = gpu_uuid, host, anchor_ms
        self._stamps = Stamps(utc_offset_ms)
        self._told: dict[str, GpuIdentity] = {}
        self._described: dict[str, tuple[str, ...]] = {}
        self._last_ms: dict[str, int] = {}
        self._noted: set[str] = set()

    def read(self, progress: Callable[[int], None] = lambda _bytes: None) -> Iterator[Thing]:
        """Identities, readings and processes as they stand in the file; refused rows are counted."""
        header: Header | None = None
        columns: _Columns | None = None
        paused = False
        text, report = self._file, self._report
        for number, line in enumerate(text, 1):
            if number % 5_000 == 0:
                progress(text.bytes_read)
            if not line or line[0] == "#" or line.isspace():
                paused = True
                continue
            if line[0].isalpha() and (found := header_of(line)) is not None:
                header, paused = found, False
                columns = _Columns(found) if found.kind == "gpu" else None
                continue
            if header is None:
                continue
            cells = [cell.strip() for cell in line.split(",")]
            if paused and len(cells) != len(header.fields):
                header = columns = None  # a section ended, other text follows
                continue
            paused = False
            yield from self._row(header, columns, cells, number)
        progress(text.bytes_read)
        if text.cut is not None:
            report.problem(text.line + 1, f"{text.cut}; what came before is kept")

    def _row(
        self, header: Header, columns: _Columns | None, cells: list[str], number: int
    ) -> Iterator[Thing]:
        report = self._report
        report.read += 1
        if header.kind == "other":
            report.ignored += 1
            return
        try:
            things = (
                self._gpu(columns, cells, number) if columns is not None else self._app(header, cells, number)
            )
        except CellError as error:
            report.refuse(number, str(error))
            return
        report.kept += 1
        yield from things

    def _gpu(self, columns: _Columns, cells: list[str], number: int) -> list[Thing]:
        if len(cells) != columns.count:
            raise CellError(f"{len(cells)} cells where the header has {columns.count}: {_shown(cells)}")
        uuid = self._uuid(columns, cells)
        ts_ms = no_later(self._instant(columns, cells), self._latest_ms)
        last = self._last_ms.get(uuid)
        if last is not None and ts_ms <= last:
            what = "repeats the time" if ts_ms == last else "time goes back"
            raise CellError(f"{what} of {uuid}: {iso(ts_ms)} after {iso(last)}")
        values = columns.read(cells, number, self._report)
        self._last_ms[uuid] = ts_ms
        things: list[Thing] = []
        described = tuple(cells[place] for place, _field in columns.identity)
        if self._described.get(uuid) != described:
            self._described[uuid] = described
            identity = self._identity(uuid, columns, cells, number)
            if identity != self._told.get(uuid):
                self._told[uuid] = identity
                things.append(identity)
        things.append(GpuReading(uuid, ts_ms, values))
        return things

    def _uuid(self, columns: _Columns, cells: list[str]) -> str:
        uuid = self._gpu_uuid if columns.uuid is None else cells[columns.uuid]
        if not uuid:
            raise CellError("the log has no uuid column: name its GPU with --gpu GPU-…")
        if is_unknown(uuid):
            raise CellError(f"uuid is {uuid}: it cannot be told which GPU the row is of")
        if columns.uuid is not None and uuid not in self._noted:
            self._noted.add(uuid)
            self._note_name(uuid)
        return self._gpu_uuid if uuid == MASKED_UUID and self._gpu_uuid else uuid

    def _note_name(self, uuid: str) -> None:
        """Say what a name in the log does to ``--gpu``, and what a masked one does."""
        if uuid != MASKED_UUID:
            if self._gpu_uuid not in {None, uuid}:
                self._report.note(f"--gpu was not used: the log names its GPU itself, {uuid}")
        elif self._gpu_uuid is None:
            self._report.note(
                f"its UUID is masked ({uuid}): cards of different files under it become one GPU; --gpu names it"
            )

    def _instant(self, columns: _Columns, cells: list[str]) -> int:
        if columns.time is None:
            raise CellError("the log has no timestamp column: add timestamp to --query-gpu")
        cell = cells[columns.time]
        if not columns.header.is_relative:
            return self._stamps.ts_ms(cell)
        if self._anchor_ms is None:
            raise CellError("times are relative: give the start of the log with --start")
        seconds = figure_of(cell, 1.0)
        if seconds is None:
            raise CellError(f"time {cell!r} cannot be read")
        return self._anchor_ms + round(seconds * 1000)

    def _figure(self, cell: str, name: str, field: str, unit: str, number: int) -> float | None:
        """The figure of one cell; one that cannot be right is counted and unknown."""
        try:
            return value_of(cell, name, unit)
        except CellError as error:
            self._report.refuse_value(number, field, str(error))
            return None

    def _identity(self, uuid: str, columns: _Columns, cells: list[str], number: int) -> GpuIdentity:
        identity = self._told.get(uuid) or GpuIdentity(uuid, host=self._host)
        facts: dict[str, object] = {}
        for place, field in columns.identity:
            cell = cells[place]
            name = IDENTITY[field]
            if is_unknown(cell) or (name == "host" and self._host is not None):
                continue
            if name in {"memory_total_bytes", "max_sm_clock_hz", "power_limit_default_w", "index"}:
                unit = columns.header.units[place] or _IDENTITY_UNITS.get(field, "")
                figure = self._figure(cell, name, field, unit, number)
                if figure is not None:
                    facts[name] = round(figure) if name in {"memory_total_bytes", "index"} else figure
            else:
                facts[name] = cell
        known = {name: fact for name, fact in facts.items() if getattr(identity, name) != fact}
        return replace(identity, **known) if known else identity  # type: ignore[arg-type]

    def _app(self, header: Header, cells: list[str], number: int) -> list[Thing]:
        """One row of query-compute-apps. A process name may hold commas: cells are counted from both ends."""
        fields = header.fields
        surplus = len(cells) - len(fields)
        if surplus < 0 or ABSOLUTE not in fields or "gpu_uuid" not in fields:
            raise CellError(f"{len(cells)} cells where the header has {len(fields)}: {_shown(cells)}")
        name = fields.index("process_name") if "process_name" in fields else len(fields)
        at = {field: cells[place if place <= name else place + surplus] for place, field in enumerate(fields)}
        if name < len(fields):
            at["process_name"] = ",".join(cells[name : name + surplus + 1])
        if not at["pid"].isdecimal():
            raise CellError(f"pid {at['pid']!r} is not a number")
        memory = next((field for field in fields if field.startswith("used")), "")
        unit = header.units[fields.index(memory)] or "mib"
        uuid, pid = at["gpu_uuid"], int(at["pid"])
        told = self._told.get(uuid)
        host = self._host or (told.host if told is not None else None)
        workload = process_key(pid, at.get("process_name", ""), host)
        ts_ms = no_later(self._stamps.ts_ms(at[ABSOLUTE]), self._latest_ms)
        used = self._figure(at[memory], "process_memory_bytes", memory, unit, number)
        return [ProcessReading(uuid, ts_ms, pid, workload, memory_used_bytes=used)]


_IDENTITY_UNITS: Final = {"memory.total": "mib", "clocks.max.sm": "mhz", "power.default_limit": "w"}


def _shown(cells: Sequence[str]) -> str:
    text = ", ".join(cells)
    return text if len(text) <= 60 else f"{text[:57]}…"
