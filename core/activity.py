"""What one sample was: the one pure function that names an activity, and the counters it looked at.

Thresholds are those of the advisor rules, section 4: an engineering default unless a source is given.
A name is only given to what was measured: kernels seen without SM or DRAM counters are ``busy``, a sample
without the reading that would decide is ``unknown``. One exception: PCIe traffic speaks against ``parked`` and
``spinning`` where it is read; where it is not, they are named without it, and the verdict's counters say so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from core.units import GIB


class Activity(StrEnum):
    """What a GPU was doing in one sample."""

    EMPTY = "empty"
    """No process computes, no memory to speak of."""
    PARKED = "parked"
    """Held by a process, however small, or by memory, and no work."""
    STARVED = "starved"
    """A job waits for input or host."""
    SPINNING = "spinning"
    """Kernels run, nothing moves: a stuck collective."""
    MEMORY_BOUND = "memory_bound"
    COMPUTE_BOUND = "compute_bound"
    MIXED = "mixed"
    BUSY = "busy"
    """Work seen, nature unknown because there are no counters."""
    UNKNOWN = "unknown"


IDLE: Final = frozenset({Activity.EMPTY, Activity.PARKED})
"""Neither holds work. ``active`` is everything measured that is not idle."""

IDLE_BUSY_RATIO: Final = 0.05
"""Below this a GPU does no work worth the name (advisor-rules 4.1: util.gpu < 5 %)."""
EMPTY_MEMORY_RATIO: Final = 0.02
"""Memory of an empty card stays below 2 % (4.1)."""
HELD_MEMORY_BYTES: Final = GIB
"""A process that holds less than 1 GiB is not a loaded model (4.1)."""
MOVING_PCIE_BYTES_PER_S: Final = 50e6
"""PCIe traffic of a job that waits for data (4.1: parked means < 50 MB/s)."""
PCIE: Final = ("pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s")
SPIN_BUSY_RATIO: Final = 0.95
SPIN_MEMORY_BUSY_RATIO: Final = 0.05
"""Stuck collective: util.gpu ≥ 95 % while util.mem ≤ 5 % (R27; real decode shows ≥ 55 % even at batch 1)."""
SPIN_POWER_SHARE: Final = 0.25
"""…and power within a quarter of the range between bare idle and the limit (R27)."""
BARE_IDLE_W: Final = 75.0
"""Bare idle of a data-centre card where its own floor is not learned yet (4.1: H200 about 74 W)."""
STARVED_LOW_RATIO: Final = 0.10
STARVED_HIGH_RATIO: Final = 0.70
"""Input-bound: mean 5–70 % with dips below 10 % in the interval (R16: bimodal samples)."""
MEMORY_BOUND_DRAM_RATIO: Final = 0.5
MEMORY_BOUND_TENSOR_RATIO: Final = 0.15
MEMORY_BOUND_SM_RATIO: Final = 0.3
"""Memory-bound: DRAM ≥ 0.5, tensor < 0.15, SM ≥ 0.3 (R06, GPM variant)."""
COMPUTE_BOUND_MATH_RATIO: Final = 0.4
COMPUTE_BOUND_SM_RATIO: Final = 0.8
"""Compute-bound: a math pipe ≥ 0.4 (2.3: MFU ≥ 0.4) with SM ≥ 0.5, or SM ≥ 0.8 with DRAM below 0.5."""
EFFECTIVE_SM_RATIO: Final = 0.5
EFFECTIVE_DRAM_RATIO: Final = 0.5
"""Effective hours: SM activity ≥ 0.5, or memory-bound with DRAM ≥ 0.5 (design section 2)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An activity and the counters that were looked at to name it."""

    activity: Activity
    counters: tuple[str, ...]


def classify(
    values: Mapping[str, float], *, memory_total_bytes: float | None, bare_idle_w: float | None = None
) -> Verdict:
    """Name what one sample was.

    Args:
        values: metrics of the sample by name, base units; absent is unknown.
        memory_total_bytes: the card's memory; None when unknown.
        bare_idle_w: the card's learned bare-idle power; None takes ``BARE_IDLE_W``.

    Returns:
        The activity with the names of the counters it rests on. ``unknown`` when neither ``busy_ratio`` nor
        ``sm_active_ratio`` was read, or when an idle card's memory is not known.
    """
    busy = values.get("busy_ratio")
    sm = values.get("sm_active_ratio")
    work = busy if busy is not None else sm
    if work is None:
        return Verdict(Activity.UNKNOWN, ())
    first = "busy_ratio" if busy is not None else "sm_active_ratio"
    if work < IDLE_BUSY_RATIO:
        return _without_work(values, first, memory_total_bytes)
    if _spins(values, bare_idle_w):
        looked_at = ("busy_ratio", "memory_busy_ratio", "power_w", "power_limit_w", *_read(values, PCIE))
        return Verdict(Activity.SPINNING, looked_at)
    low = values.get("busy_min_ratio")
    if (
        busy is not None
        and low is not None
        and busy <= STARVED_HIGH_RATIO
        and low < STARVED_LOW_RATIO
        and _alternates(values)
    ):
        return Verdict(Activity.STARVED, ("busy_ratio", "busy_min_ratio", "busy_max_ratio"))
    return _by_counters(values, first)


def _without_work(values: Mapping[str, float], first: str, memory_total_bytes: float | None) -> Verdict:
    """Empty, parked or starved.

    Known to have no process, a card is empty up to 1 GiB (a display, the driver's reserve) or 2 % of its memory;
    with processes unknown, below 2 %. A process with less than either and no work still parks it.
    """
    used = values.get("memory_used_bytes")
    processes = values.get("process_count")
    floor = EMPTY_MEMORY_RATIO * memory_total_bytes if memory_total_bytes else float(HELD_MEMORY_BYTES)
    if used is None and processes is None:
        return Verdict(Activity.UNKNOWN, (first,))
    counters = (first, *_read(values, ("memory_used_bytes", "process_count")))
    if processes == 0 and (used is None or used < max(floor, HELD_MEMORY_BYTES)):
        return Verdict(Activity.EMPTY, counters)
    looked_at = (*counters, *_read(values, PCIE))
    if _moves(values):
        return Verdict(Activity.STARVED, looked_at)
    if processes is None and used is not None and used < floor:
        return Verdict(Activity.EMPTY, looked_at)
    return Verdict(Activity.PARKED, looked_at)


def _read(values: Mapping[str, float], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name in values)


def _moves(values: Mapping[str, float]) -> bool:
    """PCIe traffic was read and is that of a job; False also where it is not read."""
    return max((values[name] for name in _read(values, PCIE)), default=0.0) >= MOVING_PCIE_BYTES_PER_S


def _spins(values: Mapping[str, float], bare_idle_w: float | None) -> bool:
    busy, memory_busy = values.get("busy_ratio"), values.get("memory_busy_ratio")
    power, limit = values.get("power_w"), values.get("power_limit_w")
    if busy is None or memory_busy is None or power is None or limit is None:
        return False
    bare = BARE_IDLE_W if bare_idle_w is None else bare_idle_w
    return (
        busy >= SPIN_BUSY_RATIO
        and memory_busy <= SPIN_MEMORY_BUSY_RATIO
        and power <= bare + SPIN_POWER_SHARE * max(limit - bare, 0.0)
        and not _moves(values)
    )


def _alternates(values: Mapping[str, float]) -> bool:
    high = values.get("busy_max_ratio")
    return high is not None and high - values["busy_min_ratio"] >= 0.5


def _by_counters(values: Mapping[str, float], first: str) -> Verdict:
    sm, dram = values.get("sm_active_ratio"), values.get("dram_active_ratio")
    tensor, fp32 = values.get("tensor_active_ratio"), values.get("fp32_active_ratio")
    if sm is None or dram is None:
        return Verdict(Activity.BUSY, (first,))
    counters = tuple(
        name
        for name in ("sm_active_ratio", "dram_active_ratio", "tensor_active_ratio", "fp32_active_ratio")
        if name in values
    )
    if (
        dram >= MEMORY_BOUND_DRAM_RATIO
        and sm >= MEMORY_BOUND_SM_RATIO
        and (tensor is None or tensor < MEMORY_BOUND_TENSOR_RATIO)
    ):
        return Verdict(Activity.MEMORY_BOUND, counters)
    math = max(tensor or 0.0, fp32 or 0.0)
    if sm >= EFFECTIVE_SM_RATIO and math >= COMPUTE_BOUND_MATH_RATIO:
        return Verdict(Activity.COMPUTE_BOUND, counters)
    if sm >= COMPUTE_BOUND_SM_RATIO and dram < MEMORY_BOUND_DRAM_RATIO:
        return Verdict(Activity.COMPUTE_BOUND, counters)
    return Verdict(Activity.MIXED, counters)


def is_allocated(activity: Activity) -> bool | None:
    """Whether a workload held the GPU; None when the sample cannot tell."""
    return None if activity is Activity.UNKNOWN else activity is not Activity.EMPTY


def is_active(activity: Activity) -> bool | None:
    """Whether work ran; None when the sample cannot tell."""
    return None if activity is Activity.UNKNOWN else activity not in IDLE


def is_effective(activity: Activity, values: Mapping[str, float]) -> bool | None:
    """Whether the work used the GPU well (design section 2); None where nothing can tell.

    Idle, starved and spinning time is not effective. Work without SM and DRAM counters is unknown here; an
    engine's rate may still decide it when the hour is rolled up.
    """
    if activity is Activity.UNKNOWN:
        return None
    if activity in IDLE or activity in {Activity.STARVED, Activity.SPINNING}:
        return False
    sm, dram = values.get("sm_active_ratio"), values.get("dram_active_ratio")
    if sm is not None and sm >= EFFECTIVE_SM_RATIO:
        return True
    if activity is Activity.MEMORY_BOUND and dram is not None and dram >= EFFECTIVE_DRAM_RATIO:
        return True
    return None if sm is None else False
