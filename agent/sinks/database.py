"""Samples straight into a database, SQLite or PostgreSQL, by the store's fast path."""

from collections.abc import Sequence
from typing import Self

from core.readings import EngineIdentity, GpuIdentity
from core.samples import EngineSample, GpuEvent, GpuSample, ProcessSample
from store.dbapi import open_connection
from store.ingest import Ingest


class DatabaseSink:
    """One connection and the store's ingest on it.

    Raises:
        StoreError: the database cannot be reached, or has no tables yet.
    """

    def __init__(self, database_url: str) -> None:
        self._connection = open_connection(database_url)
        try:
            self._ingest = Ingest(self._connection)
        except BaseException:
            self._connection.close()
            raise

    def gpus(self, identities: Sequence[GpuIdentity]) -> None:
        """Register GPUs or complete what is known of them."""
        self._ingest.gpus(identities)

    def engines(self, identities: Sequence[EngineIdentity]) -> None:
        """Register engines or complete what is known of them."""
        self._ingest.engines(identities)

    def gpu_samples(self, samples: Sequence[GpuSample]) -> int:
        """Store samples; how many were new or completed a stored one."""
        return self._ingest.gpu_samples(samples)

    def process_samples(self, samples: Sequence[ProcessSample]) -> int:
        """Store samples of workloads; how many were new."""
        return self._ingest.process_samples(samples)

    def engine_samples(self, samples: Sequence[EngineSample]) -> int:
        """Store samples of engines; how many were new or completed a stored one."""
        return self._ingest.engine_samples(samples)

    def events(self, events: Sequence[GpuEvent]) -> int:
        """Store events; how many were new."""
        return self._ingest.events(events)

    def commit(self) -> None:
        """End the transaction."""
        self._ingest.commit()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
