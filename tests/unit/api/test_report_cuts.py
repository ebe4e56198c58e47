"""Cuts through lines: whatever the cut, the parts are the line, to the whole number."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from api.resources.report_cuts import by_activity, evenly
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
    return dict(by_activity(Part(kind=kind), amounts, WATTS))


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
