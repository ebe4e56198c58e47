"""Evidence on its way between two processes: hours stay where they are, and the receiver reads them with its own session."""

import pickle
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import cache
from io import BytesIO
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from core.evidence import Window
from store.queries.kinds import ENGINES, GPUS, HOSTS, Kind

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from store.queries.hour_groups import Group
    from store.queries.shelves import Shelves

_KINDS: Final[Mapping[str, Kind[Any, Any]]] = {kind.name: kind for kind in (GPUS, ENGINES, HOSTS)}
_receiver: ContextVar[tuple["Session", "Shelves"]] = ContextVar("receiver")


def packed(value: object) -> bytes:
    """Evidence, or anything that holds some, as bytes."""
    into = BytesIO()
    _Packer(into, pickle.HIGHEST_PROTOCOL).dump(value)
    return into.getvalue()


class _Packer(pickle.Pickler):
    """Packs a dataclass as a call of its class: half the time of asking each value for its state, and setting that."""

    def reducer_override(self, value: Any) -> Any:
        """As ``pickle`` asks for it."""
        kind: Any = type(value)
        values_of = _values_of(kind)
        return NotImplemented if values_of is None else (kind, values_of(value))


@cache
def _values_of(kind: Any) -> Callable[[Any], tuple[Any, ...]] | None:
    """What gives the arguments that make an equal value; None of a class that is no dataclass, or packs itself."""
    if not is_dataclass(kind) or kind.__reduce__ is not object.__reduce__:
        return None
    names = [field.name for field in fields(kind)]
    if len(names) < 2 or not all(field.init for field in fields(kind)):
        return None
    get: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
    return get


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
    from store.queries.hour_groups import Group

    session, shelves = _receiver.get()
    return Group(session, window, _KINDS[kind], names, shelves, known=(pending, stale))
