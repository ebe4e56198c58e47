"""What was durable in a spool at some instant, and whether a database holds each of it exactly once.

A note is taken from a copy of the file and its log as a dead agent left them, or through a second connection while
the agent runs. Nothing of the agent's own accounting is asked.
"""

import json
import shutil
import sqlite3
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from agent.sinks.database import GZIP
from core.delivery import Delivery, from_object
from core.evidence import Window
from core.samples import EngineSample, GpuEvent, GpuSample, HostSample, ProcessSample
from store.dbapi import open_connection
from store.engine import dispose_engine, make_engine
from store.raw import SqlRawReader

Row = GpuSample | ProcessSample | EngineSample | HostSample | GpuEvent
Key = tuple[Any, ...]
ALWAYS: Final = Window(0, 1 << 52)


def key_of(row: Row) -> Key:
    """What may be stored once."""
    if isinstance(row, GpuEvent):
        return "event", row.gpu_uuid, row.ts_ms, row.kind, row.message
    if isinstance(row, ProcessSample):
        return "process", row.gpu_uuid, row.ts_ms, row.workload
    if isinstance(row, EngineSample):
        return "engine", row.engine, row.ts_ms
    if isinstance(row, HostSample):
        return "host", row.host, row.ts_ms
    return "gpu", row.gpu_uuid, row.ts_ms


def rows_of(delivery: Delivery) -> Iterator[Row]:
    """Its samples and events."""
    yield from delivery.gpu_samples
    yield from delivery.process_samples
    yield from delivery.engine_samples
    yield from delivery.host_samples
    yield from delivery.events


@dataclass(slots=True)
class Notes:
    """Rows that were durable in one spool.

    Attributes:
        rows: by key; of two of one interval the one that covers more. agents: ids that the file had.
        deliveries: numbers of those seen. changed: numbers that came with another body than before.
        refused: what the other side would never take.
    """

    spool: Path
    rows: dict[Key, Row] = field(default_factory=dict)
    agents: set[str] = field(default_factory=set)
    deliveries: dict[int, bytes] = field(default_factory=dict)
    changed: list[int] = field(default_factory=list)
    refused: int = 0
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def take_live(self) -> None:
        """Through a connection beside the agent's; nothing where there is no spool yet."""
        try:
            with closing(sqlite3.connect(f"file:{self.spool}?mode=ro", uri=True, timeout=5)) as file:
                self._take(file)
        except sqlite3.OperationalError:
            return

    def take_left(self) -> int:
        """From a copy of what a dead agent left; deliveries that wait there."""
        with TemporaryDirectory() as folder:
            for suffix in ("", "-wal"):
                source = self.spool.with_name(self.spool.name + suffix)
                if source.exists():
                    shutil.copyfile(source, Path(folder) / f"copy{suffix}")
            if not (Path(folder) / "copy").exists():
                return 0
            with closing(sqlite3.connect(Path(folder) / "copy")) as file:
                assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",), self.spool
                if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'delivery'").fetchone():
                    return 0  # killed before the tables were made
                self._take(file)
                return int(file.execute("SELECT count(*) FROM delivery").fetchone()[0])

    def _take(self, file: sqlite3.Connection) -> None:
        with self.mutex:
            self._read(file)

    def _read(self, file: sqlite3.Connection) -> None:
        for (agent,) in file.execute("SELECT value FROM meta WHERE name = 'agent_id'"):
            self.agents.add(agent)
        (self.refused,) = file.execute("SELECT count(*) FROM refused").fetchone()
        for sequence, body in file.execute("SELECT sequence, body FROM delivery").fetchall():
            before = self.deliveries.setdefault(sequence, body)
            if before is not body:
                if before != body:
                    self.changed.append(sequence)
                continue
            for row in rows_of(from_object(json.loads(zlib.decompress(body, GZIP)))):
                self.put(row)

    def put(self, row: Row) -> None:
        """Note a row; one that covers more of the same interval takes its place and keeps what only the other knew."""
        key = key_of(row)
        held = self.rows.get(key)
        if isinstance(row, GpuSample | EngineSample) and isinstance(held, type(row)):
            more, less = (row, held) if row.covered_ms > held.covered_ms else (held, row)
            row = replace(more, values={**less.values, **more.values})
        elif held is not None:
            row = held
        self.rows[key] = row


def stored_rows(database_url: str) -> list[Row]:
    """All samples and events of a database."""
    with open_connection(database_url) as connection:
        gpus, engines, hosts = (
            [name for (name,) in connection.fetch(f"SELECT {column} FROM {table}")]
            for table, column in (("gpu", "gpu_uuid"), ("engine", "engine"), ("host", "name"))
        )
        events = [
            GpuEvent(*row)
            for row in connection.fetch(
                "SELECT g.gpu_uuid, e.ts_ms, e.kind, e.message, e.code FROM gpu_event e JOIN gpu g ON g.id = e.gpu_id"
            )
        ]
    reader = SqlRawReader(make_engine(database_url))
    try:
        return [
            *reader.gpu_samples(gpus, ALWAYS),
            *reader.process_samples(gpus, ALWAYS),
            *reader.engine_samples(engines, ALWAYS),
            *reader.host_samples(hosts, ALWAYS),
            *events,
        ]
    finally:
        dispose_engine(database_url)


def losses(noted: Iterable[Notes], stored: Iterable[Row]) -> list[str]:
    """Noted rows that are not stored, or with other values than noted; each in a line."""
    held = {key_of(row): row for row in stored}
    found = []
    for notes in noted:
        for key, row in notes.rows.items():
            there = held.get(key)
            if there is None:
                found.append(f"lost: {row}")
            elif there != row and not _covers_more(there, row):
                found.append(f"stored otherwise: {there} for {row}")
    return found


def doubles(stored: Iterable[Row]) -> list[str]:
    """Keys that are there twice, and samples of one GPU, engine or host that share time; each in a line."""
    rows = list(stored)
    found = [f"{times} times: {key}" for key, times in Counter(map(key_of, rows)).items() if times > 1]
    ends: dict[Key, int] = {}
    for row in sorted(rows, key=lambda row: row.ts_ms):
        if isinstance(row, GpuEvent):
            continue
        key = key_of(row)
        whose = (*key[:2], *key[3:])
        if row.ts_ms < ends.get(whose, 0):
            found.append(f"shares time with the one before: {row}")
        ends[whose] = row.ts_ms + row.span_ms
    return found


def _covers_more(there: Row, noted: Row) -> bool:
    return (
        isinstance(noted, GpuSample | EngineSample)
        and isinstance(there, type(noted))
        and there.covered_ms > noted.covered_ms
    )
