"""Cuts that go through lines: by activity, by engine. The parts add up to the line, to the whole number."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from api.resources.report_parts import SPENT_MS, SPENT_USD, Amounts, Part
from core.activity import IDLE, Activity
from ledger.line import ACTIVE, ACTIVITIES, UNKNOWN
from ledger.whole_shares import split_whole

ALWAYS_EFFECTIVE: Final = (Activity.MEMORY_BOUND, Activity.COMPUTE_BOUND)
"""By their own thresholds (``core.activity``): DRAM ≥ 0.5, SM ≥ 0.5."""
OF_ENERGY: Final = ("energy_mj", "site_energy_mj", "energy_usd", "billed_energy_usd", "carbon_ug")


def by_activity(
    part: Part, amounts: Mapping[str, int | None], watts: Mapping[Activity, float]
) -> Iterator[tuple[Activity, Amounts]]:
    """One part per activity that took time; a gap is unknown.

    Time and money by activity are in the line. Its energy is divided by time × the mean power that the GPU drew in
    each activity (``watts``; where none is known evenly over time). Effective time of lines that hold both ``mixed``
    and ``busy`` cannot be told apart, and is unknown for both.
    """
    spent = [amounts.get(name) or 0 for name in SPENT_MS]
    there = [at for at, ms in enumerate(spent) if ms > 0]
    if not there:
        return
    is_gap, is_held = part.kind == "gap", part.kind == "workload"
    shares = _energy_shares(amounts, spent, there, watts)
    effective = _effective(amounts, spent)
    for at in there:
        ms, usd = spent[at], amounts.get(SPENT_USD[at])
        activity = ACTIVITIES[at]
        is_active = at in ACTIVE
        known, unknown = effective.get(activity, (0, 0))
        held = is_held or (part.kind == "unattributed" and at != UNKNOWN)
        yield (
            activity,
            {
                "known_ms": ms,
                "covered_ms": 0 if is_gap else ms,
                "allocated_ms": ms if held else 0,
                "active_ms": ms if is_active else 0,
                "effective_ms": known,
                "effective_unknown_ms": unknown,
                "cost_usd": usd,
                "idle_cost_usd": _idle(at, usd),
                "energy_method": None
                if shares[at].get("energy_mj") is None
                else amounts.get("energy_method"),
                **shares[at],
                SPENT_MS[at]: ms,
                SPENT_USD[at]: usd,
            },
        )


def _idle(at: int, usd: int | None) -> int | None:
    if usd is None or at == UNKNOWN:
        return None
    return usd if ACTIVITIES[at] in IDLE else 0


def _energy_shares(
    amounts: Mapping[str, int | None],
    spent: Sequence[int],
    there: Sequence[int],
    watts: Mapping[Activity, float],
) -> dict[int, Amounts]:
    """Energy, its money and carbon of each activity that is there; None where it drew none that is known."""
    found: dict[int, Amounts] = {at: {"energy_covered_ms": 0} for at in there}
    if amounts.get("energy_mj") is None:
        return found
    weights = [round(spent[at] * watts.get(ACTIVITIES[at], 0.0)) for at in there]
    if sum(weights) <= 0:
        weights = [spent[at] for at in there]
    for name in OF_ENERGY:
        total = amounts.get(name)
        shares = [None] * len(there) if total is None else split_whole(total, weights)
        for at, share, weight in zip(there, shares, weights, strict=True):
            found[at][name] = share if weight else None
    drew = [spent[at] if weight else 0 for at, weight in zip(there, weights, strict=True)]
    for at, ms in zip(there, split_whole(amounts.get("energy_covered_ms") or 0, drew), strict=True):
        found[at]["energy_covered_ms"] = ms
    return found


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
