"""``gpuwise import``: telemetry from files, with every row accounted for; from Prometheus in ``import_prometheus``."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from core.clock import iso, now_ms
from core.errors import UsageError
from core.settings import Settings, load
from gpuwise.commands.import_prometheus import prometheus
from gpuwise.commands.import_words import counted, instant

if TYPE_CHECKING:
    from agent.importing import ImportReport, Progress

F = TypeVar("F", bound=Callable[..., Any])

NOTES_SHOWN: Final = 20
_HEX: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_UUID: Final = re.compile(rf"GPU-{_HEX}|MIG-{_HEX}|MIG-GPU-{_HEX}/\d+/\d+")


def _offset(text: str) -> int:
    """An offset from UTC such as ``+02:00``, as milliseconds."""
    try:
        shift = datetime.fromisoformat(f"2000-01-01T00:00:00{text}").utcoffset()
    except ValueError:
        shift = None
    if shift is None:
        raise click.BadParameter(f"{text!r} is not an offset such as +02:00 or -05:30")
    return shift // timedelta(milliseconds=1)


def _gpu(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    """A UUID as the driver writes it."""
    if text is not None and not _UUID.fullmatch(text):
        raise click.BadParameter(
            f"{text!r} is no UUID such as GPU-ecf1cb8c-19f2-38d3-919c-dddb9e17183d or MIG-…: see nvidia-smi -L"
        )
    return text


def _shared(command: F) -> F:
    """Arguments of every import command."""

    @wraps(command)
    def with_settings(*args: Any, database_url: str | None, **options: Any) -> Any:
        return command(*args, settings=load({"database_url": database_url}), **options)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the report as JSON."),
        click.option("--database-url", metavar="URL", help="sqlite:///PATH or postgresql://USER@HOST/DB."),
        click.option("--host", metavar="NAME", help="Host the files come from, where they do not say."),
        click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)),
    ):
        with_settings = option(with_settings)
    return with_settings  # type: ignore[return-value]  # click's options keep the signature open


def _log_options(command: F) -> F:
    """Arguments of the nvidia-smi and dmon commands."""
    for option in (
        click.option(
            "--interval",
            "interval_s",
            metavar="SECONDS",
            type=click.FloatRange(min=0, min_open=True),
            help="Distance of the rows of a dmon log without times.",
        ),
        click.option(
            "--utc-offset",
            "utc_offset_ms",
            metavar="OFFSET",
            type=_offset,
            default="+00:00",
            show_default=True,
            help="What the log's local times are ahead of UTC.",
        ),
        click.option(
            "--start",
            "start_ms",
            metavar="TIME",
            type=instant,
            help="Start of a log whose times are relative or absent.",
        ),
        click.option(
            "--gpu", "gpu_uuid", metavar="UUID", callback=_gpu, help="The GPU of a log that does not name it."
        ),
    ):
        command = option(command)
    return command


@click.group(name="import")
def import_() -> None:
    """Bring in telemetry: nvidia-smi, dmon and OpenMetrics files, a running Prometheus. Importing twice changes nothing."""


@import_.command(name="nvidia-smi")
@_shared
@_log_options
def nvidia_smi(settings: Settings, files: tuple[Path, ...], *, as_json: bool, **options: Any) -> int:
    """Read logs of nvidia-smi --query-gpu=timestamp,uuid,… --format=csv; dmon logs of the same run join."""
    return _logs("nvidia-smi", settings, files, as_json=as_json, options=options)


@import_.command()
@_shared
@_log_options
def dmon(settings: Settings, files: tuple[Path, ...], *, as_json: bool, **options: Any) -> int:
    """Read logs of nvidia-smi dmon; --gpu or a query log beside them names the GPU."""
    return _logs("dmon", settings, files, as_json=as_json, options=options)


@import_.command()
@_shared
@click.option("--at", "at_ms", metavar="TIME", type=instant, help="Time of samples that carry no time stamp.")
def openmetrics(settings: Settings, files: tuple[Path, ...], *, as_json: bool, **options: Any) -> int:
    """Read Prometheus or OpenMetrics text with time stamps.

    DCGM_FI_*, nvidia_smi_*, vllm:*, sglang:*, tgi_*, trtllm_*, nv_trt_llm_*, llamacpp:*.
    """
    return _run("openmetrics", settings, files, as_json=as_json, options=options)


def _logs(
    kind: str, settings: Settings, files: tuple[Path, ...], *, as_json: bool, options: dict[str, Any]
) -> int:
    interval_s = options.pop("interval_s")
    options["interval_ms"] = None if interval_s is None else round(interval_s * 1000)
    return _run(kind, settings, files, as_json=as_json, options=options)


def _run(
    kind: str, settings: Settings, files: tuple[Path, ...], *, as_json: bool, options: dict[str, Any]
) -> int:
    from agent.importing import run_import
    from agent.sinks.database import DatabaseSink
    from store.schema import ensure_ready

    for path in files:
        if not path.is_file():
            raise UsageError(f"{path} is not a file: correct the path")
    ensure_ready(settings.database_url)
    with DatabaseSink(settings.database_url) as sink, _progress() as progress:
        report = run_import(kind, files, sink, now_ms=now_ms(), progress=progress, **options)
    if report.stored.new_rows:
        _roll_up(settings, report)
    if as_json:
        click.echo(json.dumps(as_dict(report), indent=2, ensure_ascii=False))
    else:
        _print(report)
    return 0 if report.kept else 1


def _roll_up(settings: Settings, report: "ImportReport") -> None:
    """Fold the hours that changed, so that every table answers at once."""
    from core.sharing import ShareMethod
    from store.engine import make_engine
    from store.rollup import roll_up

    # Files may hold times that this machine's clock has not reached.
    latest_ms = max(now_ms(), report.stored.to_ms or 0)
    method = ShareMethod(settings.usage_share_method)
    roll_up(make_engine(settings.database_url), now_ms=latest_ms, share_method=method)


@contextmanager
def _progress() -> Iterator["Progress | None"]:
    """A bar on a terminal; nothing in a pipe or a log."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("Reading"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("import", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def as_dict(report: "ImportReport") -> dict[str, Any]:
    """The report as JSON."""
    stored = report.stored
    return {
        "kind": report.kind,
        "read": sum(file.read for file in report.files),
        "kept": report.kept,
        "refused": report.refused,
        "refused_values": sum(file.refused_values for file in report.files),
        "ignored": sum(file.ignored for file in report.files),
        "overlapping": report.overlapping,
        "gpu_samples": stored.gpu_samples,
        "engine_samples": stored.engine_samples,
        "process_samples": stored.process_samples,
        "new_rows": stored.new_rows,
        "from": iso(stored.from_ms),
        "to": iso(stored.to_ms),
        "gpu_uuids": sorted(stored.gpu_uuids),
        "engines": sorted(stored.engines),
        "files": [
            {
                "path": str(file.path),
                "read": file.read,
                "kept": file.kept,
                "refused": file.refused,
                "refused_values": file.refused_values,
                "ignored": file.ignored,
                "problems": file.problems,
                "notes": file.notes,
            }
            for file in report.files
        ],
    }


def _print(report: "ImportReport") -> None:
    for file in report.files:
        click.echo(
            f"{file.path}: {counted(file.read, 'row')} read, {file.kept:,} kept, {file.refused:,} refused, {file.ignored:,} not needed"
            + (f"; {counted(file.refused_values, 'value')} refused" if file.refused_values else "")
        )
    notes = [note for file in report.files for note in file.notes]
    for note in notes[:NOTES_SHOWN]:
        click.echo(f"note: {note}")
    if len(notes) > NOTES_SHOWN:
        click.echo(f"note: {counted(len(notes) - NOTES_SHOWN, 'more note')}: see --json")
    if report.overlapping:
        click.echo(
            f"note: {counted(report.overlapping, 'reading')} left out: another file had that time of the same GPU or engine"
        )
    for file in report.files:
        for problem in file.problems:
            click.echo(problem, err=True)
        if file.unsaid:
            click.echo(f"{file.path}: {counted(file.unsaid, 'more row')} refused", err=True)
    click.echo(_summary(report))


def _summary(report: "ImportReport") -> str:
    stored = report.stored
    rows = stored.gpu_samples + stored.engine_samples + stored.process_samples
    if not rows:
        return "Nothing was imported."
    whose = [counted(len(stored.gpu_uuids), "GPU")]
    if stored.engines:
        whose.append(counted(len(stored.engines), "engine"))
    known = rows - stored.new_rows
    return (
        f"{counted(rows, 'sample')} of {' and '.join(whose)}, {iso(stored.from_ms)} to {iso(stored.to_ms)}: "
        f"{stored.new_rows:,} new, {known:,} {'was' if known == 1 else 'were'} there already."
    )


import_.add_command(prometheus)
