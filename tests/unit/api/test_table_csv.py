"""Tables as CSV: what is written is read back exactly, and no spreadsheet runs it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.paging import FORMULA_STARTS
from api.resources.table_csv import bare, defused, read, written
from core.errors import UsageError

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
TRICKY = st.one_of(TEXTS, st.text("'=+-@\t\r\n,\"; 1.", max_size=8))


@given(st.lists(st.tuples(TRICKY, TRICKY), max_size=5))
def test_rows_come_back_exactly(rows: list[tuple[str, str]]) -> None:
    found = [cells for _, cells in read(written(("a", "b"), rows), ("a", "b"), ("a",))]
    expected = [{name: cell for name, cell in zip("ab", row, strict=True) if cell} for row in rows]
    assert found == [row for row in expected if row]


@given(TRICKY)
def test_no_cell_but_a_number_starts_a_formula(text: str) -> None:
    cell = defused(text)
    assert bare(cell) == text
    if cell.startswith(FORMULA_STARTS):
        float(cell)


@pytest.mark.parametrize(("mark", "marks"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_a_file_with_other_marks_than_commas_is_told_so(mark: str, marks: str) -> None:
    with pytest.raises(UsageError, match=f"line 1 has {marks} and no commas"):
        read(f"a{mark}b\n1{mark}2\n", ("a", "b"), ("a",))


def test_any_column_is_read_where_none_is_named() -> None:
    assert read("a,rack\n1,7\n", None, ("a",)) == [(2, {"a": "1", "rack": "7"})]
