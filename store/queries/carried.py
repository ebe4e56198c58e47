"""Evidence on its way between two processes: hours stay where they are, and the receiver reads them with its own session."""

import pickle
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from core.evidence import Window
from store.queries.kinds import ENGINES, GPUS, HOSTS, Kind

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from store.queries.shelves import Shelves
    from store.queries.stored_hours import Group

_KINDS: Final[Mapping[str, Kind[Any, Any]]] = {kind.name: kind for kind in (GPUS, ENGINES, HOSTS)}
_receiver: ContextVar[tuple["Session", "Shelves"]] = ContextVar("receiver")


def packed(value: object) -> bytes:
    """Evidence, or anything that holds some, as bytes."""
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def unpacked(data: bytes, session: "Session", shelves: "Shelves") -> Any:
    """What another process of ours packed, with hours that this ``session`` reads and keeps on these ``shelves``."""
    token = _receiver.set((session, shelves))
    try:
        return pickle.loads(data)  # noqa: S301 - from a child of this process, over a pipe of its own
    finally:
        _receiver.reset(token)


def leaving(group: "Group[Any, Any]") -> tuple[Any, ...]:
    """A group without its session and what it read, as ``object.__reduce__`` says it."""
    return _arrived, (group.window, group.kind.name, group.names, group.pending, group.stale)


def _arrived(
    window: Window, kind: str, names: Mapping[int, str], pending: set[int], stale: set[int]
) -> "Group[Any, Any]":
    from store.queries.stored_hours import Group

    session, shelves = _receiver.get()
    return Group(session, window, _KINDS[kind], names, shelves, known=(pending, stale))
