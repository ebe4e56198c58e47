"""The time arithmetic of one interval: which parts of it readings vouch for, and means, extremes and increases over those parts."""

from bisect import bisect_left
from collections.abc import Sequence
from operator import mul, sub


class Frame:
    """Readings around one interval, and the weight each of them has in it.

    A segment between two readings counts when it is no gap. Where it crosses a border of the interval it is
    split there by linear interpolation, so that sums over all intervals equal the integral of the whole
    series.

    Attributes:
        start, end: the interval, epoch milliseconds.
        times: instants of the readings: those inside, and the neighbours that a segment reaches.
        joined: ``joined[i]`` says that the segment from reading ``i - 1`` to ``i`` counts.
        first, stop: ``times[first:stop]`` lie inside; equal where none does.
        weights: per reading, milliseconds; the integral of a column is the sum of weight × value.
        shares: per segment, the part of it that lies inside; 0 for a gap.
        covered_ms: time inside that segments cover.
    """

    __slots__ = ("covered_ms", "end", "first", "joined", "shares", "start", "stop", "times", "weights")

    def __init__(self, start: int, end: int, times: Sequence[int], joined: Sequence[bool]) -> None:
        self.start, self.end, self.times, self.joined = start, end, times, joined
        self.first, self.stop = bisect_left(times, start), bisect_left(times, end)
        weights = [0.0] * len(times)
        shares = []
        covered = 0
        before = times[0]
        for i in range(1, len(times)):
            here = times[i]
            if not joined[i]:
                shares.append(0.0)
            elif before >= start and here <= end:
                length = here - before
                weights[i - 1] += length / 2
                weights[i] += length / 2
                covered += length
                shares.append(1.0)
            else:
                low, high = max(before, start), min(here, end)
                length = max(high - low, 0)
                middle = ((low + high) / 2 - before) / (here - before)
                weights[i - 1] += length * (1 - middle)
                weights[i] += length * middle
                covered += length
                shares.append(length / (here - before))
            before = here
        self.weights, self.shares, self.covered_ms = weights, shares, covered

    def pieces(self) -> list[tuple[int, int, int]]:
        """Segments clipped to the interval: index of the later reading, start, end."""
        times, start, end = self.times, self.start, self.end
        return [
            (i + 1, max(times[i], start), min(times[i + 1], end))
            for i, share in enumerate(self.shares)
            if share > 0
        ]

    def integral(self, column: Sequence[float]) -> float:
        """Value × seconds over the covered part."""
        total: float = sum(map(mul, self.weights, column))
        return total / 1000

    def mean(self, column: Sequence[float]) -> float:
        """Mean over covered time; where none is covered, of the readings inside.

        Held within the readings' own range: rounding must not make a ratio of 1 a 1.0000000000000002.
        """
        if self.covered_ms:
            mean: float = sum(map(mul, self.weights, column)) / self.covered_ms
            return min(max(mean, min(column)), max(column))
        inside = column[self.first : self.stop]
        return sum(inside) / len(inside)

    def at(self, column: Sequence[float], i: int, instant: int) -> float:
        """Value on the segment that ends at reading ``i``."""
        before, here = self.times[i - 1], self.times[i]
        low = column[i - 1]
        return low + (column[i] - low) * ((instant - before) / (here - before))

    def borders(self, column: Sequence[float]) -> list[float]:
        """Values at the interval's ends, where a segment crosses them."""
        found = []
        first, stop = self.first, self.stop
        if 0 < first < len(self.times) and self.joined[first]:
            found.append(self.at(column, first, self.start))
        if 0 < stop < len(self.times) and self.joined[stop]:
            found.append(self.at(column, stop, self.end))
        return found

    def inside(self, column: Sequence[float]) -> Sequence[float]:
        """Readings inside; where there are none, those at both ends of the segment that passes through."""
        if self.first < self.stop:
            return column[self.first : self.stop]
        return column[max(self.first - 1, 0) : self.stop + 1]

    def last(self, column: Sequence[float]) -> float:
        """Latest reading inside; where there is none, the one before the interval."""
        return column[max(self.stop - 1, 0)]

    def increase(self, column: Sequence[float]) -> float | None:
        """Growth of a counter over the covered part; a fall adds nothing. None where no segment tells.

        A segment that a border splits gives each side its share of time.
        """
        steps = list(map(sub, column[1:], column))
        if steps and min(steps) < 0:
            whole = [
                (share, step) for share, step in zip(self.shares, steps, strict=True) if step >= 0 < share
            ]
            return sum(share * step for share, step in whole) if whole else None
        return sum(map(mul, self.shares, steps)) if self.covered_ms else None
