"""Import of files: from paths to samples in a sink, with a report that says what became of every row."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agent.batch import Batch, Stored
from agent.sinks.base import Sink
from agent.sources import logs
from agent.sources.merge import joined, merged
from agent.sources.openmetrics import OpenMetrics, first_instant_ms
from agent.sources.report import FileReport, say_once
from agent.sources.runs import Plan, RunOptions, plan
from agent.sources.series import Thing
from core.errors import GpuwiseError, UsageError
from core.readings import GpuIdentity
from core.samples import SAMPLE_MS
from core.units import DAY_MS

__all__ = ["KINDS", "FileReport", "ImportReport", "run_import"]

KINDS: Final = (logs.SMI, logs.DMON, logs.EXPOSITION)

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes of all files."""


@dataclass(slots=True)
class ImportReport:
    """What became of an import.

    Attributes:
        kind: ``nvidia-smi``, ``dmon`` or ``openmetrics``.
        files: one report per file, in the order given; files that were joined come after.
        stored: samples made, and rows that were new to the sink.
        overlapping: readings left out because another file had that time of the GPU or engine already.
    """

    kind: str
    files: list[FileReport] = field(default_factory=list)
    stored: Stored = field(default_factory=Stored)
    overlapping: int = 0

    @property
    def kept(self) -> int:
        """Rows kept over all files."""
        return sum(file.kept for file in self.files)

    @property
    def refused(self) -> int:
        """Rows refused over all files."""
        return sum(file.refused for file in self.files)


def run_import(
    kind: str,
    paths: Sequence[Path | str],
    sink: Sink,
    *,
    gpu_uuid: str | None = None,
    host: str | None = None,
    at_ms: int | None = None,
    start_ms: int | None = None,
    interval_ms: int | None = None,
    utc_offset_ms: int = 0,
    span_ms: int = SAMPLE_MS,
    now_ms: int | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Read files into samples and store them; importing the same files again changes nothing.

    Args:
        kind: one of ``KINDS``; nvidia-smi and dmon logs may be mixed, their content tells.
        paths: files, gzip or not.
        sink: gets identities and samples, a few thousand rows a delivery.
        gpu_uuid: the GPU of a log that does not name it.
        host: name of the host the files come from.
        at_ms: time of exposition text without time stamps.
        start_ms: start of a log with relative times or none.
        interval_ms: distance of rows of a log without times.
        utc_offset_ms: what local times in the files are ahead of UTC.
        span_ms: length of a sample's interval.
        now_ms: rows more than a day later are refused; None: no row is too late.
        progress: called with bytes read and bytes in all.

    Returns:
        The report. A file that cannot be read at all has its sentence there; the others are imported.

    Raises:
        UsageError: a path is no file.
        SinkError, RefusedError: the sink's; what was delivered before is stored.
    """
    files = [_file(path) for path in paths]
    report = ImportReport(kind)
    batch = Batch(sink, span_ms=span_ms)
    latest_ms = None if now_ms is None else now_ms + DAY_MS  # a wrong time zone is less than a day
    if kind == logs.EXPOSITION:
        things = _exposition(
            files, report, OpenMetrics(host=host, at_ms=at_ms, latest_ms=latest_ms), progress
        )
    else:
        options = RunOptions(gpu_uuid, host, start_ms, interval_ms, utc_offset_ms, latest_ms)
        things = _logs(files, report, options, progress)
    for thing in things:
        batch.take(thing)
    report.stored = batch.end()
    report.overlapping = batch.refused
    say_once(report.files)
    for file in report.files:
        file.finish()
    return report


def _file(path: Path | str) -> Path:
    path = Path(path)
    if not path.exists():
        raise UsageError(f"{path} does not exist: correct the path")
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name the files in it, e.g. {path}/*.gz")
    return path


def _exposition(
    files: Sequence[Path], report: ImportReport, source: OpenMetrics, progress: Progress | None
) -> Iterator[Thing]:
    meter = _Meter(files, progress)
    reports = {path: FileReport(path) for path in files}
    report.files.extend(reports.values())
    fit = [path for path in reports if _is_exposition(path, reports[path])]
    for path in sorted(fit, key=lambda path: first_instant_ms(path) or 0):
        yield from _guarded(source.read(path, reports[path], meter.of(path)), reports[path])
    yield from source.rest()


def _is_exposition(path: Path, report: FileReport) -> bool:
    try:
        head = logs.look(path, logs.NEIGHBOUR_LINES)
    except GpuwiseError as error:
        report.fail(str(error))
        return False
    if head.kind in {logs.SMI, logs.DMON}:
        report.fail(f"{path} is a log of {_tool(head.kind)}: import it with gpuwise import {head.kind}")
        return False
    return True


def _logs(
    files: Sequence[Path], report: ImportReport, options: RunOptions, progress: Progress | None
) -> Iterator[Thing]:
    made: Plan = plan(files, report.kind, options)
    report.files.extend(made.reports)
    meter = _Meter([run.path for run in made.runs], progress)
    models: dict[str, str] = {}
    streams = [
        run.stream(_one_model(_guarded(run.read(meter.of(run.path)), run.report), run.report, models))
        for run in made.runs
    ]
    things = merged(streams)
    yield from joined(things) if len(streams) > 1 else things


def _guarded(things: Iterator[Thing], report: FileReport) -> Iterator[Thing]:
    """A file that cannot be read further keeps what was good; its neighbours go on."""
    try:
        yield from things
    except GpuwiseError as error:
        report.fail(str(error))


def _one_model(things: Iterator[Thing], report: FileReport, models: dict[str, str]) -> Iterator[Thing]:
    """Say when a UUID that is known comes with another model: two cards would become one."""
    for thing in things:
        if isinstance(thing, GpuIdentity) and thing.model is not None:
            known = models.setdefault(thing.gpu_uuid, thing.model)
            if known != thing.model:
                report.problem(
                    None,
                    f"{thing.gpu_uuid} is a {thing.model} here and was a {known} before: two cards become one GPU",
                )
        yield thing


def _tool(kind: str) -> str:
    return "nvidia-smi dmon" if kind == logs.DMON else "nvidia-smi --query-gpu"


class _Meter:
    """Adds up the bytes read over all files."""

    def __init__(self, files: Sequence[Path], progress: Progress | None) -> None:
        self._progress = progress
        self._done: dict[Path, int] = {}
        self._total = sum(path.stat().st_size for path in dict.fromkeys(files))

    def of(self, path: Path) -> Callable[[int], None]:
        """What one file's reader calls with its own bytes."""

        def tell(done: int) -> None:
            self._done[path] = done
            if self._progress is not None:
                self._progress(sum(self._done.values()), self._total)

        return tell
