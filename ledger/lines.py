"""One hour of one GPU as priced lines: who held it, what it cost, what of it was idle. The one place that prices. Pure.

    cost         = known time of the hour × USD per GPU-hour            (known: from the GPU's first to its last sample)
    site energy  = energy × (1 + host share) × PUE,   × tariff = its money,   × g/kWh = its carbon

Each amount is rounded once, here, for the whole hour, and then divided among the lines in whole milliseconds,
millijoules, micro-dollars and micrograms; what is left over goes to the largest. So every sum of lines is exact,
whatever the window, the grouping and the order. Sources: cost-model 2, 3, 5.

A workload's active time takes the mix of activities of the GPU's active time, its other time that of the time in which
the GPU was held without work. Time without samples is a line of its own, ``gap``: unknown, neither idle nor free.
Samples that run over the end of an hour, or over each other, make no hour longer than the clock says: they are scaled.
On a card in MIG slices, what nobody had of it is idle and empty, whatever the rest of the card did meanwhile.
"""

from collections.abc import Sequence
from typing import Any, Final

from core.sharing import ShareMethod
from core.units import HOUR_MS
from ledger.line import ACTIVE, EMPTY, NAMED, PARKED, UNKNOWN, Line, Terms
from ledger.whole_shares import portions, rounded_ratio, split_whole

MEMORY_UNIT: Final = 1 << 20
"""Memory × time is kept in whole MiB-seconds, so that sums of it are exact in floats too."""
MJ_PER_KWH: Final = 3_600_000_000
MIG_SLICE: Final = ShareMethod.MIG_SLICE.value
_NO_MONEY: Final = (None, None, None)


class _Part:
    """A line in the making: its time by activity, and its share of what the hour as a whole has."""

    __slots__ = (
        "active",
        "cost",
        "effective",
        "effective_unknown",
        "energy",
        "energy_covered",
        "kind",
        "memory",
        "method",
        "money",
        "ms",
        "spent",
        "workload",
    )
    workload: int | None
    method: str
    memory: float | None
    energy: int | None
    cost: int | None
    effective_unknown: int
    energy_covered: int
    money: tuple[int | None, ...]
    """Site energy, its money, its carbon."""

    def __init__(self, kind: str, spent: Sequence[int], use: Sequence[Any] | None = None) -> None:
        self.kind = kind
        self.spent = spent
        self.ms = sum(spent)
        self.active = self.ms - spent[EMPTY] - spent[PARKED] - spent[UNKNOWN]
        if use is None:
            self.workload, self.method, self.memory, self.effective, self.energy = (
                None,
                "whole",
                None,
                0,
                None,
            )
            return
        self.workload, _, _, effective_s, self.memory, energy_j, self.method = use[:7]
        self.effective = min(round(effective_s * 1000), self.active)
        self.energy = None if energy_j is None else round(energy_j * 1000)


def known_ms(hour_ms: int, first_ms: int, until_ms: int) -> int:
    """How much of an hour lies between a GPU's first and last sample."""
    return max(0, min(hour_ms + HOUR_MS, until_ms) - max(hour_ms, first_ms))


def lines_of_gap(gap_ms: int, terms: Terms) -> list[Line]:
    """Known time of which no sample tells: it costs, and nothing else is known of it."""
    return [_gap(gap_ms, _cost(gap_ms, terms))] if gap_ms > 0 else []


def lines_of_hour(hour: Sequence[Any], uses: Sequence[Sequence[Any]], known: int, terms: Terms) -> list[Line]:
    """Lines of one GPU's hour, the workloads' first.

    Args:
        hour: an ``Hour``. uses: ``Use`` of each known workload, in the order of their keys, then that of slices nobody used.
        known: milliseconds of the hour between the GPU's first and last sample.
        terms: price and place of the hour.
    """
    spent = [round(s * 1000) if s else 0 for s in hour[2:10]]
    covered, named = round(hour[1] * 1000), sum(spent)
    spent.append(max(0, covered - named))
    covered = sampled = max(covered, named)
    if covered == 0:
        return lines_of_gap(known, terms)
    if covered > known:
        covered = min(covered, known or HOUR_MS)
        spent = portions(covered, spent)
        scale = covered / sampled
        hour = (*hour[:10], hour[10] * scale, hour[11] * scale, *hour[12:])
    gap_ms = max(0, known - covered)
    parts = _parts(spent, covered, uses, _wanted(uses, sampled, covered))
    cost = _cost(covered + gap_ms, terms)
    if gap_ms == 0 and len(parts) == 1:
        _give_all(parts[0], hour, terms)
        parts[0].cost = cost
        return [_line(parts[0], hour[13], terms)]
    _divide(parts, hour, terms)
    costs: Sequence[int | None] = (
        [None] * (len(parts) + 1)
        if cost is None
        else split_whole(cost, [*[part.ms for part in parts], gap_ms])
    )
    for part, share in zip(parts, costs, strict=False):
        part.cost = share
    lines = [_line(part, hour[13], terms) for part in parts]
    if gap_ms:
        lines.append(_gap(gap_ms, costs[-1]))
    return lines


def _wanted(uses: Sequence[Sequence[Any]], sampled: int, covered: int) -> list[tuple[int, int]]:
    """Milliseconds that each use held, and was active: as told, or in proportion where that is more than there is."""
    told = [(round(use[1] * 1000), round(use[2] * 1000)) for use in uses]
    whole = sum([held for held, _ in told])
    most = covered if whole >= sampled else whole * covered // sampled
    if whole <= most:
        return told
    held = portions(most, [held for held, _ in told])
    return [(ms, active * ms // of if of else 0) for ms, (of, active) in zip(held, told, strict=True)]


def _parts(
    spent: list[int], covered: int, uses: Sequence[Sequence[Any]], wanted: Sequence[tuple[int, int]]
) -> list[_Part]:
    """The covered time divided among its holders, and the rest: held by nobody known, held by nobody."""
    parts: list[_Part] = []
    left = spent
    rest = covered
    for use, (want, active) in zip(uses, wanted, strict=True):
        if use[0] is None:
            return [*parts, *_of_slices(left, rest, active)]
        if not want or not rest:
            continue
        taken = left if want >= rest else _taken(left, want, active)
        left = [have - gone for have, gone in zip(left, taken, strict=True)]
        parts.append(_Part("workload", taken, use))
        rest -= parts[-1].ms
    if not rest:
        return parts
    empty = left[EMPTY]
    if rest > empty:
        parts.append(_Part("unattributed", [0, *left[1:]]))
    if empty:
        parts.append(_Part("idle", [empty, *[0] * NAMED]))
    return parts


def _of_slices(left: Sequence[int], rest: int, active: int) -> list[_Part]:
    """What is left of a card in slices: what somebody unknown was active in, and as empty what nobody used.

    The activities of an hour are the whole card's: a slice that nobody had was not busy because another was.
    """
    held = [0] * len(left)
    idle = rest - _take(held, left, ACTIVE, active)
    parts = [_Part("unattributed", held)] if idle < rest else []
    if idle:
        parts.append(_Part("idle", [idle, *[0] * NAMED]))
        parts[-1].method = MIG_SLICE
    return parts


def _taken(left: Sequence[int], want: int, active: int) -> list[int]:
    """What a workload takes of the time that is left: active as long as there is such, then held without work."""
    taken = [0] * len(left)
    got = _take(taken, left, ACTIVE, min(want, active))
    for pool in ((PARKED, UNKNOWN), (EMPTY,), ACTIVE):
        if got == want:
            break
        got += _take(taken, left, pool, want - got)
    return taken


def _take(taken: list[int], left: Sequence[int], pool: Sequence[int], amount: int) -> int:
    """Take at most ``amount`` of the activities of a pool, in proportion to what is left of them; how much it was."""
    free = [(at, left[at] - taken[at]) for at in pool if left[at] > taken[at]]
    if len(free) == 1:
        at, most = free[0]
        got = min(amount, most)
        taken[at] += got
        return got
    if not free or not amount:
        return 0
    got = 0
    for (at, _), ms in zip(free, portions(amount, [most for _, most in free]), strict=True):
        taken[at] += ms
        got += ms
    return got


def _give_all(part: _Part, hour: Sequence[Any], terms: Terms) -> None:
    """To the one part of an hour everything that the hour has."""
    part.effective = min(round(hour[10] * 1000), part.active)
    part.effective_unknown = min(round(hour[11] * 1000), part.active - part.effective)
    if hour[12] is None:
        part.energy, part.energy_covered, part.money = None, 0, _NO_MONEY
        return
    part.energy = round(hour[12] * 1000)
    part.energy_covered = min(round(hour[14] * 1000), part.ms)
    part.money = energy_terms(part.energy, terms)


def _divide(parts: Sequence[_Part], hour: Sequence[Any], terms: Terms) -> None:
    """Among the parts of an hour each of its totals."""
    active = sum([part.active for part in parts])
    effective = min(round(hour[10] * 1000), active)
    _fill(parts, effective)
    unsaid = min(round(hour[11] * 1000), active - effective)
    unknown = (
        portions(unsaid, [part.active - part.effective for part in parts]) if unsaid else [0] * len(parts)
    )
    energies = _energies(parts, hour)
    seen = portions(
        round(hour[14] * 1000),
        [part.ms if energy is not None else 0 for part, energy in zip(parts, energies, strict=True)],
    )
    weights = [energy or 0 for energy in energies]
    totals: Sequence[int | None] = energy_terms(sum(weights), terms) if any(weights) else _NO_MONEY
    shares = [[None] * len(parts) if total is None else split_whole(total, weights) for total in totals]
    for at, part in enumerate(parts):
        part.effective_unknown, part.energy, part.energy_covered = unknown[at], energies[at], seen[at]
        part.money = _NO_MONEY if part.energy is None else tuple([of[at] for of in shares])


def _fill(parts: Sequence[_Part], effective: int) -> None:
    """Have the effective time of all parts add up to the hour's: what workloads do not explain is the others'."""
    left = effective
    for part in parts:
        part.effective = min(part.effective, left)
        left -= part.effective
    if not left:
        return
    for part in sorted(parts, key=lambda part: part.workload is not None):
        more = min(left, part.active - part.effective)
        part.effective += more
        left -= more


def _energies(parts: Sequence[_Part], hour: Sequence[Any]) -> list[int | None]:
    """Energy of each part: the workloads' as measured, the rest on the GPU's own lines, empty time as it was measured."""
    if hour[12] is None:
        return [None] * len(parts)
    left = round(hour[12] * 1000)
    found: list[int | None] = []
    own = []
    for at, part in enumerate(parts):
        energy = None if part.energy is None else min(part.energy, left)
        found.append(energy)
        left -= energy or 0
        if part.workload is None:
            own.append(at)
    if left <= 0:
        return found
    if not own:
        largest = max(range(len(parts)), key=lambda at: parts[at].ms)
        found[largest] = (found[largest] or 0) + left
        return found
    if parts[own[-1]].method == MIG_SLICE:
        ours = split_whole(left, [parts[at].ms for at in own])
        for at, energy in zip(own, ours, strict=True):
            found[at] = energy or None
        return found
    if len(own) > 1 and hour[15] is not None:
        empty_ms = round(hour[2] * 1000)
        idle = min(left, round(hour[15] * 1000 * parts[own[1]].ms / empty_ms)) if empty_ms else 0
        found[own[1]] = idle or None
        left -= idle
    found[own[0]] = left or None
    return found


def energy_terms(energy: int, terms: Terms) -> tuple[int, int | None, int | None]:
    """Site energy in millijoules, its money in micro-dollars, its carbon in micrograms."""
    site = round(energy * terms.site_factor)
    tariff, grid = terms.micro_usd_per_kwh, terms.carbon_g_per_kwh
    return (
        site,
        None if tariff is None else rounded_ratio(site * tariff, MJ_PER_KWH),
        None if grid is None else round(site * grid * 1e6 / MJ_PER_KWH),
    )


def whole_memory(byte_s: float) -> float:
    """Byte-seconds in whole MiB-seconds."""
    return float(round(byte_s / MEMORY_UNIT) * MEMORY_UNIT)


def _cost(ms: int, terms: Terms) -> int | None:
    rate = terms.micro_usd_per_hour
    if rate is None:
        return None
    return rate if ms == HOUR_MS else rounded_ratio(rate * ms, HOUR_MS)


def _line(part: _Part, method: str | None, terms: Terms) -> Line:
    cost = part.cost
    took = [(at, ms) for at, ms in enumerate(part.spent) if ms]
    spent: tuple[tuple[int, int, int | None], ...]
    idle: int | None = None
    if cost is None:
        spent = tuple([(at, ms, None) for at, ms in took])
    else:
        usd = [cost] if len(took) == 1 else split_whole(cost, [ms for _, ms in took])
        spent = tuple([(at, ms, micro) for (at, ms), micro in zip(took, usd, strict=True)])
        if took[0][0] != UNKNOWN:
            idle = sum([micro for (at, _), micro in zip(took, usd, strict=True) if at in {EMPTY, PARKED}])
    site, energy_usd, carbon = part.money
    memory = part.memory
    unheld = part.spent[UNKNOWN] if part.workload is None else 0
    return Line(
        part.kind,
        part.workload,
        part.method,
        part.ms,
        part.ms,
        0 if part.kind == "idle" else part.ms - unheld,
        part.active,
        part.effective,
        part.effective_unknown,
        None if memory is None else whole_memory(memory),
        part.energy,
        part.energy_covered,
        None if part.energy is None else method,
        site,
        cost,
        idle,
        energy_usd,
        energy_usd if terms.pays_for_power else None,
        carbon,
        spent,
    )


def _gap(ms: int, cost: int | None) -> Line:
    unknown = (None, None, 0, None, None)
    return Line(
        "gap",
        None,
        "whole",
        ms,
        0,
        0,
        0,
        0,
        0,
        *unknown,
        cost,
        None,
        None,
        None,
        None,
        ((UNKNOWN, ms, cost),),
    )
