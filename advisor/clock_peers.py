"""What SM clock cards of the same model run at under the same kind of load, when nothing holds them back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from advisor.gpu_work import hours_of, mean, memory_bound, recent_from_ms, whole_hours
from advisor.memo import OncePerEvidence
from core.evidence import Evidence, GpuEvidence
from core.hours import GpuHour

FREE_SLOWED_RATIO: Final = 0.02
"""An hour held back for less than this share by heat, brake or power cap shows the clock the card chooses itself."""
CAPPED_POWER_RATIO: Final = 0.95
"""Where the cap's own counter is unknown, power this near the limit means that the cap decides the clock."""
MIN_BUSY_RATIO: Final = 0.8
"""Under less load a card lowers its clock by itself."""


@dataclass(frozen=True, slots=True)
class Clocking:
    """A card's recent free hours under load: their mean clock, their covered time, the nature of the work."""

    clock_hz: float
    work_h: float
    bound: bool | None


@dataclass(frozen=True, slots=True)
class Look:
    """What a card's last days show of its clock: work at all, work that tells what held the clock back, free work."""

    worked: bool
    told: bool
    own: Clocking | None


@dataclass(frozen=True, slots=True)
class Peers:
    """Other cards of the model under the same kind of load: their median clock and how many they are."""

    clock_hz: float
    count: int


def knows_slowing(hour: GpuHour) -> bool:
    """The hour tells whether heat or a brake held the clocks back."""
    return hour.throttled_s is not None or hour.slowed_thermal_s is not None


def is_free(gpu: GpuEvidence, hour: GpuHour) -> bool:
    """Under load, with a known clock, and neither heat nor brake nor power cap held it back."""
    if hour.sm_clock_hz is None or not knows_slowing(hour) or (hour.busy_ratio or 0.0) < MIN_BUSY_RATIO:
        return False
    most_s = FREE_SLOWED_RATIO * hour.covered_s
    if max(hour.throttled_s or 0.0, hour.slowed_thermal_s or 0.0) > most_s:
        return False
    if hour.slowed_power_s is not None:
        return hour.slowed_power_s <= most_s
    limit = hour.power_limit_w if hour.power_limit_w is not None else gpu.identity.power_limit_default_w
    return hour.power_w is not None and limit is not None and hour.power_w < CAPPED_POWER_RATIO * limit


def recent_parts(evidence: Evidence, gpu: GpuEvidence) -> Sequence[GpuHour]:
    """Its last days (hours, where it has no days) at work throughout: the whole fleet is compared without its hours."""
    since_ms = recent_from_ms(evidence)
    return whole_hours(part for part in gpu.parts if part.hour_ms >= since_ms)


def free_parts(evidence: Evidence, gpu: GpuEvidence) -> Sequence[GpuHour]:
    """Those of them in which nothing held the clock back."""
    return [part for part in recent_parts(evidence, gpu) if is_free(gpu, part)]


def _look(evidence: Evidence, gpu: GpuEvidence) -> Look:
    lately = recent_parts(evidence, gpu)
    hours = [part for part in lately if is_free(gpu, part)]
    clock = mean(hours, "sm_clock_hz")
    return Look(
        worked=bool(lately),
        told=any(knows_slowing(part) and part.sm_clock_hz is not None for part in lately),
        own=None if clock is None else Clocking(clock, hours_of(hours), memory_bound(hours)),
    )


def _looks(evidence: Evidence) -> Mapping[str, Look]:
    """Every card by UUID."""
    return {gpu.gpu_uuid: _look(evidence, gpu) for gpu in evidence.gpus}


looks = OncePerEvidence(_looks)


def clocking(evidence: Evidence, gpu: GpuEvidence) -> Clocking | None:
    """The card's last days of free work; None without any."""
    return looks(evidence)[gpu.gpu_uuid].own


Kind = tuple[str, float | None, bool | None]


def _kind(gpu: GpuEvidence, own: Clocking) -> Kind | None:
    """Cards that can be compared: model, highest clock, and nature of the work."""
    model = gpu.gpu_key or gpu.identity.model
    return None if model is None else (model, gpu.identity.max_sm_clock_hz, own.bound)


def _by_kind(evidence: Evidence) -> Mapping[Kind, Peers]:
    """Median clock and number of the cards of each kind."""
    groups: dict[Kind, list[float]] = {}
    for gpu in evidence.gpus:
        own = clocking(evidence, gpu)
        kind = None if own is None else _kind(gpu, own)
        if own is not None and kind is not None:
            groups.setdefault(kind, []).append(own.clock_hz)
    return {kind: Peers(median(clocks), len(clocks)) for kind, clocks in groups.items()}


groups_of = OncePerEvidence(_by_kind)


def peers_of(evidence: Evidence, gpu: GpuEvidence) -> Peers | None:
    """The fleet's clock for this card's model and kind of load, itself among them; ``count`` leaves it out."""
    own = clocking(evidence, gpu)
    kind = None if own is None else _kind(gpu, own)
    whole = None if kind is None else groups_of(evidence).get(kind)
    return None if whole is None else Peers(whole.clock_hz, whole.count - 1)
