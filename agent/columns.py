"""From the readings of an interval to its values, as ``core.metrics`` declares them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import itemgetter, or_
from typing import Final

from agent.frame import Frame
from agent.track import Cut
from core.metrics import Fold, Metric

Folder = Callable[[Frame, Sequence[float]], float | None]
Parts = tuple[tuple[str, Folder], ...]


def _max(frame: Frame, column: Sequence[float]) -> float:
    return max(frame.inside(column))


def _min(frame: Frame, column: Sequence[float]) -> float:
    return min(frame.inside(column))


def _max_of_line(frame: Frame, column: Sequence[float]) -> float:
    """Highest point of the line whose mean is another metric: with its ends, so that mean ≤ max holds."""
    if frame.first == frame.stop:
        return max(frame.borders(column))
    return max(*frame.borders(column), *frame.inside(column), column[frame.first])


def _min_of_line(frame: Frame, column: Sequence[float]) -> float:
    if frame.first == frame.stop:
        return min(frame.borders(column))
    return min(*frame.borders(column), *frame.inside(column), column[frame.first])


def _any(frame: Frame, column: Sequence[float]) -> float:
    if frame.first == frame.stop:
        return frame.last(column)
    return float(reduce(or_, map(int, frame.inside(column))))


FOLDERS: Final[Mapping[Fold, Folder]] = {
    Fold.MEAN: Frame.mean,
    Fold.MAX: _max,
    Fold.MIN: _min,
    Fold.LAST: Frame.last,
    Fold.ANY: _any,
    Fold.DELTA: Frame.increase,
}
OF_LINE: Final[Mapping[Fold, Folder]] = {Fold.MAX: _max_of_line, Fold.MIN: _min_of_line}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to fold from which reading."""

    steps: tuple[tuple[str, Parts], ...]

    @classmethod
    def of(cls, metrics: Sequence[Metric], *, without: frozenset[str] = frozenset()) -> "Plan":
        """A plan for the metrics, less those that the caller folds itself."""
        readings: dict[str, list[tuple[str, Folder]]] = {}
        means = {metric.reading for metric in metrics if metric.fold is Fold.MEAN}
        for metric in metrics:
            if metric.name in without:
                continue
            line = metric.reading in means and metric.fold in OF_LINE
            folder = OF_LINE[metric.fold] if line else FOLDERS[metric.fold]
            readings.setdefault(metric.reading, []).append((metric.name, folder))
        return cls(tuple((reading, tuple(parts)) for reading, parts in readings.items()))

    def fold(self, cut: Cut) -> dict[str, float]:
        """Values of one interval by metric name; what no reading tells is absent."""
        values: dict[str, float] = {}
        for parts, frame, column in self._columns(cut):
            still = column[0] if column.count(column[0]) == len(column) else None
            for name, folder in parts:
                if still is not None and folder is not Frame.increase:
                    values[name] = still  # limits, clocks, memory: any mean or extreme of one value is that value
                    continue
                value = folder(frame, column)
                if value is not None:
                    values[name] = value
        return values

    def _columns(self, cut: Cut) -> Iterator[tuple[Parts, Frame, Sequence[float]]]:
        """The readings that tell something, each with what is folded from it."""
        steps = [step for step in self.steps if step[0] in cut.keys]
        if cut.whole and len(steps) > 1:  # all columns at once: a third of the time of one by one
            rows = map(itemgetter(*(reading for reading, _parts in steps)), cut.rows)
            for (_reading, parts), column in zip(steps, zip(*rows, strict=True), strict=True):
                yield parts, cut.frame, column
            return
        for reading, parts in steps:
            held = cut.column(reading)
            if held is not None:
                yield parts, *held
