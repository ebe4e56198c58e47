"""What was read, kept up to a bounded size: memory follows what is looked at together, not the fleet."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from core.series import Masks

HOURS_KEPT: Final = 60_000
"""Hours kept at most, about 2 kB each."""
GROUPS_KEPT: Final = 6
"""Groups whose days are kept: two of each kind."""
V = TypeVar("V")


class Shelf(Generic[V]):
    """The newest things read, up to a weight; older ones make room and are read again when wanted."""

    def __init__(self, most: int, weight: Callable[[V], int]) -> None:
        self._most = most
        self._weight = weight
        self._kept: OrderedDict[Hashable, V] = OrderedDict()
        self._held = 0

    def get(self, key: Hashable, read: Callable[[], V]) -> V:
        """What ``read`` gave for ``key``, now or before."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        found = self._kept[key] = read()
        self._held += self._weight(found)
        while self._held > self._most and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._held -= self._weight(gone)
        return found

    def peek(self, key: Hashable) -> V | None:
        """What is kept for ``key``."""
        return self._kept.get(key)

    def clear(self) -> None:
        """Put everything away."""
        self._kept.clear()
        self._held = 0


class Shelves:
    """One set of shelves for all that one run reads."""

    def __init__(self) -> None:
        self.hours: Shelf[Any] = Shelf(HOURS_KEPT, len)
        self.days: Shelf[Mapping[int, Sequence[Any]]] = Shelf(GROUPS_KEPT, lambda _: 1)
        self._masks: dict[Masks, Masks] = {}

    def same(self, masks: Masks) -> Masks:
        """One object for all that are equal: most of a fleet was seen in the same hours."""
        return self._masks.setdefault(masks, masks)

    def clear(self) -> None:
        """Put everything away; what is kept knows these shelves, so that only a collection of garbage would free it."""
        self.hours.clear()
        self.days.clear()
