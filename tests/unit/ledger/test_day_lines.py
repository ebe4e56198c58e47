"""Lines added up are the same whatever the order and the cut, and corrections lead from what was booked to what is."""

from itertools import pairwise, permutations
from typing import Any

from hours_for_tests import PLACE, hour, hours, price, use
from hypothesis import given
from hypothesis import settings as law
from hypothesis import strategies as st

from core.units import HOUR_MS
from ledger.day_lines import REST, DayKey, DayLines, Row, added, differences
from ledger.line import Hour, Line, Terms, Use, terms_of
from ledger.lines import lines_of_hour
from ledger.whole_shares import portions, split_whole
from store.models.ledger_day import LedgerDayRow

Case = tuple[Hour, list[Use], int, Terms]
TERMS = terms_of(price("2.50"), PLACE)


def _key(line: Line, day: int = 0) -> DayKey:
    rate = None if line.cost_usd is None else 1
    return DayKey(day, day, day + 1, 1, line.kind, line.workload, None, rate, 1)


def _rows(cases: list[Case]) -> dict[DayKey, Row]:
    lines = DayLines()
    for of, uses, known, terms in cases:
        for line in lines_of_hour(of, uses, known, terms):
            lines.add(_key(line), line)
    return dict(lines.rows())


def _together(*parts: dict[DayKey, Row]) -> dict[DayKey, Row]:
    keys = {key: None for part in parts for key in part}
    return {key: added([part[key] for part in parts if key in part]) for key in keys}


@law(max_examples=40)
@given(st.lists(hours(), min_size=1, max_size=4), st.data())
def test_splitting_a_window_changes_nothing(cases: list[Case], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(cases)))
    assert _together(_rows(cases[:at]), _rows(cases[at:])) == _rows(cases)


@law(max_examples=40)
@given(st.lists(hours(), min_size=2, max_size=3))
def test_the_order_of_hours_changes_nothing(cases: list[Case]) -> None:
    first, *others = [_rows(list(order)) for order in permutations(cases)]
    assert all(other == first for other in others)


@law(max_examples=40)
@given(st.lists(hours(), max_size=3), st.lists(hours(), max_size=3))
def test_what_was_booked_and_its_correction_are_what_is(before: list[Case], after: list[Case]) -> None:
    booked, fresh = _rows(before), _rows(after)
    corrected = _together(booked, differences(booked, fresh))
    for key in corrected:
        have, want = corrected[key], fresh.get(key)
        for name, value in zip(REST, have, strict=True):
            if name in {"share_method", "energy_method"}:
                continue
            expected = None if want is None else want[REST.index(name)]
            assert value == expected or (value == 0 and expected is None)
    assert not differences(corrected, fresh)


def test_a_change_books_the_difference_alone() -> None:
    booked = _rows([(hour(busy=3600.0), [use(1, 3600.0, 3600.0)], HOUR_MS, TERMS)])
    assert differences(booked, booked) == {}
    fresh = _rows([(hour(busy=3600.0), [use(2, 3600.0, 3600.0)], HOUR_MS, TERMS)])
    costs = {key[5]: row[REST.index("cost_usd")] for key, row in differences(booked, fresh).items()}
    assert costs == {1: -2_500_000, 2: 2_500_000}


def test_the_weakest_method_and_mixed_energy_are_kept() -> None:
    one = (hour(busy=3600.0, energy_j=1000.0), [use(1, 3600.0, 3600.0)], HOUR_MS, TERMS)
    measured = hour(busy=3600.0, energy_j=1000.0)._replace(energy_method="integrated")
    other = (measured, [use(1, 3600.0, 3600.0, share_method="even")], HOUR_MS, TERMS)
    (row,) = _rows([one, other]).values()
    assert (row[0], row[REST.index("energy_method")]) == ("even", "mixed")


def test_a_row_has_the_columns_of_the_table_in_their_order() -> None:
    columns = [column.name for column in LedgerDayRow.__table__.columns]
    keys = [
        f"{name}_id" if name in {"gpu", "workload", "owner", "rate", "place"} else name
        for name in DayKey._fields
    ]
    assert columns == ["id", *keys, "booking_id", *REST]


SHARES = st.lists(st.integers(0, 10**7), min_size=1, max_size=5).filter(any)


@given(st.integers(0, 10**9), SHARES)
def test_whole_shares_add_up_and_the_largest_has_the_rest(total: int, weights: list[int]) -> None:
    parts = split_whole(total, weights)
    floors = [total * weight // sum(weights) for weight in weights]
    assert sum(parts) == total
    largest = weights.index(max(weights))
    assert [part for at, part in enumerate(parts) if at != largest] == [
        floor for at, floor in enumerate(floors) if at != largest
    ]


@given(st.integers(0, 10**8), SHARES)
def test_portions_take_no_more_than_there_is(amount: int, weights: list[int]) -> None:
    parts = portions(amount, weights)
    assert sum(parts) == min(amount, sum(weights))
    assert all(0 <= part <= most for part, most in zip(parts, weights, strict=True))


@st.composite
def alone(draw: st.DrawFn) -> tuple[Hour, Use | None, Terms]:
    """A whole hour that one holder had, or nobody known."""
    of, _, _, terms = draw(hours())
    names = ("empty", "parked", "memory_bound", "busy")
    kind = draw(st.sampled_from(("held", "idle", "unattributed")))
    cut = sorted(draw(st.lists(st.integers(0, HOUR_MS), min_size=4, max_size=4)))
    ms = [after - before for before, after in pairwise([0, *cut])]
    if kind == "idle":
        ms = [HOUR_MS, 0, 0, 0]
    elif kind == "unattributed":
        ms[0] = 0
    named: dict[str, Any] = dict(zip(names, (part / 1000 for part in ms), strict=True))
    active = (ms[2] + ms[3]) / 1000
    whole = hour(
        **named,
        unknown=(HOUR_MS - sum(ms)) / 1000,
        energy_j=of.energy_j,
        effective_s=draw(st.floats(0, active)),
        effective_unknown_s=draw(st.floats(0, active)),
    )
    memory = draw(st.none() | st.floats(0, 1e15))
    return whole, use(7, 3600.0, active, memory_byte_s=memory) if kind == "held" else None, terms


@given(st.lists(alone(), min_size=1, max_size=3))
def test_an_hour_of_one_holder_counts_the_same_the_short_way(
    cases: list[tuple[Hour, Use | None, Terms]],
) -> None:
    short, long = DayLines(), DayLines()
    for whole, held, terms in cases:
        lines = lines_of_hour(whole, [] if held is None else [held], HOUR_MS, terms)
        (line,) = lines
        key = (line.kind, terms.micro_usd_per_hour is None)
        assert short.add_alone(key, whole, held, terms)
        long.add(key, line)
    assert short.rows() == long.rows()


def test_an_hour_of_several_lines_does_not_count_the_short_way() -> None:
    lines = DayLines()
    assert not lines.add_alone((), hour(empty=1800.0, busy=1800.0), None, TERMS)
    assert not lines.add_alone((), hour(busy=3599.0), None, TERMS)
    assert not lines.add_alone((), hour(busy=3600.0), use(1, 1800.0, 1800.0), TERMS)
    assert lines.rows() == {}
