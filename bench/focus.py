"""A month of a fleet as a FOCUS file: seconds, rows a second and peak memory at 100 and 1,000 GPUs, against the bare writer.

The bare writer is ``csv.writer`` over the same rows, already in memory: nothing is read, priced or worked out.
"""

import csv
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

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
    fly_s, fly_mib, _ = _written(url, file)
    materialise(make_engine(url), _settings(url), NOW_MS)
    wall_s, peak_mib, rows = _written(url, file)
    bare_s = _bare(file)
    yield Figure(
        GROUP, f"{what}: {rows:,.0f} rows", wall_s, "s", 1, wall_s / bare_s, "csv.writer of the same rows"
    )
    yield Figure(GROUP, f"{what}: rows a second", rows / wall_s, "rows/s", 1)
    yield Figure(GROUP, f"{what}: peak memory", peak_mib, "MiB", 1)
    yield Figure(GROUP, f"{what}: all of it priced on the fly", fly_s, "s", 1, fly_s / wall_s, "stored days")
    yield Figure(GROUP, f"{what}: peak memory on the fly", fly_mib, "MiB", 1)


def _written(url: str, file: Path) -> tuple[float, float, float]:
    """Seconds, peak memory (MiB) and rows of one file."""
    said = subprocess.run(
        [sys.executable, "-m", "bench.focus", url, str(file)], capture_output=True, text=True, check=True
    )
    wall_s, peak_mib, rows = (float(value) for value in said.stdout.split())
    return wall_s, peak_mib, rows


def _bare(file: Path) -> float:
    with file.open(newline="", encoding="utf-8") as text:
        rows = list(csv.reader(text))
    with (file.parent / "bare.csv").open("w", newline="", encoding="utf-8") as out:
        return seconds(lambda: csv.writer(out).writerows(rows))


def _settings(url: str) -> Settings:
    return Settings(database_url=url, **SETTINGS)  # type: ignore[arg-type]


def main(url: str, file: str) -> None:
    """Write the file of the month; print seconds, peak memory (MiB) and rows."""
    start = time.perf_counter()
    with (
        session_scope(make_engine(url)) as session,
        Path(file).open("w", encoding="utf-8", newline="") as out,
    ):
        made = export(session, _settings(url), NOW_MS, "2026-11", "2026-12")
        out.writelines(focus_file(made))
    wall_s = time.perf_counter() - start
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(wall_s, peak_mib, made.summary.rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
