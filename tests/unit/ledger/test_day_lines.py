"""Lines added up are the same whatever the order and the cut, and corrections lead from what was booked to what is."""

from itertools import permutations

from hours_for_tests import PLACE, hour, hours, price, use
from hypothesis import given
from hypothesis import strategies as st

from core.units import HOUR_MS
from ledger.day_lines import REST, DayKey, DayLines, Row, added, differences
from ledger.line import Hour, Line, Terms, Use, terms_of
from ledger.lines import lines_of_hour
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


@given(st.lists(hours(), min_size=1, max_size=4), st.data())
def test_splitting_a_window_changes_nothing(cases: list[Case], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(cases)))
    assert _together(_rows(cases[:at]), _rows(cases[at:])) == _rows(cases)


@given(st.lists(hours(), min_size=2, max_size=3))
def test_the_order_of_hours_changes_nothing(cases: list[Case]) -> None:
    first, *others = [_rows(list(order)) for order in permutations(cases)]
    assert all(other == first for other in others)


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
