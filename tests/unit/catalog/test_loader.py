"""Fact files: what a cell means, and the sentence that refuses a bad one."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from catalog.loader import Cells, first_day, read_rows
from core.errors import CatalogueError

COLUMNS = ("code", "value")


def _write(folder: Path, text: str | bytes) -> Path:
    path = folder / "facts.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _read(folder: Path, text: str | bytes) -> tuple[tuple[str, float | None], ...]:
    return read_rows(
        _write(folder, text),
        COLUMNS,
        lambda cells: (cells.text("code"), cells.number_or_none("value", high=100)),
        key=lambda row: row[0],
    )


def _cells(value: str) -> Cells:
    return Cells("facts.csv", 7, {"value": value})


def test_namibias_code_is_text_and_an_empty_cell_is_unknown(tmp_path: Path) -> None:
    assert _read(tmp_path, "code,value\nNA,1.5\nnull,\n") == (("NA", 1.5), ("null", None))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("code,value\na,1\nb,abc\n", "facts.csv line 3, column value: 'abc' is not a number"),
        ("code,value\na,nan\n", "facts.csv line 2, column value: 'nan' is not a plain number"),
        ("code,value\na,inf\n", "facts.csv line 2, column value: 'inf' is not a plain number"),
        ("code,value\na,1_0\n", "facts.csv line 2, column value: '1_0' is not a plain number"),
        ("code,value\na,101\n", "facts.csv line 2, column value: '101' is out of bounds"),
        ("code,value\na,-1\n", "facts.csv line 2, column value: '-1' is out of bounds"),
        ("code,value\n,1\n", "facts.csv line 2, column code: '' is empty"),
        ("code,value\na\n", "facts.csv line 2, column value: 1 cells under 2 headings"),
        ("code,value\na,1,2\n", "facts.csv line 2, column value: 3 cells under 2 headings"),
        ("code\na\n", "facts.csv line 1: column value is missing"),
        ("code,value\na,1\n\na,2\n", "facts.csv line 4: 'a' is on line 2 already"),
        ("", "facts.csv is empty"),
        (b"code,value\na,1\n\xff,2\n", "facts.csv line 3: not UTF-8"),
        ('code,value\n"a"b,1\n', "facts.csv line 2: "),
        ("code,value\na,none\n", "facts.csv line 2, column value: 'none' is not a number"),
    ],
)
def test_a_bad_row_is_refused_by_file_line_and_column(
    tmp_path: Path, text: str | bytes, sentence: str
) -> None:
    with pytest.raises(CatalogueError) as caught:
        _read(tmp_path, text)
    assert str(caught.value).startswith(sentence)


def test_every_refusal_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="give a plain number, or nothing for unknown"):
        _read(tmp_path, "code,value\na,many\n")


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"gone\.csv cannot be read"):
        read_rows(tmp_path / "gone.csv", COLUMNS, lambda cells: cells.text("code"))


def test_a_row_after_a_quoted_line_break_keeps_its_line(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"facts\.csv line 4, column value"):
        _read(tmp_path, 'code,value\n"a\nb",1\nc,x\n')


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    assert _read(tmp_path, b"\xef\xbb\xbfcode,value\r\na,1\r\n") == (("a", 1.0),)


def test_none_in_a_rate_is_not_in_the_hardware_and_empty_is_unknown() -> None:
    assert _cells("none").rate_or_none("value") == 0.0
    assert _cells("").rate_or_none("value") is None
    assert _cells("12.5").rate_or_none("value") == 12.5


def test_money_is_exact_and_more_than_nothing() -> None:
    assert _cells("0.526").money_or_none("value") == Decimal("0.526")
    assert _cells("").money_or_none("value") is None
    for text in ("0", "-1", "NaN", "free", "Infinity"):
        with pytest.raises(CatalogueError, match="line 7, column value"):
            _cells(text).money_or_none("value")


def test_whole_numbers_refuse_fractions_and_absence() -> None:
    assert _cells("8").whole("value") == 8
    assert _cells("").whole_or_none("value") is None
    for text in ("1.5", "", "x"):
        with pytest.raises(CatalogueError, match="column value"):
            _cells(text).whole("value")
    with pytest.raises(CatalogueError, match="is empty: give a number"):
        _cells("").number("value")


def test_words_and_choices() -> None:
    assert _cells("a; b;").words("value") == ("a", "b")
    assert _cells("").words("value") == ()
    assert _cells("").text_or_none("value") is None
    with pytest.raises(CatalogueError, match="use one of low, high"):
        _cells("medium").choice("value", ("low", "high"))


def test_a_reduced_date_is_its_first_day() -> None:
    assert first_day("2026") == date(2026, 1, 1)
    assert first_day("2026-09") == date(2026, 9, 1)
    assert first_day("2026-09-20") == date(2026, 9, 20)
    assert _cells("2026-09").day_text("value") == "2026-09"
    for text in ("2026-9", "2026-13", "2026-02-30", "09/20/2026", "", "2026-09-20T00:00"):
        with pytest.raises(CatalogueError, match="is not an ISO date"):
            _cells(text).day_text("value")
