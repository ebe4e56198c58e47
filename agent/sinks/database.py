"""Deliveries straight into a database, SQLite or PostgreSQL, by the store's fast path."""

import json
import zlib
from typing import Final, Self

from agent.sinks.base import RefusedError, SinkError
from core.delivery import Delivery, from_object
from core.errors import StoreError
from store.dbapi import Connection, open_connection
from store.ingest import Ingest

GZIP: Final = 31
"""``wbits`` of zlib for a gzip body: the module ``gzip`` is not loaded for it."""
_SUSPECT: Final = frozenset({"DataError", "IntegrityError", "NotSupportedError", "ProgrammingError"})
"""DB-API errors (PEP 249) that speak of the rows or the tables, not of the connection."""


class DatabaseSink:
    """One connection and the store's ingest on it; opened at the first delivery, and again after an error."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._connection: Connection | None = None
        self._ingest: Ingest | None = None

    def deliver(self, delivery: Delivery) -> int:
        """Store everything of it in one transaction; rows that were new or completed a stored one.

        Raises:
            SinkError: the database cannot be reached, has no tables yet, or refuses.
            RefusedError: a value that no database takes.
        """
        return self._deliver(delivery, None, None)

    def deliver_body(self, body: bytes, *, agent_id: str, sequence: int) -> None:
        """Store a delivery of the spool (gzip of its JSON).

        Raises:
            SinkError: the database cannot be reached, has no tables yet, or refuses.
            RefusedError: the body is no delivery.
        """
        try:
            delivery = from_object(json.loads(zlib.decompress(body, GZIP)))
        except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RefusedError(
                f"delivery {sequence} of the spool is damaged ({error}): it is set aside"
            ) from error
        self._deliver(delivery, agent_id, sequence)

    def close(self) -> None:
        """Close the connection; a later delivery opens another one."""
        connection, self._connection, self._ingest = self._connection, None, None
        if connection is not None:
            connection.close()

    def open(self) -> Ingest:
        """The store's ingest on an open connection.

        Raises:
            SinkError: the database cannot be reached, or has no tables yet.
        """
        if self._ingest is None:
            try:
                self._connection = open_connection(self._url)
                if self._connection.dialect == "sqlite":
                    # The spool forgets what this has taken, so a power cut must not: WAL alone syncs at checkpoints only.
                    self._connection.execute("PRAGMA synchronous = FULL")
                self._ingest = Ingest(self._connection)
            except StoreError as error:
                self.close()
                raise SinkError(str(error)) from error
        return self._ingest

    def _deliver(self, delivery: Delivery, agent_id: str | None, sequence: int | None) -> int:
        ingest = self.open()
        try:
            new = ingest.deliver(delivery, agent_id=agent_id, sequence=sequence)
            ingest.commit()
        except StoreError as error:
            self.close()
            names = {kind.__name__ for kind in type(error.__cause__).__mro__}
            raise SinkError(str(error), suspect=bool(names & _SUSPECT)) from error
        except (OverflowError, ValueError, TypeError) as error:
            self.close()
            raise RefusedError(
                f"a value of the delivery cannot be stored ({error}): report it with the log"
            ) from error
        return new

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
