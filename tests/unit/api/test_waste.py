"""Kinds of waste of lines added up: what is known and nothing else, in hours where nothing is priced."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from api.resources.report_sum import LineSum
from api.resources.waste import WasteKind, total_usd, waste
from core.units import HOUR_MS

RATE = 2_000_000


def lines(*, priced: bool = True, **hours: float) -> LineSum:
    """Lines of so many hours in each column, at two dollars an hour."""
    made = LineSum(amounts={name: round(h * HOUR_MS) for name, h in hours.items()})
    if priced:
        made.amounts["cost_usd"] = 1
        for name, h in hours.items():
            made.rate_steps[RATE, name] = round(h * HOUR_MS)
            made.amounts[f"{name.removesuffix('_ms')}_usd"] = round(h * RATE)
    return made


def test_each_kind_has_its_hours_and_money() -> None:
    found = waste(
        lines(spinning_ms=1, empty_ms=10, parked_ms=4, active_ms=20, effective_ms=12, effective_unknown_ms=3)
    )
    assert [(one.kind, one.gpu_h, one.usd) for one in found] == [
        (WasteKind.BROKEN, 1.0, Decimal(2)),
        (WasteKind.UNOCCUPIED, 10.0, Decimal(20)),
        (WasteKind.IDLE, 4.0, Decimal(8)),
        (WasteKind.INEFFICIENT, 4.0, Decimal(8)),
    ]
    assert total_usd(found) == Decimal(38)


def test_without_a_price_there_are_hours_and_no_dollars() -> None:
    found = waste(lines(priced=False, empty_ms=10, active_ms=5, effective_ms=5))
    assert {one.usd for one in found} == {None}
    assert found[1].gpu_h == 10.0
    assert total_usd(found) is None


def test_active_time_that_nothing_could_judge_is_no_waste() -> None:
    (*_, inefficient) = waste(lines(active_ms=20, effective_ms=0, effective_unknown_ms=20))
    assert (inefficient.gpu_h, inefficient.usd) == (0.0, Decimal(0))


@given(*[st.integers(0, 1000)] * 5)
def test_waste_is_never_more_than_the_time_there_was(
    empty: int, parked: int, effective: int, dull: int, stuck: int
) -> None:
    active = effective + dull + stuck
    made = lines(
        empty_ms=empty, parked_ms=parked, active_ms=active, effective_ms=effective, spinning_ms=stuck
    )
    assert sum(one.gpu_h for one in waste(made)) == empty + parked + dull + stuck
