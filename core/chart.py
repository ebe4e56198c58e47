"""The points of a chart over time, packed: a fleet's findings are thousands, and few of their charts are looked at."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_NAMES: Final = ("kind", "series", "unit", "threshold")
_WHOLE: Final = "q"
_REAL: Final = "d"


class TimeChart(Mapping[str, Any]):
    """A chart as of ``core.finding.Finding``: times in epoch milliseconds; each look at ``series`` makes it anew."""

    __slots__ = ("_threshold", "_times", "_unit", "_values")

    def __init__(
        self, times_ms: Sequence[int], values: Sequence[float], unit: str, threshold: float | None
    ) -> None:
        """Pack points, none without a value; values that are not all ``float`` stay as they are, type and all."""
        self._times: Sequence[int] = _packed_times(times_ms)
        self._values: Sequence[float] = (
            array(_REAL, values) if set(map(type, values)) <= {float} else list(values)
        )
        self._unit = unit
        self._threshold = threshold

    def __getitem__(self, name: str) -> Any:
        """A part, by its name."""
        if name == "series":
            return list(map(list, zip(self._times, self._values, strict=True)))
        if name == "kind":
            return "time"
        if name == "unit":
            return self._unit
        if name == "threshold":
            return self._threshold
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        """Names of the parts."""
        return iter(_NAMES)

    def __len__(self) -> int:
        """How many parts it has."""
        return len(_NAMES)

    def __repr__(self) -> str:
        """As a mapping."""
        return f"{type(self).__name__}({dict(self)!r})"


def _packed_times(times_ms: Sequence[int]) -> Sequence[int]:
    """As a range where they are evenly apart, as hours without a gap are."""
    if len(times_ms) > 1 and (step := times_ms[1] - times_ms[0]) > 0:
        even = range(times_ms[0], times_ms[-1] + 1, step)
        if len(even) == len(times_ms) and list(even) == list(times_ms):
            return even
    return array(_WHOLE, times_ms)
