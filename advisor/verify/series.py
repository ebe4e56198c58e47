"""What a verification reads: outcome and load by the hour, what else happened, latencies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.verification import Ledger


@dataclass(frozen=True, slots=True)
class LoadHour:
    """One hour that telemetry vouches for; hours it does not are left out, never 0.

    Attributes:
        hour_ms: start. outcome: what was to fall, per hour: dollars, GPU-hours or kWh.
        loads: what was asked for in that hour, in the order of ``Case.load_names``; the last one is the output.
    """

    hour_ms: int
    outcome: float
    loads: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that resets the baseline: a driver, another model, a MIG layout."""

    at_ms: int
    sentence: str


@dataclass(frozen=True, slots=True)
class LatencyHour:
    """Sum and number of a latency in one hour."""

    hour_ms: int
    sum_s: float
    count: float


@dataclass(frozen=True, slots=True)
class Case:
    """One action, and what was measured around it.

    Attributes:
        ledger: what was to fall. predicted_p50: what the finding claimed of it a month; None: no figure.
        action_ms: when it was done. until_ms: end of what was measured.
        hours: treated GPUs together. load_names: of their loads.
        peers: untreated ones of the same kind together, with loads of their own (``peer_load_names``); empty: there are none.
        happenings: non-routine events of the treated, by time. latencies: by name.
        moved: that the treated work runs on other cards now, a sentence; None: it does not. Since when is not known.
    """

    ledger: Ledger
    predicted_p50: float | None
    action_ms: int
    until_ms: int
    hours: Sequence[LoadHour]
    load_names: tuple[str, ...] = ()
    peers: Sequence[LoadHour] = ()
    happenings: Sequence[Happening] = ()
    peer_load_names: tuple[str, ...] = ()
    moved: str | None = None
    latencies: Mapping[str, Sequence[LatencyHour]] = field(default_factory=dict)
