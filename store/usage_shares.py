"""Who gets which share of a GPU in one interval, by a named method. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from core.readings import WorkloadKey
from core.sharing import ShareMethod

WHOLE: Final = ShareMethod.WHOLE.value
MIG_SLICE: Final = ShareMethod.MIG_SLICE.value
SM_TIME: Final = ShareMethod.SM_TIME.value
MEMORY_TIME: Final = ShareMethod.MEMORY_TIME.value
EVEN: Final = ShareMethod.EVEN.value
"""Plain text: the roll-up asks for them once for every sample of the fleet."""
TOLERANCE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Holder:
    """A workload on a GPU in one interval; None: not told.

    Attributes:
        workload: who. memory_bytes: what it held. busy_ratio: share of time with a kernel of its own.
        cpu_ratio, cpu_thread_ratio: of its processes, and of their busiest thread.
    """

    workload: WorkloadKey
    memory_bytes: float | None
    cpu_ratio: float | None = None
    cpu_thread_ratio: float | None = None
    busy_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class SliceHolders:
    """A MIG slice of the card: its share of the card's compute (0–1), and who held it by ``ts_ms``."""

    share: float
    holders: Mapping[int, Sequence[Holder]]


class Split(NamedTuple):
    """One interval shared out: the method for all, and who gets which ratio of it; they add up to 1.

    A holder None is what nobody used: with ``mig_slice`` alone.
    """

    method: str
    holders: list[Holder | None]
    ratios: list[float]


def by_figures(present: Sequence[Holder], wanted: ShareMethod) -> Split:
    """Shares of several holders, by memory unless time is wanted; evenly where a figure is missing, or that is wanted."""
    by_time = wanted is ShareMethod.SM_TIME
    ratios = None if wanted is ShareMethod.EVEN else _in_proportion(present, by_time=by_time)
    if ratios is None:
        return Split(EVEN, list(present), [1 / len(present)] * len(present))
    return Split(SM_TIME if by_time else MEMORY_TIME, list(present), ratios)


def by_slices(present: Sequence[Holder], ts_ms: int, slices: Sequence[SliceHolders]) -> Split | None:
    """Each slice to those who held it, the others to nobody.

    None where slices do not explain who was present on the card: somebody was in none of them, nobody was in any, or
    they exceed the card.
    """
    holders: list[Holder | None] = []
    ratios: list[float] = []
    placed: set[tuple[str | None, str, str]] = set()
    for one in slices:
        inside = one.holders.get(ts_ms, ())
        if inside:
            within = by_figures(inside, ShareMethod.MEMORY_TIME)
            holders += within.holders
            ratios += [one.share * ratio for ratio in within.ratios]
            placed.update(map(identity, inside))
    used = sum(ratios)
    if not holders or used > 1 + TOLERANCE or any(identity(holder) not in placed for holder in present):
        return None
    if used < 1 - TOLERANCE:
        holders.append(None)
        ratios.append(1 - used)
    return Split(MIG_SLICE, holders, ratios)


def _in_proportion(present: Sequence[Holder], *, by_time: bool) -> list[float] | None:
    """Shares by time or memory; None where somebody's is not known, or nobody has any."""
    figures = [holder.busy_ratio if by_time else holder.memory_bytes for holder in present]
    known = [figure for figure in figures if figure is not None]
    total = sum(known)
    if len(known) < len(present) or total <= 0:
        return None
    return [figure / total for figure in known]


def identity(holder: Holder) -> tuple[str | None, str, str]:
    """What makes a workload the same: name and attributes may change."""
    return holder.workload.host, holder.workload.kind, holder.workload.key
