"""Hours of GPUs as the ledger reads them, for its laws: any mix of activities, holders, gaps and prices."""

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from core.evidence import Price
from core.place import Place
from core.units import HOUR_MS
from ledger.line import Hour, Terms, Use, terms_of

T0 = 1_791_158_400_000
"""2026-10-05T00:00:00Z."""
PLACE = Place(
    site="settings",
    usd_per_kwh=Decimal("0.12"),
    tariff="flat",
    is_time_of_use=False,
    pue=1.3,
    host_share_ratio=0.3,
    host_share_method="setting",
    carbon_g_per_kwh=383.5,
    carbon_code="USA",
    carbon_year=2024,
    carbon_method="life-cycle",
    pays_for_power=False,
)


def price(usd: str) -> Price:
    """A price of the user."""
    return Price(Decimal(usd), "your price", "on_demand", 8, "2026-09-01", from_user=True)


def hour(at: int = 0, **seconds: Any) -> Hour:
    """An hour with these seconds by activity; ``energy_j``, ``empty_j``, ``effective_s`` … by their names."""
    rest = {
        "effective_s": seconds.pop("effective_s", 0.0),
        "effective_unknown_s": seconds.pop("effective_unknown_s", 0.0),
        "energy_j": seconds.pop("energy_j", None),
        "empty_j": seconds.pop("empty_j", None),
    }
    covered_s = sum(seconds.values())
    known = rest["energy_j"] is not None
    named = {f"{name}_s": 0.0 for name in ("empty", "parked", "starved", "spinning")}
    named |= {f"{name}_s": 0.0 for name in ("memory_bound", "compute_bound", "mixed", "busy")}
    named |= {f"{name}_s": s for name, s in seconds.items() if name != "unknown"}
    return Hour(
        hour_ms=T0 + at * HOUR_MS,
        covered_s=covered_s,
        energy_method="counter" if known else None,
        energy_covered_s=covered_s if known else 0.0,
        **named,
        **rest,
    )


def use(workload: int = 1, allocated_s: float = 3600.0, active_s: float = 0.0, **more: Any) -> Use:
    """A workload's hour."""
    given = {"effective_s": 0.0, "memory_byte_s": None, "energy_j": None, "share_method": "whole"} | more
    return Use(workload, allocated_s, active_s, **given)


USD = st.decimals(min_value=0, max_value=400, places=6, allow_nan=False)
TERMS = st.builds(
    lambda usd, kwh, grid, pays: terms_of(
        None if usd is None else price(str(usd)),
        PLACE.__class__(
            **{
                name: getattr(PLACE, name)
                for name in PLACE.__slots__
                if name not in {"usd_per_kwh", "carbon_g_per_kwh", "pays_for_power"}
            },
            usd_per_kwh=kwh,
            carbon_g_per_kwh=grid,
            pays_for_power=pays,
        ),
    ),
    st.none() | USD,
    st.none() | st.decimals(min_value=0, max_value=1, places=4, allow_nan=False),
    st.none() | st.floats(0, 900),
    st.booleans(),
)


@st.composite
def hours(draw: st.DrawFn, at: int = 0) -> tuple[Hour, list[Use], int, Terms]:
    """An hour, who held it, how much of it is known, and what it costs. Holders never have more than there is."""
    cuts = draw(st.lists(st.integers(0, HOUR_MS), min_size=9, max_size=9))
    covered = draw(st.integers(0, HOUR_MS))
    whole = sum(cuts) or 1
    ms = [cut * covered // whole for cut in cuts]
    names = (
        "empty",
        "parked",
        "starved",
        "spinning",
        "memory_bound",
        "compute_bound",
        "mixed",
        "busy",
        "unknown",
    )
    seconds = {name: part / 1000 for name, part in zip(names, ms, strict=True)}
    active = sum(ms[2:8])
    effective = draw(st.integers(0, active))
    energy = draw(st.none() | st.integers(1, 2_000_000_000))
    held = draw(st.integers(0, sum(ms)))
    count = draw(st.integers(0, 4))
    shares = draw(st.lists(st.integers(1, 100), min_size=count, max_size=count))
    uses = []
    for number, share in enumerate(shares):
        allocated = held * share // sum(shares)
        worked = min(allocated, active * share // sum(shares))
        uses.append(
            use(
                number,
                allocated / 1000,
                worked / 1000,
                effective_s=draw(st.integers(0, worked)) / 1000,
                memory_byte_s=draw(st.none() | st.floats(0, 1e15)),
                energy_j=None
                if energy is None
                else draw(st.none() | st.just(energy * share // sum(shares) / 1000)),
                share_method=draw(st.sampled_from(("whole", "memory_time", "even"))),
            )
        )
    built = hour(
        at,
        **seconds,
        effective_s=effective / 1000,
        effective_unknown_s=draw(st.integers(0, active - effective)) / 1000,
        energy_j=None if energy is None else energy / 1000,
        empty_j=None if energy is None else draw(st.none() | st.just(energy / 4000)),
    )
    return built, uses, draw(st.integers(sum(ms), HOUR_MS)), draw(TERMS)
