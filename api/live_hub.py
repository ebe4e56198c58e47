"""Who looks at what, live: one reader for all listeners of the same thing, and none where nobody listens.

Everything here runs on the event loop's own thread, so nothing needs a lock; only ``read`` runs in another one.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

log = logging.getLogger(__name__)

EVERY_S: Final = 3.0
"""Between two looks: a live agent stores a sample every 10 s, so that a new one is at most this old."""
MOST: Final = 100
"""Listeners of one process: each is an open connection."""
Items = Mapping[str, Mapping[str, Any]]
"""What is told, by key; only what changed is sent again."""
Read = Callable[[], Items]


class FullError(Exception):
    """As many listen as may, or the server is about to end."""


class Listener:
    """One connection: what it has not been told yet. A slow one misses steps between, never the newest."""

    def __init__(self) -> None:
        self._pending: dict[str, Mapping[str, Any]] = {}
        self._woken = asyncio.Event()
        self._closed = False

    def offer(self, changed: Items) -> None:
        """Have it told."""
        self._pending.update(changed)
        self._woken.set()

    def close(self) -> None:
        """Nothing more will come: the client is gone, or the server ends."""
        self._closed = True
        self._woken.set()

    async def next(self, timeout_s: float) -> dict[str, Mapping[str, Any]] | None:
        """What changed since the last time; empty after ``timeout_s`` without news; None: it is over."""
        try:
            await asyncio.wait_for(self._woken.wait(), timeout_s)
        except TimeoutError:
            return {}
        self._woken.clear()
        if self._closed:
            return None
        told, self._pending = self._pending, {}
        return told


class _Reader:
    """Reads one thing again and again for all who listen to it."""

    def __init__(self, read: Read, every_s: float) -> None:
        self.listeners: set[Listener] = set()
        self.state: Items = {}
        self._read, self._every_s = read, every_s
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            try:
                found = await asyncio.to_thread(self._read)
            except Exception:  # a tick: the next one may read again
                log.exception("live view could not be read")
            else:
                changed = {key: item for key, item in found.items() if self.state.get(key) != item}
                self.state = found
                if changed:
                    for listener in self.listeners:
                        listener.offer(changed)
            await asyncio.sleep(self._every_s)

    def stop(self) -> None:
        self._task.cancel()


class LiveHub:
    """All listeners of one process."""

    def __init__(self, every_s: float = EVERY_S, most: int = MOST) -> None:
        self._every_s, self._most = every_s, most
        self._readers: dict[str, _Reader] = {}
        self._closed = False

    @property
    def listeners(self) -> int:
        """How many listen."""
        return sum(len(reader.listeners) for reader in self._readers.values())

    @property
    def readers(self) -> int:
        """How many things are read."""
        return len(self._readers)

    @contextmanager
    def listen(self, topic: str, read: Read) -> Iterator[Listener]:
        """Listen to ``topic`` for as long as the block lasts; the first one starts its reader, the last one ends it.

        Raises:
            FullError: nobody more may listen.
        """
        if self._closed or self.listeners >= self._most:
            raise FullError
        reader = self._readers.get(topic)
        if reader is None:
            reader = self._readers[topic] = _Reader(read, self._every_s)
        listener = Listener()
        reader.listeners.add(listener)
        if reader.state:
            listener.offer(reader.state)
        try:
            yield listener
        finally:
            reader.listeners.discard(listener)
            if not reader.listeners:
                reader.stop()
                self._readers.pop(topic, None)

    def close(self) -> None:
        """End every stream now: the server must not wait for connections that never end by themselves."""
        self._closed = True
        for reader in self._readers.values():
            for listener in reader.listeners:
                listener.close()
