"""How often the replicas of a model are more than ENOVA's test asks for, hour by hour.

The hours are added up chunk by chunk (``together``), so that no day of a fleet is read a second time. Sums in another
order may differ in the last bit: where that could decide, the hours are added up again in the replicas' own order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import Final, TypeAlias

from advisor.estimators import enova
from advisor.memo import OncePerEvidence
from advisor.replica_group import replica_key
from advisor.serving import Serving, servings
from core.days import HOURS, EngineDay
from core.evidence import EngineEvidence, Evidence
from core.series import HourSeries

NOISE: Final = 1e-9
"""Relative difference of sums in different orders, with much to spare: a hundred thousand additions make 1e-11."""


@dataclass(slots=True)
class Together:
    """The hours of one day of several replicas: their means over covered time added up, idle time included.

    Attributes:
        whole: replicas seen in every hour. count: the others that were seen, by hour.
        running, kv_used_ratio: sums of all of them, by hour.
    """

    whole: int = 0
    count: list[int] = field(default_factory=lambda: [0] * HOURS)
    running: list[float] = field(default_factory=lambda: [0.0] * HOURS)
    kv_used_ratio: list[float] = field(default_factory=lambda: [0.0] * HOURS)

    def add(self, day: EngineDay) -> None:
        """One replica's day; an hour that was not seen adds nothing to any of the three."""
        covered_s = day.covered_s
        if all(covered_s):
            self.whole += 1
        else:
            self.count = list(map(add, self.count, map(bool, covered_s)))
        self._add(day.running_mean, day.kv_mean)

    def join(self, other: "Together") -> None:
        """Other replicas' day."""
        self.whole += other.whole
        self.count = list(map(add, self.count, other.count))
        self._add(other.running, other.kv_used_ratio)

    def _add(self, running: Iterable[float], kv_used_ratio: Iterable[float]) -> None:
        self.running = list(map(add, self.running, running))
        self.kv_used_ratio = list(map(add, self.kv_used_ratio, kv_used_ratio))

    def minutes(self) -> Iterator[enova.Minute]:
        """Hours of two replicas or more, each as one of ENOVA's windows."""
        for partly, running, kv_used in zip(self.count, self.running, self.kv_used_ratio, strict=True):
            count = self.whole + partly
            if count > 1:
                yield enova.Minute(0.0, running / count, kv_used / count)


Days: TypeAlias = dict[int, Together]
"""By start of the day."""
Groups: TypeAlias = dict[tuple[object, ...], Days]
"""By what replicas have in common (``replica_key``)."""


def _together(evidence: Evidence) -> Groups:
    """Hours of all engines that worked in the window."""
    found: Groups = {}
    for serving in servings(evidence):
        if serving.engine.busy_s > 0:
            _add(found.setdefault(replica_key(serving), {}), serving.engine.days)
    return found


together = OncePerEvidence(_together)


def join(groups: Groups, others: Mapping[tuple[object, ...], Days]) -> None:
    """Add what another chunk has."""
    for key, days in others.items():
        mine = groups.setdefault(key, {})
        for day_ms, other in days.items():
            mine.setdefault(day_ms, Together()).join(other)


def quiet_ratio(evidence: Evidence, group: Sequence[Serving]) -> float | None:
    """Share of the hours with two replicas or more in which ENOVA's test asks for fewer; None without a batch limit.

    ``group`` are all replicas of the evidence that have a ``replica_key`` in common and worked.
    """
    ceilings = [each.batch_ceiling for each in group]
    known = [ceiling for ceiling in ceilings if ceiling is not None]
    if len(known) < len(group):
        return None
    minutes = _minutes(together(evidence).get(replica_key(group[0]), {}))
    if any(_is_close(minute, min(known)) for minute in minutes):
        in_order: Days = {}
        for each in group:
            _add(in_order, outlines_of(each.engine))
        minutes = _minutes(in_order)
    quiet = sum(enova.is_quiet(minute, min(known)) for minute in minutes)
    return quiet / len(minutes) if minutes else None


def outlines_of(engine: EngineEvidence) -> Sequence[EngineDay]:
    """Its days for what they say of each hour; of stored ones no more than that is read."""
    hours = engine.hours
    return hours.outlines if isinstance(hours, HourSeries) else engine.days


def _add(by_day: Days, days: Sequence[EngineDay]) -> None:
    for day in days:
        by_day.setdefault(day.day_ms, Together()).add(day)


def _minutes(by_day: Days) -> list[enova.Minute]:
    return [minute for each in by_day.values() for minute in each.minutes()]


def _is_close(minute: enova.Minute, max_num_seqs: float) -> bool:
    """So near to a threshold that the order of additions could decide."""
    return any(
        abs(value - limit) <= NOISE * (limit + 1)
        for value, limit in (
            (minute.kv_used_ratio, enova.KV_DOWN_RATIO),
            (minute.running, enova.RUNNING_DOWN_RATIO * max_num_seqs),
        )
    )
