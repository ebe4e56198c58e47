"""What an agent says of the present: health of its GPUs, its host, itself. One row each, rewritten, not a series.

Health is asked every minute and hardly ever changes: a row is written when it did, else every ten minutes.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Final

from core.readings import GpuHealth, HostIdentity
from core.units import MINUTE_MS
from store.dbapi import Connection
from store.identities import Identities

REPEAT_HEALTH_MS: Final = 10 * MINUTE_MS
"""Health that did not change is written again after this long, so that its age can be told."""
_HEALTH = """
    UPDATE gpu SET health = ?, health_ms = ?
    WHERE id = ? AND (health_ms IS NULL OR (health_ms < ? AND (health <> ? OR health_ms <= ?)))
"""
_HOST = """
    UPDATE host SET
        cpu_count = COALESCE(?, cpu_count),
        memory_total_bytes = COALESCE(?, memory_total_bytes),
        agent_version = COALESCE(?, agent_version),
        agent_sequence = CASE WHEN agent_id = ? AND agent_sequence > ? THEN agent_sequence
                              ELSE COALESCE(?, agent_sequence) END,
        agent_id = COALESCE(?, agent_id),
        agent_seen_ms = COALESCE(?, agent_seen_ms)
    WHERE id = ?
"""


@dataclass(frozen=True, slots=True)
class AgentSight:
    """Which delivery came last, and when; None: not told."""

    agent_id: str | None = None
    sequence: int | None = None
    seen_ms: int | None = None


class States:
    """Keeps the newest states of a transaction and writes them at its end, in key order."""

    def __init__(self, connection: Connection, identities: Identities) -> None:
        self._connection = connection
        self._identities = identities
        self._written: dict[int, tuple[str, int]] = {}
        self._health: dict[int, tuple[str, int]] = {}
        self._hosts: dict[int, tuple[HostIdentity, AgentSight]] = {}

    @property
    def empty(self) -> bool:
        """Nothing to write."""
        return not (self._health or self._hosts)

    def put_health(self, states: Iterable[GpuHealth]) -> None:
        """Note states of GPUs; the newest of each GPU counts."""
        for state in states:
            key = self._identities.gpu_id(state.gpu_uuid)
            text = _health_text(state)
            before = self._health.get(key) or self._written.get(key)
            if before is not None:
                same_for_now = before[0] == text and state.ts_ms - before[1] < REPEAT_HEALTH_MS
                if same_for_now or state.ts_ms < before[1]:
                    continue
            self._health[key] = (text, state.ts_ms)

    def put_host(self, host: HostIdentity, sight: AgentSight) -> None:
        """Note what a host is, and which delivery of its agent came."""
        self._hosts[self._identities.host_id(host.name)] = (host, sight)

    def write(self) -> None:
        """Write what was noted; a state older than the stored one, or the same a short while later, changes nothing."""
        if self._health:
            self._connection.executemany(
                _HEALTH,
                [
                    (text, ts_ms, key, ts_ms, text, ts_ms - REPEAT_HEALTH_MS)
                    for key, (text, ts_ms) in sorted(self._health.items())
                ],
            )
        if self._hosts:
            self._connection.executemany(
                _HOST, [_host_row(key, *noted) for key, noted in sorted(self._hosts.items())]
            )

    def committed(self) -> None:
        """What was written stays."""
        self._written |= self._health
        self._clear()

    def forget(self) -> None:
        """After a rollback: nothing of it was written."""
        self._written.clear()
        self._clear()

    def _clear(self) -> None:
        self._health.clear()
        self._hosts.clear()


def _health_text(state: GpuHealth) -> str:
    known = {name: v for name, v in state.facts.items() if not isinstance(v, float) or isfinite(v)}
    return json.dumps(known, sort_keys=True, separators=(",", ":"))


def _host_row(key: int, host: HostIdentity, sight: AgentSight) -> tuple[object, ...]:
    return (
        host.cpu_count,
        host.memory_total_bytes,
        host.agent_version,
        sight.agent_id,
        sight.sequence,
        sight.sequence,
        sight.agent_id,
        sight.seen_ms,
        key,
    )
