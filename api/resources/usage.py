"""GPU-hours: total › allocated › active › effective, and what is not known, by any key."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import fsum
from typing import Annotated, Final

from api.resources.book import Book, book_for
from api.resources.by import By
from api.resources.columns import about
from api.resources.gpu_slice import Slice
from api.resources.scope import Scope
from api.resources.slices import slices
from core.activity import Activity
from core.units import HOUR_MS

HOUR_S: Final = HOUR_MS / 1000
TOLERANCE_S: Final = 1e-6


@dataclass(frozen=True, slots=True)
class UsageRow:
    """GPU-hours of one group (design section 2)."""

    key: Annotated[
        str | None, about("Group; null: what cannot be said (no known workload, user, engine, owner).")
    ]
    label: Annotated[str, about("The group for people.")]
    total_gpu_h: Annotated[float, about("Hours from each GPU's first to its last sample, inside the window.")]
    allocated_gpu_h: Annotated[
        float | None, about("Hours a workload held the GPU; null when nothing could tell.")
    ]
    active_gpu_h: Annotated[
        float | None, about("Hours not empty and not parked; null when nothing could tell.")
    ]
    effective_gpu_h: Annotated[
        float | None,
        about("Hours known to have used the GPU well; null when none is and some cannot be told."),
    ]
    unknown_gpu_h: Annotated[float, about("Hours without samples, or whose activity could not be named.")]
    seconds_by_activity: Annotated[
        Mapping[str, float], about("Seconds by activity; the gap is part of unknown.")
    ]
    effective_unknown_gpu_h: Annotated[
        float, about("Active hours in which nothing could tell whether they were effective.")
    ]
    coverage_ratio: Annotated[float | None, about("Share of the total that samples vouch for.")]


@dataclass(slots=True)
class UsageSum:
    """Slices added up."""

    label: str = ""
    known_s: float = 0.0
    covered_s: float = 0.0
    allocated_s: float = 0.0
    active_s: float = 0.0
    effective_s: float = 0.0
    effective_unknown_s: float = 0.0
    seconds: dict[Activity, float] = field(default_factory=dict)

    def add(self, part: Slice) -> None:
        """Count one slice."""
        self.label = part.label
        self.known_s += part.known_s
        self.covered_s += part.covered_s
        self.allocated_s += part.allocated_s
        self.active_s += part.active_s
        self.effective_s += part.effective_s
        self.effective_unknown_s += part.effective_unknown_s
        for activity, s in part.seconds.items():
            self.seconds[activity] = self.seconds.get(activity, 0.0) + s

    @property
    def gap_s(self) -> float:
        """Known time without samples."""
        return max(0.0, self.known_s - self.covered_s)

    @property
    def named_s(self) -> float:
        """Time whose activity could be named."""
        return fsum(s for activity, s in self.seconds.items() if activity is not Activity.UNKNOWN)

    @property
    def effective_h(self) -> float | None:
        """Effective hours known; None where none is and active time remains that nothing can tell about: no 0 then."""
        if self.named_s <= 0 or (self.effective_s <= 0 and self.effective_unknown_s > TOLERANCE_S):
            return None
        return self.effective_s / HOUR_S

    def row(self, key: str | None) -> UsageRow:
        """The sum as a row."""
        named = self.named_s > 0
        seconds = {activity.value: s for activity, s in sorted(self.seconds.items()) if s > 0}
        if self.gap_s > TOLERANCE_S:
            seconds[Activity.UNKNOWN.value] = seconds.get(Activity.UNKNOWN.value, 0.0) + self.gap_s
        return UsageRow(
            key=key,
            label=self.label,
            total_gpu_h=self.known_s / HOUR_S,
            allocated_gpu_h=self.allocated_s / HOUR_S if named else None,
            active_gpu_h=self.active_s / HOUR_S if named else None,
            effective_gpu_h=self.effective_h,
            unknown_gpu_h=(self.gap_s + self.seconds.get(Activity.UNKNOWN, 0.0)) / HOUR_S,
            seconds_by_activity=seconds,
            effective_unknown_gpu_h=self.effective_unknown_s / HOUR_S,
            coverage_ratio=self.covered_s / self.known_s if self.known_s > 0 else None,
        )


def add_up(parts: Iterable[Slice]) -> dict[str | None, UsageSum]:
    """Slices by key."""
    sums: dict[str | None, UsageSum] = {}
    for part in parts:
        sums.setdefault(part.key, UsageSum()).add(part)
    return sums


def rows(scope: Scope, by: By = By.GPU, *, book: Book | None = None) -> list[UsageRow]:
    """GPU-hours by ``by``, ordered by key; the group that cannot be said comes last."""
    sums = add_up(slices(scope, book_for(scope, by, book), by))
    return [sums[key].row(key) for key in in_order(sums)]


def in_order(keys: Iterable[str | None]) -> list[str | None]:
    """Keys in text order, None last: the order that paging counts on."""
    return sorted(keys, key=lambda key: (key is None, key or ""))
