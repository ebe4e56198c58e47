"""Hours of the week in which nothing happens: 168 bins, a schedule of them, and its test on a week it has not seen.

    a bin is off when the p90 of activity is below 5 % in 3 of 4 weeks (of fewer weeks: in every one)
    saved = off hours − cold starts · T_cold

Source: advisor-rules R04. A sample counts as idle below 5 % busy, so "p90 below 5 %" is "idle for at least 90 % of the
hour": an hour's share of active time decides. Bins are hours of the week in UTC, 0 = Monday 00:00.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from core.finding import Range
from core.units import HOUR_MS, HOURS_PER_MONTH

WEEK_H: Final = 168
WEEKS_PER_MONTH: Final = HOURS_PER_MONTH / WEEK_H
MONDAY_H: Final = 72
"""The epoch began on a Thursday, three days after a Monday."""
FULL_WEEKS: Final = 4
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

Hour = tuple[int, float]
"""Start of a clock hour (UTC epoch ms) and the share of it in which something was active, 0–1."""


@dataclass(frozen=True, slots=True)
class Block:
    """Off hours in a row; may reach over the end of the week.

    Attributes:
        start: bin of the first hour. hours: how many.
    """

    start: int
    hours: int

    @property
    def end(self) -> int:
        """Bin in which work begins again."""
        return (self.start + self.hours) % WEEK_H


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a GPU can be off, every week.

    Attributes:
        blocks: by start. weeks: the fewest weeks behind any of its bins.
    """

    blocks: tuple[Block, ...]
    weeks: int

    @property
    def bins(self) -> frozenset[int]:
        """Every off hour of the week."""
        return frozenset((block.start + i) % WEEK_H for block in self.blocks for i in range(block.hours))

    @property
    def off_h(self) -> int:
        """Off hours a week."""
        return sum(block.hours for block in self.blocks)

    @property
    def starts(self) -> int:
        """Cold starts a week: one after each block, none when the whole week is off."""
        return 0 if self.off_h >= WEEK_H else len(self.blocks)


@dataclass(frozen=True, slots=True)
class BackTest:
    """What a schedule would have done in a week it was not made from.

    Attributes:
        off_h: hours it would have been off, of those that were seen. wrongly_off_min: minutes of work among them.
        seen_h: hours of that week with data.
    """

    off_h: float
    wrongly_off_min: float
    seen_h: float


def bin_of(hour_ms: int) -> int:
    """Hour of the week of a clock hour, 0 = Monday 00:00 UTC."""
    return (hour_ms // HOUR_MS + MONDAY_H) % WEEK_H


def weekly(hours: Iterable[Hour]) -> Mapping[int, Sequence[float]]:
    """Active shares by hour of the week, one per week seen."""
    bins: dict[int, list[float]] = {}
    for hour_ms, active in hours:
        index = (hour_ms // HOUR_MS + MONDAY_H) % WEEK_H
        if index in bins:
            bins[index].append(active)
        else:
            bins[index] = [active]
    return bins


def is_quiet(shares: Sequence[float], *, max_active: float, weeks_ratio: float) -> bool:
    """Off in enough of the weeks seen: ``weeks_ratio`` of four or more, all of fewer; never of none."""
    if len(shares) < FULL_WEEKS:
        return bool(shares) and max(shares) <= max_active
    idle = len([share for share in shares if share <= max_active])
    return idle >= ceil(weeks_ratio * len(shares) - 1e-9)


def schedule_of(
    hours: Iterable[Hour],
    *,
    min_weeks: int,
    max_active: float = 0.1,
    weeks_ratio: float = 0.75,
    min_block_h: int = 2,
) -> Schedule | None:
    """The hours of the week that were off, in blocks; None when there is no block.

    Args:
        hours: hours with data; a gap is left out and is never off.
        min_weeks: weeks that a bin must have been seen.
        max_active: share of an hour that may be active (0.1: p90 is idle).
        weeks_ratio: of four or more weeks, those that must be off.
        min_block_h: shorter blocks are not worth a start.
    """
    bins = weekly(hours)
    quiet = {
        index
        for index, shares in bins.items()
        if len(shares) >= min_weeks and is_quiet(shares, max_active=max_active, weeks_ratio=weeks_ratio)
    }
    blocks = tuple(block for block in blocks_of(quiet) if block.hours >= min_block_h)
    if not blocks:
        return None
    used = Schedule(blocks, 0).bins
    return Schedule(blocks, min(len(bins[index]) for index in used))


def blocks_of(bins: Iterable[int]) -> tuple[Block, ...]:
    """Neighbouring bins merged, around the end of the week as well; by start."""
    off = frozenset(bins)
    if len(off) >= WEEK_H:
        return (Block(0, WEEK_H),)
    blocks = []
    for start in sorted(index for index in off if (index - 1) % WEEK_H not in off):
        hours = 1
        while (start + hours) % WEEK_H in off:
            hours += 1
        blocks.append(Block(start, hours))
    return tuple(blocks)


def in_common(schedules: Sequence[Schedule], min_block_h: int = 2) -> Schedule | None:
    """When all of them are off: what a node can be off. None when never long enough, or for no schedule at all."""
    if not schedules:
        return None
    shared = frozenset.intersection(*(schedule.bins for schedule in schedules))
    blocks = tuple(block for block in blocks_of(shared) if block.hours >= min_block_h)
    return Schedule(blocks, min(schedule.weeks for schedule in schedules)) if blocks else None


def back_test(schedule: Schedule, hours: Iterable[Hour]) -> BackTest:
    """Run a schedule over hours it was not made from. An hour without data counts neither way."""
    bins = schedule.bins
    off = wrong = seen = 0.0
    for hour_ms, active in hours:
        seen += 1
        if bin_of(hour_ms) in bins:
            off += 1
            wrong += active * 60
    return BackTest(off, wrong, seen)


def saved_h_month(schedule: Schedule, cold_start_s: Range) -> Range:
    """GPU-hours a month that are off, less those spent starting again; never below 0."""

    def net(start_s: float) -> float:
        return max(0.0, schedule.off_h - schedule.starts * start_s / 3600) * WEEKS_PER_MONTH

    return Range(net(cold_start_s.p90), net(cold_start_s.p50), net(cold_start_s.p10))
