"""History that is imported piece by piece: each piece with the note that it is done, in one transaction.

What the database knows already wins: an hour of a GPU or an engine that holds samples of another length (the agent's,
another import's), or whose samples were purged, is left as it is. How far an import came stands with the facts about
the database (``meta``), a row a GPU or engine.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from core.delivery import Delivery
from core.errors import StoreError
from core.evidence import Window
from core.samples import EngineSample, GpuSample
from core.units import HOUR_MS
from store.dbapi import Connection
from store.ingest import Ingest

_KEY: Final = "imported {source} {subject}"
_LOOK: Final = (
    "SELECT key, value FROM meta WHERE substr(key, 1, ?) = ?"  # a range of keys is one in few collations
)
_PUT: Final = (
    "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_SAMPLED: Final = """
    SELECT DISTINCT o.{name}, s.ts_ms / 3600000 * 3600000, s.span_ms
    FROM {table}_sample s JOIN {table} o ON o.id = s.{table}_id
    WHERE o.{name} IN ({marks}) AND s.ts_ms >= ? AND s.ts_ms < ?
"""
_FOLDED: Final = """
    SELECT o.{name}, h.hour_ms FROM {table}_hour h JOIN {table} o ON o.id = h.{table}_id
    WHERE o.{name} IN ({marks}) AND h.hour_ms >= ? AND h.hour_ms < ?
"""
_NAMES: Final = {"gpu": "gpu_uuid", "engine": "engine"}
Hours = set[tuple[str, int]]
"""Of which GPU or engine, and when they begin."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a piece: rows that were new, and hours of GPUs and engines that were there already."""

    new_rows: int
    gpu_hours_known: Hours
    engine_hours_known: Hours
    kept: Delivery


class Imported:
    """The progress of one import, and the way its pieces take.

    Args:
        connection: to the database, at its head.
        source: what is imported; the same words go on where an earlier import stopped.
        span_ms: length of its samples.

    Raises:
        StoreError: the database has no tables.
    """

    def __init__(self, connection: Connection, source: str, span_ms: int) -> None:
        self._connection = connection
        self._source = hashlib.sha256(source.encode()).hexdigest()[:16]
        self._span_ms = span_ms
        first = _KEY.format(source=self._source, subject="")
        rows = connection.fetch(_LOOK, (len(first), first))
        connection.rollback()
        self._done = {key.removeprefix(first): _windows_of(value) for key, value in rows}

    def left(self, subject: str, window: Window) -> Window | None:
        """What of a window is not done: from its first hour that is not to its last; None: all of it is."""
        parts = [window]
        for done in self._done.get(subject, ()):
            parts = [
                part
                for one in parts
                for part in (
                    Window(one.from_ms, min(one.to_ms, done.from_ms)),
                    Window(max(one.from_ms, done.to_ms), one.to_ms),
                )
                if part.from_ms < part.to_ms
            ]
        return Window(parts[0].from_ms, parts[-1].to_ms) if parts else None

    def keep(self, delivery: Delivery, subjects: Iterable[str], done: Window) -> Kept:
        """Store a piece, and that its subjects are done over a window (without length: they are not), in one transaction.

        Raises:
            StoreError: the database refuses; nothing of the piece is stored.
        """
        connection = self._connection
        ingest = Ingest(connection)  # a new one: months of pods would not be forgotten
        progress = {}
        for subject in subjects if done.from_ms < done.to_ms else ():
            progress[subject] = _joined([*self._done.get(subject, ()), done])
        try:
            connection.begin()
            gpu = self._known("gpu", {s.gpu_uuid: None for s in delivery.gpu_samples}, delivery.gpu_samples)
            engines = {s.engine: None for s in delivery.engine_samples}
            engine = self._known("engine", engines, delivery.engine_samples)
            kept = _without(delivery, gpu, engine)
            new = ingest.deliver(kept)
            rows = [
                (_KEY.format(source=self._source, subject=subject), _text_of(windows))
                for subject, windows in sorted(progress.items())
            ]
            if rows:
                connection.begin()
                connection.executemany(_PUT, rows)
            ingest.commit()
        except connection.errors as error:
            ingest.rollback()
            raise StoreError(f"the import's progress cannot be kept ({error}): check the database") from error
        except BaseException:
            ingest.rollback()
            raise
        self._done |= progress
        return Kept(new, gpu, engine, kept)

    def _known(
        self, table: str, names: Mapping[str, None], samples: Sequence[GpuSample] | Sequence[EngineSample]
    ) -> Hours:
        """Hours of the samples that the database has from elsewhere."""
        if not samples:
            return set()
        from_ms = min(s.ts_ms for s in samples) // HOUR_MS * HOUR_MS
        to_ms = max(s.ts_ms for s in samples) // HOUR_MS * HOUR_MS + HOUR_MS
        words = {"table": table, "name": _NAMES[table], "marks": ", ".join("?" * len(names))}
        asked = (*names, from_ms, to_ms)
        ours: Hours = set()
        others: Hours = set()
        for name, hour_ms, span_ms in self._connection.fetch(_SAMPLED.format(**words), asked):
            (ours if span_ms == self._span_ms else others).add((name, hour_ms))
        folded = {(name, hour_ms) for name, hour_ms in self._connection.fetch(_FOLDED.format(**words), asked)}
        return (others | (folded - ours)) & {
            (s.gpu_uuid if isinstance(s, GpuSample) else s.engine, s.ts_ms - s.ts_ms % HOUR_MS)
            for s in samples
        }


def _without(delivery: Delivery, gpu: Collection[tuple[str, int]], engine: Hours) -> Delivery:
    """A delivery without what belongs to hours that are known."""
    if not gpu and not engine:
        return delivery

    def news(row: Any) -> bool:
        return (row.gpu_uuid, row.ts_ms - row.ts_ms % HOUR_MS) not in gpu

    return replace(
        delivery,
        gpu_samples=list(filter(news, delivery.gpu_samples)),
        process_samples=list(filter(news, delivery.process_samples)),
        events=list(filter(news, delivery.events)),
        engine_samples=[
            one
            for one in delivery.engine_samples
            if (one.engine, one.ts_ms - one.ts_ms % HOUR_MS) not in engine
        ],
    )


def _joined(windows: Iterable[Window]) -> list[Window]:
    """Windows in order; those that touch are one."""
    joined: list[Window] = []
    for window in sorted(windows, key=lambda one: one.from_ms):
        if joined and window.from_ms <= joined[-1].to_ms:
            joined[-1] = Window(joined[-1].from_ms, max(joined[-1].to_ms, window.to_ms))
        else:
            joined.append(window)
    return joined


def _text_of(windows: Iterable[Window]) -> str:
    return ",".join(f"{one.from_ms}-{one.to_ms}" for one in windows)


def _windows_of(text: str) -> list[Window]:
    pairs = (part.partition("-") for part in text.split(",") if part)
    return [Window(int(first), int(last)) for first, _dash, last in pairs]
