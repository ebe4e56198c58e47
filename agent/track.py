"""Readings of one GPU or engine on their way into intervals: order, gaps, and when an interval is complete."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final

from agent.frame import Frame

GAP_FLOOR_MS: Final = 5_000
"""Readings closer than this are never a gap: 1 Hz logs of real servers pause for up to 4 s under load."""
GAP_FACTOR: Final = 3
GAP_INTERVALS: Final = 15
"""Otherwise a gap is more than 3 × the median of the latest 15 distances between readings."""
FIRST_MS: Final = 120_000
"""Two readings alone cannot tell a cadence: they count as neighbours up to two minutes apart."""
LONGEST_MS: Final = 300_000
"""No two readings vouch for more than five minutes, whatever the cadence (Prometheus' own staleness limit)."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One interval with the readings that bear on it.

    Attributes:
        frame: times, weights, coverage.
        rows: values per reading of the frame.
        whole: every row has the same keys. keys: all keys of the rows.
        limit_ms: distance above which a gap was assumed.
    """

    frame: Frame
    rows: list[Mapping[str, float]]
    whole: bool
    keys: set[str]
    limit_ms: float

    def column(self, key: str) -> tuple[Frame, list[float]] | None:
        """Values of one key with the frame of the readings that have it; None when it says nothing here."""
        if self.whole:
            return self.frame, [row[key] for row in self.rows]
        frame = self.frame
        held = [i for i, row in enumerate(self.rows) if key in row]
        if not held:
            return None
        joined = [False] * len(held)
        for k in range(1, len(held)):
            before, here = held[k - 1], held[k]
            near = here - before == 1 or frame.times[here] - frame.times[before] <= self.limit_ms
            joined[k] = near and all(frame.joined[before + 1 : here + 1])
        own = Frame(frame.start, frame.end, [frame.times[i] for i in held], joined)
        if own.first == own.stop and not own.covered_ms:
            return None
        return own, [self.rows[i][key] for i in held]


class Track:
    """The readings of one GPU or engine since the border last passed.

    Attributes:
        refused: readings that were not later than the one before.
        gaps: distances that were too long to vouch for.
    """

    __slots__ = (
        "_joined",
        "_keys",
        "_recent",
        "_rows",
        "_span",
        "_start",
        "_times",
        "_whole",
        "gaps",
        "refused",
    )

    def __init__(self, span_ms: int) -> None:
        self._span = span_ms
        self._start = 0
        self._times: list[int] = []
        self._rows: list[Mapping[str, float]] = []
        self._joined: list[bool] = []
        self._keys: set[str] = set()
        self._whole = True
        self._recent: deque[int] = deque(maxlen=GAP_INTERVALS)
        self.refused = 0
        self.gaps = 0

    def add(self, ts_ms: int, values: Mapping[str, float | None]) -> list[Cut]:
        """Take one reading; returns the intervals it completes. Not later than the last one: refused."""
        times = self._times
        row = known(values)
        if times:
            distance = ts_ms - times[-1]
            if distance <= 0:
                self.refused += 1
                return []
            near = self._near(distance)
            if not near:
                self.gaps += 1
            if distance <= LONGEST_MS:
                self._recent.append(distance)
            self._joined.append(near)
            if row.keys() != self._keys:
                self._whole = False
                self._keys.update(row)
        else:
            self._joined.append(False)
            self._keys = set(row)
            self._start = ts_ms - ts_ms % self._span
        times.append(ts_ms)
        self._rows.append(row)
        if ts_ms < self._start + self._span:
            return []
        return self._roll()

    def flush(self) -> list[Cut]:
        """The intervals still open, as far as readings reach; the next reading starts anew."""
        cuts = []
        while self._times:
            cut = self._cut()
            if cut is not None:
                cuts.append(cut)
            if self._times[-1] < self._start + self._span:
                break
            self._advance()
        self._times, self._rows, self._joined = [], [], []
        self._keys, self._whole = set(), True
        self._recent.clear()
        return cuts

    def _near(self, distance: int) -> bool:
        if not self._recent:
            return distance <= FIRST_MS
        return distance <= GAP_FLOOR_MS or (distance <= LONGEST_MS and distance <= self._limit())

    def _limit(self) -> float:
        if not self._recent:
            return float(FIRST_MS)
        return max(GAP_FLOOR_MS, GAP_FACTOR * median(self._recent))

    def _roll(self) -> list[Cut]:
        cuts = []
        while self._times and self._times[-1] >= self._start + self._span:
            if not self._whole and not self._complete():
                break
            cut = self._cut()
            if cut is not None:
                cuts.append(cut)
            self._advance()
        return cuts

    def _complete(self) -> bool:
        """Whether nothing that is still to come can change the interval.

        Readings of one GPU from two logs alternate: a value's segment over the border then ends at a later
        reading than the first one beyond it.
        """
        end = self._start + self._span
        if self._times[-1] > end + self._limit():
            return True
        beyond: set[str] = set()
        for ts_ms, row in zip(reversed(self._times), reversed(self._rows), strict=True):
            if ts_ms < end:
                break
            beyond.update(row)
        return beyond >= self._keys

    def _cut(self) -> Cut | None:
        frame = Frame(self._start, self._start + self._span, self._times, self._joined)
        if frame.first == frame.stop and not frame.covered_ms:
            return None
        limit = 0.0 if self._whole else self._limit()
        return Cut(frame, self._rows, self._whole, self._keys, limit)

    def _advance(self) -> None:
        """Go to the next interval that readings touch; forget readings that no longer bear on anything."""
        times = self._times
        end = self._start + self._span
        following = bisect_left(times, end)
        keep = max(following - 1, 0)
        if following < len(times) and not self._joined[following]:
            self._start = times[following] - times[following] % self._span
            keep = following
        else:
            self._start = end
            if not self._whole:
                oldest = end - self._limit()
                while keep > 0 and times[keep - 1] >= oldest:
                    keep -= 1
        if keep:
            # New lists, not del: cuts that were handed out still read the old ones.
            self._times, self._rows = times[keep:], self._rows[keep:]
            self._joined = self._joined[keep:]
        if self._joined:
            self._joined[0] = False
        if not self._whole:
            self._keys = set().union(*self._rows)
            self._whole = all(row.keys() == self._keys for row in self._rows)


def median(values: Iterable[int]) -> float:
    """Middle value; the standard library's module for it costs the agent a megabyte of memory."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def known(values: Mapping[str, float | None]) -> Mapping[str, float]:
    """The values that are finite numbers; None, NaN and infinities are unknown and left out."""
    try:
        if isfinite(sum(values.values())):  # type: ignore[arg-type]
            return values  # type: ignore[return-value]
    except TypeError:  # None among them
        pass
    return {key: value for key, value in values.items() if value is not None and isfinite(value)}
