"""Which nvidia-smi and dmon logs belong together, who their GPUs are, and when a log with relative times was written.

A query log names its GPUs by UUID, a dmon log by index only: one that lies beside it names them. Two logs of
one run have the same relative times, and are read together whichever of them was asked for, so that their
values end up in the same samples.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.sources import logs
from agent.sources.dmon import DmonLog
from agent.sources.logs import DMON, EXPOSITION, SMI, Folders, Head
from agent.sources.merge import Stream
from agent.sources.report import FileReport
from agent.sources.series import Thing
from agent.sources.smi import MASKED_UUID, SmiLog
from core.clock import iso
from core.errors import GpuwiseError
from core.units import MINUTE_MS


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the user said about the logs; see ``agent.importing.run_import``."""

    gpu_uuid: str | None = None
    host: str | None = None
    start_ms: int | None = None
    interval_ms: int | None = None
    utc_offset_ms: int = 0
    latest_ms: int | None = None


@dataclass(slots=True)
class Run:
    """One log ready to be read."""

    head: Head
    report: FileReport
    options: RunOptions
    anchor_ms: int | None
    gpu_of: Callable[[int], str | None]

    @property
    def path(self) -> Path:
        """The file."""
        return self.head.path

    def stream(self, things: Iterator[Thing]) -> Stream:
        """The log among others in the order of time."""
        return Stream(self._first_ms(), things)

    def _first_ms(self) -> int:
        """About when it begins; a first cell that cannot be read is no reason to fail here."""
        if self.head.times == "date" or self.anchor_ms is None:
            try:
                reader = self._reader(FileReport(self.path))
                found = next((thing for thing in reader.read() if hasattr(thing, "ts_ms")), None)
            except GpuwiseError:
                return 0
            return getattr(found, "ts_ms", 0)
        return self.anchor_ms

    def read(self, progress: Callable[[int], None]) -> Iterator[Thing]:
        """The log's things in the order of the file."""
        return self._reader(self.report).read(progress)

    def _reader(self, report: FileReport) -> SmiLog | DmonLog:
        options = self.options
        if self.head.kind == DMON:
            return DmonLog(
                self.path,
                report,
                gpu_of=self.gpu_of,
                host=options.host,
                anchor_ms=self.anchor_ms,
                interval_ms=options.interval_ms,
                utc_offset_ms=options.utc_offset_ms,
                latest_ms=options.latest_ms,
            )
        return SmiLog(
            self.path,
            report,
            gpu_uuid=options.gpu_uuid,
            host=options.host,
            anchor_ms=self.anchor_ms,
            utc_offset_ms=options.utc_offset_ms,
            latest_ms=options.latest_ms,
        )


@dataclass(slots=True)
class Plan:
    """Logs to read, those of dmon first (a query log's figures are finer and count), and a report for every file."""

    runs: list[Run] = field(default_factory=list)
    reports: list[FileReport] = field(default_factory=list)


def plan(files: Sequence[Path], asked: str, options: RunOptions) -> Plan:
    """Look at the files and decide how each is read; what cannot be read has its sentence in its report."""
    made = Plan()
    heads: list[Head] = []
    reports: dict[Path, FileReport] = {}
    for path in dict.fromkeys(files):
        report = reports[path] = FileReport(path)
        made.reports.append(report)
        head = _look(path, asked, report)
        if head is not None:
            heads.append(head)
    folders = Folders(heads)
    for head in list(heads):
        other = folders.partner(head)
        sentence = f"read as well: it is the other log of the run of {head.path.name} (same times)"
        if other is None and head.kind == DMON and options.gpu_uuid is None:
            other = _namer(head, folders)
            sentence = f"read as well: it names the GPUs of {head.path.name}"
        if (
            other is not None
            and options.gpu_uuid is not None
            and not other.uuids & {options.gpu_uuid, MASKED_UUID}
        ):
            continue  # the user says whose log it is: what lies beside it belongs to another GPU
        if other is not None and other.path not in reports:
            report = reports[other.path] = FileReport(other.path)
            report.note(sentence)
            made.reports.append(report)
            heads.append(other)
    for head in heads:
        run = _run(head, folders, reports[head.path], options)
        if run is not None:
            made.runs.append(run)
    made.runs.sort(key=lambda run: run.head.kind != DMON)
    _note_overlaps(made.runs)
    return made


def _look(path: Path, asked: str, report: FileReport) -> Head | None:
    try:
        head = logs.look(path)
    except GpuwiseError as error:
        report.fail(str(error))
        return None
    if head.kind == EXPOSITION:
        report.fail(f"{path} is Prometheus or OpenMetrics text: import it with gpuwise import openmetrics")
        return None
    if head.kind is None:
        example = "--query-gpu=timestamp,uuid,… --format=csv" if asked == SMI else "dmon -o DT"
        report.fail(f"{path} is no log of nvidia-smi {example}: no line of column names in it")
        return None
    return head


def _namer(head: Head, folders: Folders) -> Head | None:
    """The query log beside a dmon log, when it is the only one there and has times of its own."""
    named = [one for one in folders.beside(head, SMI) if one.uuids]
    return named[0] if len(named) == 1 and named[0].times == "date" else None


def _run(head: Head, folders: Folders, report: FileReport, options: RunOptions) -> Run | None:
    try:
        anchor_ms = _anchor(head, folders, report, options)
        gpu_of = _names(head, folders, report, options) if head.kind == DMON else lambda _index: None
    except GpuwiseError as error:
        report.fail(str(error))
        return None
    return Run(head, report, options, anchor_ms, gpu_of)


def _anchor(head: Head, folders: Folders, report: FileReport, options: RunOptions) -> int | None:
    """Instant of the log's second 0; None for a log with times of its own.

    Without ``--start`` the last row of a log with relative times is taken to be as old as the file: importing
    it twice then gives the same times.
    """
    if head.times == "date":
        report.assumed.append(f"local times were read as UTC{_offset(options.utc_offset_ms)} (--utc-offset)")
        return None
    if options.start_ms is not None:
        return options.start_ms
    if head.times == "none":
        if head.kind == SMI:
            raise GpuwiseError(f"{head.path} has no time column: add timestamp to --query-gpu")
        raise GpuwiseError(
            f"{head.path} has no times: give its start with --start and the distance of its rows with --interval (or log with dmon -o DT)"
        )
    if head.times == "clock":
        raise GpuwiseError(f"{head.path} has times of day but no date: give its start with --start")
    leader = head if head.kind == SMI else folders.partner(head) or head
    last = logs.last_relative_s(leader)
    if last is None:
        raise GpuwiseError(f"{leader.path} has no row with a time")
    anchor = leader.path.stat().st_mtime_ns // 1_000_000 - round(last * 1000)
    report.note(
        f"times are relative and no --start was given: the last row is taken to be as old as the file, so the log starts at {iso(anchor)}"
    )
    return anchor


def _offset(offset_ms: int) -> str:
    minutes = abs(offset_ms) // MINUTE_MS
    sign = "-" if offset_ms < 0 else "+"
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}" if minutes else ""


def _names(
    head: Head, folders: Folders, report: FileReport, options: RunOptions
) -> Callable[[int], str | None]:
    """UUID of an index: ``--gpu``, or the query log of the run, or the only query log of the folder."""
    if options.gpu_uuid is not None:
        if len(head.indexes) > 1:
            shown = ", ".join(map(str, sorted(head.indexes)))
            raise GpuwiseError(
                f"{head.path} has the GPUs {shown}: --gpu names one; put the query log beside it"
            )
        only = next(iter(head.indexes), 0)
        return {only: options.gpu_uuid}.get
    other = folders.partner(head)
    named = [other] if other is not None else [one for one in folders.beside(head, SMI) if one.uuids]
    index_of = {index: uuid for one in named for index, uuid in one.index_of.items()}
    uuids = {uuid for one in named for uuid in one.uuids}
    if not head.indexes <= index_of.keys() and len(uuids) == 1 and len(head.indexes) == 1:
        index_of = {next(iter(head.indexes)): next(iter(uuids))}
    clash = any(one.index_of.get(index, uuid) != uuid for one in named for index, uuid in index_of.items())
    if not index_of or clash or not head.indexes <= index_of.keys():
        raise GpuwiseError(
            f"{head.path} names GPUs by index only: name its GPU with --gpu GPU-…, or put the --query-gpu log of the same run (with uuid and index) beside it"
        )
    report.note(f"GPUs are named by {', '.join(one.path.name for one in named)}")
    return index_of.get


def _note_overlaps(runs: list[Run]) -> None:
    """Two runs of one GPU whose times were both assumed may lie over each other: say so."""
    assumed = [
        run
        for run in runs
        if run.head.kind == SMI and run.head.times == "relative" and run.options.start_ms is None
    ]
    for i, run in enumerate(assumed):
        for other in assumed[:i]:
            shared = run.head.uuids & other.head.uuids
            if shared and run.anchor_ms is not None and other.anchor_ms is not None:
                run.report.note(
                    f"{other.path.name} has the same GPU and assumed times too: if they are different runs, import each with its own --start"
                )
                break
