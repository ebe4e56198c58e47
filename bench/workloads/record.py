"""Recordings: what the agent stored while one load ran, as gzipped JSON lines without names of machines or people.

The first line says what the load was; each further one is a stored row: ``{"table": "gpu_sample", "ts_ms": …, …}``,
unknown values left out, figures to six digits.
"""

import gzip
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

MOST_BYTES: Final = 5_000_000
"""For a whole folder: recordings are test input and travel with the project."""
UUID: Final = "GPU-00000000-0000-4000-8000-000000000001"
HOST: Final = "bench"
DIGITS: Final = 6
_TABLES: Final = {
    "gpu_sample": "SELECT s.* FROM gpu_sample s JOIN gpu g ON g.id = s.gpu_id WHERE g.gpu_uuid = :uuid",
    "process_sample": (
        "SELECT s.*, w.kind AS workload_kind, w.key AS workload_key, w.name AS workload_name FROM process_sample s "
        "JOIN gpu g ON g.id = s.gpu_id JOIN workload w ON w.id = s.workload_id WHERE g.gpu_uuid = :uuid"
    ),
    "host_sample": "SELECT s.* FROM host_sample s WHERE 1 = 1",
    "gpu_event": "SELECT s.*, 0 AS span_ms FROM gpu_event s JOIN gpu g ON g.id = s.gpu_id WHERE g.gpu_uuid = :uuid",
}
_LEFT_OUT: Final = frozenset({"gpu_id", "host_id", "workload_id"})


def rows(database: Path, uuid: str, from_ms: int, to_ms: int) -> Iterator[dict[str, Any]]:
    """Stored rows that lie wholly within the time, in order of table and time."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        for table, select in _TABLES.items():
            sql = f"SELECT * FROM ({select}) WHERE ts_ms >= :from_ms AND ts_ms + span_ms <= :to_ms ORDER BY ts_ms"
            given = {"uuid": uuid, "from_ms": from_ms, "to_ms": to_ms}
            for row in connection.execute(sql, given):
                told = {name: _short(row[name]) for name in row.keys() if row[name] is not None}  # noqa: SIM118 - a Row iterates over values
                yield {
                    "table": table,
                    **{name: value for name, value in told.items() if name not in _LEFT_OUT},
                }


def card(database: Path, uuid: str) -> dict[str, Any]:
    """What the card is, without its bus or UUID."""
    names = "model, memory_total_bytes, driver_version, max_sm_clock_hz, power_limit_default_w, compute_capability, power_averaging_s"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute(f"SELECT {names} FROM gpu WHERE gpu_uuid = ?", (uuid,)).fetchone()
        return {"gpu_uuid": UUID, "host": HOST, **(dict(found) if found else {})}


def write(path: Path, header: Mapping[str, Any], found: Iterator[dict[str, Any]]) -> int:
    """Write one recording; the number of its rows."""
    lines = [json.dumps(header), *(json.dumps(row, separators=(",", ":")) for row in found)]
    path.parent.mkdir(parents=True, exist_ok=True)
    # No name and no time in it: the same rows give the same file.
    path.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), mtime=0))
    return len(lines) - 1


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Header and rows of a recording."""
    header, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return json.loads(header), [json.loads(line) for line in lines]


def _short(value: object) -> object:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
