"""Rows for people."""

from typing import Any

import pytest

from api import formats
from gpuwise.commands import display
from gpuwise.commands.display import Column, figure, print_rows

COLUMNS = (Column("label", "GROUP"), figure("power_w", "POWER", formats.watts), Column("method", "METHOD"))
ROWS: list[dict[str, Any]] = [
    {"label": "GPU 0", "power_w": 70.0, "method": "counter"},
    {"label": "[red]GPU 11", "power_w": 12_345.0, "method": None},
]


def test_a_pipe_gets_columns_that_line_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, COLUMNS, empty="nothing")
    assert capsys.readouterr().out == (
        "GROUP          POWER  METHOD\nGPU 0           70 W  counter\n[red]GPU 11  12.3 kW  –\n"
    )


def test_a_terminal_gets_the_same_cells_and_no_markup_from_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(display.sys.stdout, "isatty", lambda: True)
    print_rows(ROWS, COLUMNS, empty="nothing")
    out = capsys.readouterr().out
    for text in ("GROUP", "[red]GPU 11", "12.3 kW", "counter", "–"):
        assert text in out


def test_no_rows_are_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([], COLUMNS, empty="No data in this window.")
    assert capsys.readouterr().out == "No data in this window.\n"
