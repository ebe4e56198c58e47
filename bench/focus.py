"""A month of a fleet as a FOCUS file: seconds, rows a second and peak memory at 100 and 1,000 GPUs, against the bare writer.

The bare writer is ``csv.writer`` over the same rows, already in memory: nothing is read, priced or worked out.
"""

import csv
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from api.resources.export_files import focus_file
from api.resources.exports import export
from api.resources.ledger_days import materialise
from bench.databases import postgresql, sqlite
from bench.ledger import DAYS, SETTINGS, START_MS, build_fleet
from bench.measure import Figure, seconds
from core.settings import Settings
from core.units import DAY_MS
from store.engine import make_engine, session_scope

FLEETS: Final = (100, 1_000)
NOW_MS: Final = START_MS + (DAYS + 1) * DAY_MS
GROUP: Final = "focus"


def run(server: str | None) -> Iterator[Figure]:
    """Both stores; each file is written by a process of its own, so that its memory is its own."""
    with TemporaryDirectory(prefix="gpuwise-focus-") as folder:
        file = Path(folder) / "focus.csv"
        for gpus in FLEETS:
            with sqlite() as url:
                yield from _figures("SQLite", url, gpus, file)
        if server is not None:
            with postgresql(server) as url:
                yield from _figures("PostgreSQL", url, FLEETS[-1], file)


def _figures(store: str, url: str, gpus: int, file: Path) -> Iterator[Figure]:
    build_fleet(url, gpus, DAYS)
    what = f"{store}: a month of {gpus:,} GPUs"
    on_the_fly = _written(url, file)
    materialise(make_engine(url), _settings(url), NOW_MS)
    stored = _written(url, file)
    bare_s = _bare(file)
    against = "csv.writer of the same rows"
    yield Figure(
        GROUP, f"{what}: {stored.rows:,} rows", stored.wall_s, "s", 1, stored.wall_s / bare_s, against
    )
    yield Figure(GROUP, f"{what}: processor time", stored.cpu_s, "s", 1)
    yield Figure(GROUP, f"{what}: rows a second", stored.rows / stored.wall_s, "rows/s", 1)
    yield Figure(GROUP, f"{what}: peak memory", stored.peak_mib, "MiB", 1)
    ratio = on_the_fly.wall_s / stored.wall_s
    yield Figure(GROUP, f"{what}: no day stored", on_the_fly.wall_s, "s", 1, ratio, "stored days")
    yield Figure(GROUP, f"{what}: no day stored, peak memory", on_the_fly.peak_mib, "MiB", 1)


class Written(NamedTuple):
    """One file: seconds of the clock and of a core, peak memory, rows."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    rows: int


def _written(url: str, file: Path) -> Written:
    words = [sys.executable, "-m", "bench.focus", url, str(file)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return Written(float(said[0]), float(said[1]), float(said[2]), int(said[3]))


def _bare(file: Path) -> float:
    with file.open(newline="", encoding="utf-8") as text:
        rows = list(csv.reader(text))
    with (file.parent / "bare.csv").open("w", newline="", encoding="utf-8") as out:
        return seconds(lambda: csv.writer(out).writerows(rows))


def _settings(url: str) -> Settings:
    return Settings(database_url=url, **SETTINGS)  # type: ignore[arg-type]


def _peak_mib() -> float:
    """Of this process; ``getrusage`` would count what its parent held before."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main(url: str, file: str) -> None:
    """Write the file of the month; print seconds, seconds of a core, peak memory (MiB) and rows."""
    start, start_cpu = time.perf_counter(), time.process_time()
    with (
        session_scope(make_engine(url)) as session,
        Path(file).open("w", encoding="utf-8", newline="") as out,
    ):
        made = export(session, _settings(url), NOW_MS, "2026-11", "2026-12")
        out.writelines(focus_file(made))
    wall_s, cpu_s = time.perf_counter() - start, time.process_time() - start_cpu
    print(wall_s, cpu_s, _peak_mib(), made.summary.rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
