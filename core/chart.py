"""The points of a chart, packed: a fleet's findings are thousands, and few of their charts are looked at."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Self

_TIME: Final = ("kind", "series", "unit", "threshold")
_PROFILE: Final = ("kind", "series", "unit", "x_unit", "threshold")
_WHOLE: Final = "q"
_REAL: Final = "d"


class PackedChart(Mapping[str, Any]):
    """A chart as of ``core.finding.Finding``; each look at its ``series`` makes that anew."""

    __slots__ = ("_threshold", "_unit", "_values", "_x_unit", "_xs")

    def __init__(
        self,
        xs: Sequence[float],
        values: Sequence[float],
        unit: str,
        threshold: float | None,
        x_unit: str | None = None,
    ) -> None:
        """Pack points; numbers that are not all of one kind stay as they are, type and all.

        Args:
            xs: times in epoch milliseconds, or what ``x_unit`` says. values: one for each.
            unit: of the values. threshold: a value to draw a line at.
            x_unit: what it is over; None: over time.
        """
        self._xs = _packed(xs)
        self._values = _packed(values)
        self._unit = unit
        self._threshold = threshold
        self._x_unit = x_unit

    def with_points(self, xs: Sequence[float], values: Sequence[float]) -> Self:
        """The same chart of other points."""
        return type(self)(xs, values, self._unit, self._threshold, self._x_unit)

    def __getitem__(self, name: str) -> Any:
        """A part, by its name."""
        if name == "series":
            return list(map(list, zip(self._xs, self._values, strict=True)))
        if name == "kind":
            return "time" if self._x_unit is None else "profile"
        if name not in self._names():
            raise KeyError(name)
        return getattr(self, f"_{name}")

    def __iter__(self) -> Iterator[str]:
        """Names of the parts."""
        return iter(self._names())

    def __len__(self) -> int:
        """How many parts it has."""
        return len(self._names())

    def __repr__(self) -> str:
        """As a mapping."""
        return f"{type(self).__name__}({dict(self)!r})"

    def _names(self) -> tuple[str, ...]:
        return _TIME if self._x_unit is None else _PROFILE


def _packed(numbers: Sequence[float]) -> Sequence[float]:
    """As a range where they are whole and evenly apart, as hours without a gap are."""
    kinds = set(map(type, numbers))
    if kinds == {float}:
        return array(_REAL, numbers)
    if kinds != {int}:
        return list(numbers)
    whole: Any = numbers
    if len(whole) > 1 and (step := whole[1] - whole[0]) > 0:
        even = range(whole[0], whole[-1] + 1, step)
        if len(even) == len(whole) and list(even) == list(whole):
            return even
    return array(_WHOLE, whole)
