"""One line of exposition text."""

import pytest

from agent.sources.exposition import LineError, labels_of, split_line, ts_ms_of, value_of


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("up 1", ("up", "1", None)),
        ("up 1 1791187200.116", ("up", "1", "1791187200.116")),
        ('a{b="c"} 2.5 1791187200116', ('a{b="c"}', "2.5", "1791187200116")),
        ('a{b="}"}   -1e-3\t17', ('a{b="}"}', "-1e-3", "17")),
        ('a_bucket{le="1"} 3 17 # {trace="x}"} 0.5 16', ('a_bucket{le="1"}', "3", "17")),
        ('a{b="# x"} 3', ('a{b="# x"}', "3", None)),
        ("a{} NaN 17", ("a{}", "NaN", "17")),
    ],
)
def test_a_sample_line_is_cut_into_series_value_and_time(
    line: str, parts: tuple[str, str, str | None]
) -> None:
    assert split_line(line) == parts


def parsed(line: str) -> float:
    series, value, _stamp = split_line(line)
    labels_of(series)
    return value_of(value)


@pytest.mark.parametrize("line", ["a{b=c 1", "just some words here", "a{b='c'} 1 2 3", "{}"])
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(LineError):
        parsed(line)


def test_labels_are_unescaped() -> None:
    assert labels_of(r'a{x="q\"q", y="b\\n",z="n\nn",}') == {"x": 'q"q', "y": r"b\n", "z": "n\nn"}
    assert labels_of("a") == {}


def test_malformed_labels_are_refused() -> None:
    with pytest.raises(LineError, match="malformed"):
        labels_of('a{x=1,y="2"}')


def test_time_stamps_are_seconds_or_milliseconds_by_their_size() -> None:
    assert ts_ms_of("1791187200.116") == ts_ms_of("1791187200116") == 1_791_187_200_116
    for bad in ("0", "-5", "soon", "nan", "1e15"):
        with pytest.raises(LineError):
            ts_ms_of(bad)


def test_a_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(LineError, match="'1,5'"):
        value_of("1,5")
