"""Cuts that go through lines: by activity, by engine. The parts add up to the line, to the whole number."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import add
from typing import Any, Final

from api.resources.report_parts import SPENT_MS, SPENT_USD, Amounts, OfGpu, Part, added
from core.activity import IDLE, Activity
from ledger.line import ACTIVE, ACTIVITIES, UNKNOWN
from ledger.whole_shares import split_whole

ALWAYS_EFFECTIVE: Final = (Activity.MEMORY_BOUND, Activity.COMPUTE_BOUND)
"""By their own thresholds (``core.activity``): DRAM ≥ 0.5, SM ≥ 0.5."""
OF_ENERGY: Final = ("energy_mj", "site_energy_mj", "energy_usd", "billed_energy_usd", "carbon_ug")


def divided(activities: Collection[Activity]) -> tuple[str, ...]:
    """Amounts of what ``energy_by_activity`` divides among these activities, in its order: of others there is no time."""
    spent = (SPENT_MS[at] for at, activity in enumerate(ACTIVITIES) if activity in activities)
    return (*OF_ENERGY, "energy_covered_ms", "energy_method", *spent)


def time_by_activity(part: Part, amounts: Mapping[str, int | None]) -> Iterator[tuple[Activity, Amounts]]:
    """One part per activity that took time, without energy; a gap is unknown.

    Time and money by activity are in the line. Effective time of lines that hold both ``mixed`` and ``busy`` cannot be
    told apart, and is unknown for both.
    """
    spent = [amounts.get(name) or 0 for name in SPENT_MS]
    is_gap, is_held = part.kind == "gap", part.kind == "workload"
    effective = _effective(amounts, spent)
    for at, ms in enumerate(spent):
        if ms <= 0:
            continue
        usd = amounts.get(SPENT_USD[at])
        known, unknown = effective.get(ACTIVITIES[at], (0, 0))
        held = is_held or (part.kind == "unattributed" and at != UNKNOWN)
        yield (
            ACTIVITIES[at],
            {
                "known_ms": ms,
                "covered_ms": 0 if is_gap else ms,
                "allocated_ms": ms if held else 0,
                "active_ms": ms if at in ACTIVE else 0,
                "effective_ms": known,
                "effective_unknown_ms": unknown,
                "cost_usd": usd,
                "idle_cost_usd": _idle(at, usd),
                "energy_covered_ms": 0,
                SPENT_MS[at]: ms,
                SPENT_USD[at]: usd,
            },
        )


Watts = Mapping[str, Mapping[Activity, float]]
_COVERED: Final = len(OF_ENERGY)
_METHOD: Final = _COVERED + 1
_SPENT: Final = _METHOD + 1
_Known = tuple[int, ...]
"""Places of the amounts that are known, in ``divided``."""
_ALL: Final[_Known] = tuple(range(_METHOD))


def energy_by_activity(
    found: Iterable[OfGpu], watts: Watts, activities: Collection[Activity], *, by_gpu: bool = False
) -> Iterator[tuple[str, int | None, Part, Activity, Amounts]]:
    """Energy, its money and carbon by activity; amounts are of ``divided``, and one activity may come more than once.

    Of each GPU they are divided by time × the mean power that it drew in each activity (``watts``, by UUID; where none
    is known evenly over time), each amount by itself to the whole number; then GPUs are added up, unless ``by_gpu``.
    """
    sums: dict[Any, tuple[Part, list[list[int] | None]]] = {}
    asked, columns = [one for one in ACTIVITIES if one in activities], divided(activities)
    times = range(_SPENT, len(columns))
    drawn = {uuid: [of.get(activity, 0.0) for activity in asked] for uuid, of in watts.items()}
    nothing = [0.0] * len(asked)
    for uuid, at_ms, rest, amounts in _together(found, columns):
        if amounts[0] is None:
            continue
        there = [at for at in times if (amounts[at] or 0) > 0]
        if not there:
            continue
        known = _ALL if None not in amounts[:_METHOD] else _known(amounts)
        key = (uuid if by_gpu else None, at_ms, id(rest), known, amounts[_METHOD])
        of = sums.get(key)
        if of is None:
            of = sums[key] = (rest, [None] * len(asked))
        if len(there) > 1:
            there, weights = _weights(amounts, there, drawn.get(uuid, nothing))
        if len(there) == 2:  # by far the most: work and rest
            _divide_in_two(of[1], there, weights, amounts, known)
        elif len(there) == 1:
            _add(of[1], there[0], [amounts[n] for n in known])
        else:
            _divide(of[1], there, weights, amounts, known)
    for (gpu, at_ms, _, known, method), (rest, by) in sums.items():
        names = [columns[n] for n in known]
        for activity, values in zip(asked, by, strict=True):
            if values is not None:
                told = dict(zip(names, values, strict=True)) | {"energy_method": method}
                yield gpu or "", at_ms, rest, activity, told


def _known(amounts: Sequence[Any]) -> _Known:
    return tuple(n for n in _ALL if amounts[n] is not None)


def _weights(
    amounts: Sequence[Any], there: list[int], drawn: Sequence[float]
) -> tuple[list[int], Sequence[int]]:
    """Activities that drew energy as far as that is known, and in which proportion."""
    weights = [round(amounts[at] * drawn[at - _SPENT]) for at in there]
    if all(weights):
        return there, weights
    if not any(weights):
        return there, [amounts[at] for at in there]
    drew = [(at, weight) for at, weight in zip(there, weights, strict=True) if weight]
    return [at for at, _ in drew], [weight for _, weight in drew]


def _divide_in_two(
    of: list[list[int] | None],
    there: Sequence[int],
    weights: Sequence[int],
    amounts: Sequence[Any],
    known: _Known,
) -> None:
    """``split_whole`` of each amount: the smaller part is rounded down, the larger has the rest."""
    more, less = there if weights[0] >= weights[1] else (there[1], there[0])
    smaller, whole = min(weights), weights[0] + weights[1]
    one, other = of[more - _SPENT], of[less - _SPENT]
    if one is None:
        one = of[more - _SPENT] = [0] * len(known)
    if other is None:
        other = of[less - _SPENT] = [0] * len(known)
    for at, n in enumerate(known):
        total = amounts[n]
        if n == _COVERED:  # time is divided by time
            first, second = split_whole(total, (amounts[more], amounts[less]))
            one[at] += first
            other[at] += second
        else:
            part = total * smaller // whole
            one[at] += total - part
            other[at] += part


def _divide(
    of: list[list[int] | None],
    there: Sequence[int],
    weights: Sequence[int],
    amounts: Sequence[Any],
    known: _Known,
) -> None:
    spent = [amounts[at] for at in there]
    parts = [split_whole(amounts[n], spent if n == _COVERED else weights) for n in known]
    for at, *part in zip(there, *parts, strict=True):
        _add(of, at, part)


def _add(of: list[list[int] | None], at: int, part: Sequence[int]) -> None:
    before = of[at - _SPENT]
    of[at - _SPENT] = list(part) if before is None else list(map(add, before, part))


def _together(found: Iterable[OfGpu], columns: Sequence[str]) -> Iterable[OfGpu]:
    """What came in several parts as one."""
    sums: dict[tuple[str, int | None, int], OfGpu] = {}
    for one in found:
        uuid, at_ms, rest, amounts = one
        key = (uuid, at_ms, id(rest))
        before = sums.get(key)
        if before is None:
            sums[key] = one
        else:
            sums[key] = (uuid, at_ms, rest, list(map(_sum, columns, before[3], amounts)))
    return sums.values()


def _sum(name: str, one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else added(name, one, other)


def _idle(at: int, usd: int | None) -> int | None:
    if usd is None or at == UNKNOWN:
        return None
    return usd if ACTIVITIES[at] in IDLE else 0


def _effective(amounts: Mapping[str, int | None], spent: Sequence[int]) -> dict[Activity, tuple[int, int]]:
    """Effective time and that which nothing can tell of, by activity."""
    by = dict(zip(ACTIVITIES, spent, strict=True))
    found = {activity: (by[activity], 0) for activity in ALWAYS_EFFECTIVE if by[activity]}
    rest = max(0, (amounts.get("effective_ms") or 0) - sum(known for known, _ in found.values()))
    mixed, busy = by[Activity.MIXED], by[Activity.BUSY]
    busy_unknown = min(busy, amounts.get("effective_unknown_ms") or 0)
    if mixed and busy > busy_unknown:
        return found | {Activity.MIXED: (0, mixed), Activity.BUSY: (0, busy)}
    if mixed:
        return found | {Activity.MIXED: (min(rest, mixed), 0), Activity.BUSY: (0, busy_unknown)}
    return found | {Activity.BUSY: (min(rest, busy), busy_unknown)}


def evenly(amounts: Mapping[str, int | None], count: int) -> list[Amounts]:
    """So many parts, as equal as whole numbers can be."""
    if count == 1:
        return [dict(amounts)]
    found: list[Amounts] = [{} for _ in range(count)]
    for name, total in amounts.items():
        whole = isinstance(total, int)
        shares = split_whole(total, [1] * count) if isinstance(total, int) and whole else [total] * count
        for part, share in zip(found, shares, strict=True):
            part[name] = share
    return found
