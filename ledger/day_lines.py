"""Lines of hours added up into lines of accounting days, and what a correction of them is. Pure.

A row is a plain tuple in the order of ``ledger_day``'s columns: a key of ``KEYS`` values, then the rest. Amounts add:
unknown and unknown is unknown, unknown and something is what is known.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from core.hour_merge import WEAKEST_LAST
from core.samples import EnergyMethod
from core.units import HOUR_MS
from ledger.line import ACTIVITIES, EMPTY, PARKED, UNKNOWN, Line, Terms
from ledger.lines import energy_terms, whole_memory
from ledger.whole_shares import split_whole


class DayKey(NamedTuple):
    """What lines of a day have in common that are one row; ``owner``, ``rate`` and ``place`` are keys of theirs."""

    day_ms: int
    from_ms: int
    to_ms: int
    gpu: int
    kind: str
    workload: int | None
    owner: int | None
    rate: int | None
    place: int


K = TypeVar("K", bound=tuple[Any, ...])
Row = tuple[Any, ...]
"""Share method and amounts, in the order of ``REST``."""
AMOUNTS: Final = Line._fields[3:-1]
REST: Final = (
    "share_method",
    *AMOUNTS,
    *(f"{activity.value}_ms" for activity in ACTIVITIES),
    *(f"{activity.value}_usd" for activity in ACTIVITIES),
)
"""Columns of ``ledger_day`` after its key and ``booking_id``."""
_FIRST_AMOUNT: Final = 1
_METHOD: Final = REST.index("energy_method")
_SPENT: Final = 1 + len(AMOUNTS)
_COUNT: Final = len(ACTIVITIES)
_UNPRICED: Final = (None,) * _COUNT
_MAY_BE_UNKNOWN: Final = tuple(
    REST.index(name)
    for name in (
        "memory_byte_s",
        "energy_mj",
        "site_energy_mj",
        "cost_usd",
        "idle_cost_usd",
        "energy_usd",
        "billed_energy_usd",
        "carbon_ug",
    )
)
_BLANK: Final = (0, 0, 0, 0, 0, 0, None, None, 0, None, None, None, None, None, None, None, *[0] * _COUNT)
"""Of ``REST`` between the method and the money by activity: nothing is known yet. ``add_alone`` counts by place."""
_ALWAYS: Final = tuple(
    at for at in range(_FIRST_AMOUNT, _SPENT) if at != _METHOD and at not in _MAY_BE_UNKNOWN
)


class DayLines:
    """Lines added up by key."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: dict[tuple[Any, ...], list[Any]] = {}

    def add(self, key: tuple[Any, ...], line: Line) -> None:
        """Count a line; ``key`` is a ``DayKey`` or its values."""
        total = self._sums.get(key)
        if total is None:
            priced = line.cost_usd is not None
            total = [line[2], *line[3:-1], *[0] * _COUNT, *([0] * _COUNT if priced else _UNPRICED)]
            self._sums[key] = total
        else:
            for at in _ALWAYS:
                total[at] += line[at + 2]
            for at in _MAY_BE_UNKNOWN:
                value = line[at + 2]
                if value is not None:
                    total[at] = value if total[at] is None else total[at] + value
            if line.share_method != total[0]:
                total[0] = max(total[0], line.share_method, key=WEAKEST_LAST.index)
            if line.energy_method != total[_METHOD]:
                total[_METHOD] = _joined(total[_METHOD], line.energy_method)
        for activity, ms, micro in line.spent:
            total[_SPENT + activity] += ms
            if micro is not None:
                total[_SPENT + _COUNT + activity] += micro

    def add_alone(
        self, key: tuple[Any, ...], hour: Sequence[Any], use: Sequence[Any] | None, terms: Terms
    ) -> bool:
        """Count a whole hour that is all one holder's: what adding its one line comes to, in a fraction of the time.

        Nine of ten hours of a fleet are such. ``use`` None: the GPU's own line, for which ``hour`` is either all empty or
        not at all. False: the hour is not such, and nothing was counted (``ledger.lines`` knows them all).
        """
        if round(hour[1] * 1000) != HOUR_MS:
            return False
        took = [
            (at, ms) for at, seconds in enumerate(hour[2:10]) if seconds and (ms := round(seconds * 1000))
        ]
        unknown = HOUR_MS - sum([ms for _, ms in took])
        if unknown:
            if unknown < 0:
                return False
            took.append((UNKNOWN, unknown))
        rate, _, _, _, billed = terms
        if use is None:
            empty = took[0][1] if took[0][0] == EMPTY else 0
            if empty not in {0, HOUR_MS}:
                return False
            held, method, memory = (0 if empty else HOUR_MS - unknown), "whole", None
        else:
            if round(use[1] * 1000) < HOUR_MS:
                return False
            held, method, memory = HOUR_MS, use[6], use[4]
        total = self._sums.get(key)
        if total is None:
            total = [method, *_BLANK, *([0] * _COUNT if rate is not None else _UNPRICED)]
            self._sums[key] = total
        elif method != total[0]:
            total[0] = max(total[0], method, key=WEAKEST_LAST.index)
        # All in one place and by number, because it runs a million times for a month of a fleet.
        active = idle = 0
        if rate is None:
            costs: Sequence[int | None] = (None,) * len(took)
        elif len(took) == 1:
            costs = (rate,)
        else:
            costs = split_whole(rate, [ms for _, ms in took])
        for (activity, ms), micro in zip(took, costs, strict=True):
            total[17 + activity] += ms
            if PARKED < activity < UNKNOWN:
                active += ms
            if micro is not None:
                total[26 + activity] += micro
                if activity <= PARKED:
                    idle += micro
        if rate is not None:
            total[12] = (total[12] or 0) + rate
            if took[0][0] != UNKNOWN:
                total[13] = (total[13] or 0) + idle
        effective = min(round(hour[10] * 1000), active)
        total[1] += HOUR_MS
        total[2] += HOUR_MS
        total[3] += held
        total[4] += active
        total[5] += effective
        if hour[11]:
            total[6] += min(round(hour[11] * 1000), active - effective)
        if memory is not None:
            total[7] = (total[7] or 0.0) + whole_memory(memory)
        energy_j = hour[12]
        if energy_j is None:
            return True
        energy = round(energy_j * 1000)
        site, usd, carbon = energy_terms(energy, terms)
        total[8] = (total[8] or 0) + energy
        total[9] += min(round(hour[14] * 1000), HOUR_MS)
        if hour[13] != total[10]:
            total[10] = _joined(total[10], hour[13])
        total[11] = (total[11] or 0) + site
        if usd is not None:
            total[14] = (total[14] or 0) + usd
            if billed:
                total[15] = (total[15] or 0) + usd
        if carbon is not None:
            total[16] = (total[16] or 0) + carbon
        return True

    def rows(self) -> dict[tuple[Any, ...], Row]:
        """The sums by key, in the order in which keys first came."""
        return {key: tuple(total) for key, total in self._sums.items()}


def added(rows: Iterable[Row]) -> Row:
    """Rows of one key as one; at least one."""
    first, *others = rows
    total = list(first)
    for row in others:
        total[0] = max(total[0], row[0], key=WEAKEST_LAST.index)
        total[_METHOD] = _joined(total[_METHOD], row[_METHOD])
        for at in range(_FIRST_AMOUNT, len(total)):
            if at != _METHOD and row[at] is not None:
                total[at] = row[at] if total[at] is None else total[at] + row[at]
    return tuple(total)


def differences(booked: Mapping[K, Row], fresh: Mapping[K, Row]) -> dict[K, Row]:
    """What is to be booked so that ``booked`` adds up to ``fresh``: by key, where anything differs.

    An amount that was known and is not any more is taken back: what is left of it is 0.
    """
    found: dict[K, Row] = {}
    for key in [*fresh, *(key for key in booked if key not in fresh)]:
        new, old = fresh.get(key), booked.get(key)
        row = _difference(new, old)
        if row is not None:
            found[key] = row
    return found


def _difference(new: Row | None, old: Row | None) -> Row | None:
    if old is None:
        return new
    if new is None:
        nothing: list[Any] = [None] * len(old)
        nothing[0], nothing[_METHOD] = old[0], old[_METHOD]
        new = tuple(nothing)
    changed: list[Any] = [new[0], *[None] * (len(new) - 1)]
    differs = False
    for at in range(_FIRST_AMOUNT, len(new)):
        if at == _METHOD:
            changed[at] = new[at]
            continue
        have, want = old[at], new[at]
        if have is None and want is None:
            continue
        changed[at] = (want or 0) - (have or 0)
        differs |= changed[at] != 0 or have is None
    return tuple(changed) if differs else None


def _joined(one: str | None, other: str | None) -> str | None:
    if one is None or other is None or one == other:
        return one or other
    return EnergyMethod.MIXED.value
