"""Cuts through lines: whatever the cut, the parts are the line, to the whole number."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from api.resources.report_cuts import (
    OF_ENERGY,
    divided,
    energy_by_activity,
    evenly,
    time_by_activity,
)
from api.resources.report_parts import SPENT_MS, SPENT_USD, Part
from core.activity import Activity

WATTS = {Activity.EMPTY: 70.0, Activity.PARKED: 100.0, Activity.BUSY: 400.0}
WHOLE = st.integers(0, 10**13)
SUMMED = (
    "known_ms",
    "cost_usd",
    "energy_mj",
    "site_energy_mj",
    "energy_usd",
    "carbon_ug",
    "energy_covered_ms",
)


def line(spent: dict[Activity, int], **amounts: Any) -> dict[str, Any]:
    """Amounts of a line that cost one micro-dollar a millisecond."""
    made: dict[str, Any] = dict.fromkeys(SPENT_MS, 0) | dict.fromkeys(SPENT_USD, 0)
    for activity, ms in spent.items():
        made[f"{activity.value}_ms"] = made[f"{activity.value}_usd"] = ms
    known = sum(spent.values())
    return made | {"known_ms": known, "covered_ms": known, "cost_usd": known} | amounts


def cut(amounts: dict[str, Any], kind: str = "workload") -> dict[Activity, dict[str, Any]]:
    part = Part(kind=kind)
    parts = dict(time_by_activity(part, amounts))
    of_gpu = ("gpu", None, part, [amounts.get(name) for name in divided(parts)])
    for _, _, rest, activity, energy in energy_by_activity([of_gpu], {"gpu": WATTS}, list(parts)):
        assert rest is part
        parts[activity] |= energy
    return parts


@given(
    st.dictionaries(st.sampled_from(list(Activity)), st.integers(1, 10**12), min_size=1),
    st.none() | WHOLE,
    WHOLE,
    WHOLE,
)
def test_activities_add_up_to_the_line(
    spent: dict[Activity, int], energy: int | None, usd: int, covered: int
) -> None:
    amounts = line(spent, energy_covered_ms=0 if energy is None else covered, energy_mj=energy)
    if energy is not None:
        amounts |= {"site_energy_mj": energy * 2, "energy_usd": usd, "carbon_ug": usd}
    parts = cut(amounts)
    for name in SUMMED:
        known = [part[name] for part in parts.values() if part.get(name) is not None]
        assert (sum(known) if known else None) == amounts.get(name), name
    assert all(
        part["effective_ms"] + part["effective_unknown_ms"] <= part["known_ms"] for part in parts.values()
    )


def test_energy_goes_where_power_was_drawn() -> None:
    parts = cut(
        line({Activity.PARKED: 1000, Activity.BUSY: 1000}, energy_mj=1_000_000, energy_covered_ms=2000)
    )
    assert {a: part["energy_mj"] for a, part in parts.items()} == {
        Activity.PARKED: 200_000,
        Activity.BUSY: 800_000,
    }


def test_idle_is_said_of_what_is_named_only() -> None:
    parts = cut(line(dict.fromkeys((Activity.EMPTY, Activity.BUSY, Activity.UNKNOWN), 1000)), "unattributed")
    assert {a: part["idle_cost_usd"] for a, part in parts.items()} == {
        Activity.EMPTY: 1000,
        Activity.BUSY: 0,
        Activity.UNKNOWN: None,
    }
    assert parts[Activity.UNKNOWN]["allocated_ms"] == 0


def test_a_gap_is_unknown_and_not_covered() -> None:
    (part,) = cut(line({Activity.UNKNOWN: 1000}), "gap").values()
    assert (part["known_ms"], part["covered_ms"], part["cost_usd"], part["idle_cost_usd"]) == (
        1000,
        0,
        1000,
        None,
    )


def test_what_mixed_and_busy_time_was_effective_cannot_be_told_apart() -> None:
    amounts = line(
        {Activity.MIXED: 100, Activity.BUSY: 100, Activity.COMPUTE_BOUND: 50},
        effective_ms=150,
        effective_unknown_ms=20,
    )
    parts = cut(amounts)
    assert {a: (p["effective_ms"], p["effective_unknown_ms"]) for a, p in parts.items()} == {
        Activity.COMPUTE_BOUND: (50, 0),
        Activity.MIXED: (0, 100),
        Activity.BUSY: (0, 100),
    }


@given(st.integers(1, 7), WHOLE)
def test_engines_share_to_the_last_whole_number(count: int, amount: int) -> None:
    parts = evenly({"known_ms": amount, "cost_usd": None, "energy_method": "counter"}, count)
    assert sum(part["known_ms"] for part in parts) == amount
    assert max(part["known_ms"] for part in parts) - min(part["known_ms"] for part in parts) < count
    assert [(part["cost_usd"], part["energy_method"]) for part in parts] == [(None, "counter")] * count


SPENT = st.dictionaries(st.sampled_from(list(Activity)), st.integers(1, 10**10), max_size=4)
AMOUNT = st.none() | st.integers(0, 10**13)


@st.composite
def of_gpus(draw: Any) -> list[tuple[str, int | None, Part, list[Any]]]:
    """Pieces of a few GPUs, some of the same one."""
    parts = [Part(kind="workload"), Part(kind="idle")]
    found = []
    for _ in range(draw(st.integers(1, 6))):
        spent = draw(SPENT)
        amounts = [draw(AMOUNT) for _ in OF_ENERGY]
        covered = draw(st.integers(0, 10**10))
        method = draw(st.sampled_from(["counter", "integrated", None]))
        times = [spent.get(activity, draw(st.sampled_from([0, None]))) for activity in Activity]
        found.append(
            (
                draw(st.sampled_from(["a", "b", "c"])),
                draw(st.sampled_from([None, 7])),
                draw(st.sampled_from(parts)),
                [*amounts, covered, method, *times],
            )
        )
    return found


def shares(total: int, weights: list[int]) -> list[int]:
    """Each rounded down, what is left to the largest."""
    parts = [total * weight // sum(weights) for weight in weights]
    parts[weights.index(max(weights))] += total - sum(parts)
    return parts


@given(
    of_gpus(),
    st.dictionaries(
        st.sampled_from(["a", "b"]),
        st.dictionaries(st.sampled_from(list(Activity)), st.floats(0, 900)),
        max_size=2,
    ),
)
def test_energy_of_many_gpus_is_divided_gpu_by_gpu(
    found: list[tuple[str, int | None, Part, list[Any]]], watts: dict[str, dict[Activity, float]]
) -> None:
    whole: dict[Any, list[Any]] = {}
    for uuid, at_ms, part, amounts in found:
        known = whole.setdefault((uuid, at_ms, part), [None] * len(OF_ENERGY) + [0] * (1 + len(Activity)))
        values = amounts[: len(OF_ENERGY) + 1] + amounts[len(OF_ENERGY) + 2 :]
        for n, value in enumerate(values):
            known[n] = known[n] if value is None else value + (known[n] or 0)
    wanted: dict[Any, int] = {}
    for (uuid, at_ms, part), (*of_energy, covered) in (
        (key, known[: len(OF_ENERGY) + 1]) for key, known in whole.items()
    ):
        times = dict(zip(Activity, whole[uuid, at_ms, part][len(OF_ENERGY) + 1 :], strict=True))
        there = [activity for activity in Activity if times[activity] > 0]
        if of_energy[0] is None or not there:
            continue
        weights = [round(times[one] * watts.get(uuid, {}).get(one, 0.0)) for one in there]
        if not any(weights):
            weights = [times[one] for one in there]
        drew = [times[one] if weight else 0 for one, weight in zip(there, weights, strict=True)]
        for name, total in zip(OF_ENERGY, of_energy, strict=True):
            for one, share, weight in zip(there, shares(total or 0, weights), weights, strict=True):
                if total is not None and weight:
                    wanted[at_ms, part, one, name] = wanted.get((at_ms, part, one, name), 0) + share
        for one, share, weight in zip(there, shares(covered, drew), weights, strict=True):
            if weight:
                key = (at_ms, part, one, "energy_covered_ms")
                wanted[key] = wanted.get(key, 0) + share
    given: dict[Any, int] = {}
    same = {part: part for _, _, part, _ in found}
    bare = [(uuid, at_ms, same[part], amounts) for uuid, at_ms, part, amounts in found]
    for _, at_ms, part, one, amounts in energy_by_activity(bare, watts, Activity):
        for name, value in amounts.items():
            if name != "energy_method":
                key = (at_ms, part, one, name)
                given[key] = given.get(key, 0) + value
    assert given == wanted
