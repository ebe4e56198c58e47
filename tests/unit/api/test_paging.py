"""Pages, cursors and CSV."""

import csv
import io
from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.paging import cell, cut, decode, encode, to_csv
from core.errors import UsageError


@dataclass(frozen=True)
class Row:
    key: str | None
    cost_usd: Decimal | None = None
    note: str = ""
    parts: dict[str, float] | None = None


@given(st.integers(0, 40), st.integers(1, 15))
def test_pages_together_are_the_whole_list_once(count: int, limit: int) -> None:
    rows = [Row(f"k{i:03}") for i in range(count)]
    seen: list[Row] = []
    cursor: str | None = None
    while True:
        kept, cursor = cut(rows, ("key",), limit, cursor)
        assert len(kept) <= limit
        seen += kept
        if cursor is None:
            break
    assert seen == rows


def test_a_row_without_key_can_be_a_cursor() -> None:
    rows = [Row("a"), Row(None)]
    _, cursor = cut([*rows, Row("z")], ("key",), 2, None)
    assert cursor is not None
    assert decode(cursor) == [None]
    assert cut([*rows, Row("z")], ("key",), 2, cursor) == ([Row("z")], None)


@pytest.mark.parametrize("cursor", ["%%%", "bm90IGpzb24", encode(["nobody"])])
def test_a_cursor_of_another_list_is_refused(cursor: str) -> None:
    with pytest.raises(UsageError, match="cursor"):
        cut([Row("a"), Row("b")], ("key",), 1, cursor)


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "\r=1"])
def test_formulas_reach_a_spreadsheet_as_text(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-12.50", "+3", "2026-10-05", "GPU-1", ""])
def test_figures_and_plain_text_stay_as_they_are(text: str) -> None:
    assert cell(text) == text


def test_csv_has_every_field_unknown_as_empty_and_nested_values_as_json() -> None:
    text = to_csv([Row(None, Decimal("1.5"), 'says "hi", twice', {"a": 1.0}), Row("b")], Row)
    assert list(csv.reader(io.StringIO(text))) == [
        ["key", "cost_usd", "note", "parts"],
        ["", "1.50", 'says "hi", twice', '{"a":1.0}'],
        ["b", "", "", ""],
    ]


def test_csv_of_nothing_still_names_its_columns() -> None:
    assert to_csv([], Row) == "key,cost_usd,note,parts\r\n"
