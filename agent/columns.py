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
OF_LINE: Final[Mapping[Fold, Callable[[list[float]], float]]] = {Fold.MAX: max, Fold.MIN: min}
"""Extremes of a reading whose mean is a metric too: of the line that the mean is taken of, with its ends, so that
min ≤ mean ≤ max holds."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is folded from one reading: by folders, and extremes of its line."""

    reading: str
    parts: tuple[tuple[str, Folder], ...]
    extremes: tuple[tuple[str, Callable[[list[float]], float]], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to fold from which reading."""

    steps: tuple[Step, ...]

    @classmethod
    def of(cls, metrics: Sequence[Metric], *, without: frozenset[str] = frozenset()) -> "Plan":
        """A plan for the metrics, less those that the caller folds itself."""
        means = {metric.reading for metric in metrics if metric.fold is Fold.MEAN}
        steps = []
        for reading in dict.fromkeys(metric.reading for metric in metrics):
            own = [m for m in metrics if m.reading == reading and m.name not in without]
            of_line = [m for m in own if m.fold in OF_LINE and reading in means]
            parts = tuple((m.name, FOLDERS[m.fold]) for m in own if m not in of_line)
            steps.append(Step(reading, parts, tuple((m.name, OF_LINE[m.fold]) for m in of_line)))
        return cls(tuple(step for step in steps if step.parts or step.extremes))

    def fold(self, cut: Cut) -> dict[str, float]:
        """Values of one interval by metric name; what no reading tells is absent."""
        values: dict[str, float] = {}
        for step, frame, column in self._columns(cut):
            still = column[0] if column.count(column[0]) == len(column) else None
            for name, folder in step.parts:
                if still is not None and folder is not Frame.increase:
                    values[name] = (
                        still  # limits, clocks, memory: any mean or extreme of one value is that value
                    )
                    continue
                value = folder(frame, column)
                if value is not None:
                    values[name] = value
            if step.extremes:
                line = frame.borders(column) if still is None else [still]
                if frame.first < frame.stop:
                    line += column[frame.first : frame.stop]
                for name, extreme in step.extremes:
                    values[name] = extreme(line)
        return values

    def _columns(self, cut: Cut) -> Iterator[tuple[Step, Frame, Sequence[float]]]:
        """The readings that tell something, each with what is folded from it."""
        steps = [step for step in self.steps if step.reading in cut.keys]
        if cut.whole and len(steps) > 1:  # all columns at once: a third of the time of one by one
            rows = map(itemgetter(*(step.reading for step in steps)), cut.rows)
            for step, column in zip(steps, zip(*rows, strict=True), strict=True):
                yield step, cut.frame, column
            return
        for step in steps:
            held = cut.column(step.reading)
            if held is not None:
                yield step, *held
