"""What a metric is: its name with the unit in it, how readings of it are folded, and what it can be at all.

A *reading* is one value at one instant; a *sample* folds the readings of an interval. ``Metric.fold``
says how; ``Metric.of`` names the reading it folds when that is not its own name (``power_max_w`` folds
``power_w``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from sys import float_info
from typing import Final

from core.units import Unit


class Kind(StrEnum):
    """What the reading behind the metric is."""

    GAUGE = "gauge"
    COUNTER = "counter"
    """Grows for ever, falls only when it is reset (driver reload, engine restart)."""
    FLAGS = "flags"
    """A bit mask; folded with OR."""


class Fold(StrEnum):
    """How the readings of an interval become one value."""

    MEAN = "mean"
    """Mean over time (trapezoid between readings), never over the count of readings."""
    MAX = "max"
    MIN = "min"
    LAST = "last"
    DELTA = "delta"
    """Increase of a counter over the interval; a fall starts a new segment and adds nothing."""
    ANY = "any"
    """Bitwise OR."""


@dataclass(frozen=True, slots=True)
class Range:
    """What a reading can be at all, in base units, and why."""

    least: float
    most: float
    reason: str


_GROWING: Final = Range(0.0, float_info.max, "it counts from 0")
PLAUSIBLE: Final[Mapping[Unit, Range]] = {
    Unit.RATIO: Range(0.0, 1.0, "a share of a whole is between 0 and 1 (0 and 100 %)"),
    Unit.WATT: Range(0.0, 5_000.0, "a board draws between 0 and 5,000 W"),
    Unit.JOULE: _GROWING,
    Unit.BYTE: Range(0.0, 10e12, "a card has between 0 and 10 TB of memory"),
    Unit.BYTE_PER_SECOND: Range(0.0, 1e13, "the links of a card carry between 0 and 10 TB/s"),
    Unit.HERTZ: Range(0.0, 10e9, "a clock is between 0 and 10 GHz"),
    Unit.CELSIUS: Range(-50.0, 200.0, "a card that answers is between -50 and 200 °C"),
    Unit.SECOND: _GROWING,
    Unit.TOKEN: _GROWING,
    Unit.REQUEST: _GROWING,
    Unit.COUNT: _GROWING,
    Unit.FLAGS: Range(0.0, 2.0**64, "a bit mask has at most 64 bits"),
    Unit.INDEX: Range(0.0, 32.0, "a performance state is between 0 and 15 (32: unknown)"),
}
"""Wide on purpose: generous for cards to come, and far below what a broken sensor or a blank of 32 bits says."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: what it is called, what it means and where it comes from.

    Attributes:
        name: column, JSON field and reading key; ends in its unit.
        unit: base unit.
        kind: gauge, counter or flags.
        fold: how readings become a sample's value.
        help: one sentence for people.
        source: NVML call, with its raw unit.
        of: the reading folded, when it is not ``name``.
        dcgm: dcgm-exporter's field; ``dcgm_per_unit`` turns its figure into the base unit.
        smi: field of ``nvidia-smi --query-gpu`` (current name first, older ones after it); the unit is in its cell or header.
        dmon: column of ``nvidia-smi dmon``; the unit is in its second header line.
        exporter: name in nvidia_gpu_exporter's text (already in base units).
    """

    name: str
    unit: Unit
    kind: Kind
    fold: Fold
    help: str
    source: str
    of: str | None = None
    dcgm: str | None = None
    dcgm_per_unit: float = 1.0
    smi: tuple[str, ...] = ()
    dmon: str | None = None
    exporter: str | None = None

    def __post_init__(self) -> None:
        """Refuse a name that does not carry its unit."""
        if not self.name.endswith(f"_{self.unit.value}"):
            raise ValueError(f"metric {self.name!r} must end in _{self.unit.value}")

    @property
    def reading(self) -> str:
        """Key of the reading this metric is folded from."""
        return self.of or self.name

    @property
    def plausible(self) -> Range:
        """What its reading can be at all."""
        return PLAUSIBLE[self.unit]


def gauge(name: str, unit: Unit, help_: str, source: str, **more: object) -> Metric:
    """A metric read as a value at an instant; its mean over time unless ``fold`` says otherwise."""
    fold = more.pop("fold", Fold.MEAN)
    return Metric(name, unit, Kind.GAUGE, fold, help_, source, **more)  # type: ignore[arg-type]
