"""How often the replicas of a model are more than ENOVA's test asks for, hour by hour."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import Final

from advisor.estimators import enova
from advisor.serving import Serving
from core.days import HOURS, EngineDay
from core.evidence import EngineEvidence
from core.series import HourSeries


def quiet_ratio(group: Sequence[Serving]) -> float | None:
    """Share of the hours with two replicas or more in which ENOVA's test asks for fewer; None without a batch limit."""
    ceilings = [each.batch_ceiling for each in group]
    known = [ceiling for ceiling in ceilings if ceiling is not None]
    if len(known) < len(group):
        return None
    by_day: dict[int, _Together] = {}
    for each in group:
        for day in outlines_of(each.engine):
            by_day.setdefault(day.day_ms, _Together()).add(day)
    together = [minute for each in by_day.values() for minute in each.minutes()]
    quiet = sum(enova.is_quiet(minute, min(known)) for minute in together)
    return quiet / len(together) if together else None


def outlines_of(engine: EngineEvidence) -> Sequence[EngineDay]:
    """Its days for what they say of each hour; of stored ones no more than that is read."""
    hours = engine.hours
    return hours.outlines if isinstance(hours, HourSeries) else engine.days


ALL_SEEN: Final = (1,) * HOURS


@dataclass(slots=True)
class _Together:
    """The hours of one day of several replicas: their means over covered time added up, idle time included."""

    count: list[int] = field(default_factory=lambda: [0] * HOURS)
    running: list[float] = field(default_factory=lambda: [0.0] * HOURS)
    kv_used_ratio: list[float] = field(default_factory=lambda: [0.0] * HOURS)

    def add(self, day: EngineDay) -> None:
        """One replica's day; an hour that was not seen adds nothing to any of the three."""
        covered_s = day.covered_s
        seen = ALL_SEEN if all(covered_s) else map(bool, covered_s)
        self.count = list(map(add, self.count, seen))
        self.running = list(map(add, self.running, day.running_mean))
        self.kv_used_ratio = list(map(add, self.kv_used_ratio, day.kv_mean))

    def minutes(self) -> Iterator[enova.Minute]:
        """Hours of two replicas or more, each as one of ENOVA's windows."""
        for count, running, kv_used in zip(self.count, self.running, self.kv_used_ratio, strict=True):
            if count > 1:
                yield enova.Minute(0.0, running / count, kv_used / count)
