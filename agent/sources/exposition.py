"""Prometheus and OpenMetrics text: one line into series, value and time. Names and meanings are elsewhere."""

import re
from collections.abc import Mapping
from typing import Final

MILLISECONDS_FROM: Final = 1e11
"""A time stamp this large is in milliseconds (Prometheus text; as seconds it would be the year 5138), a smaller
one in seconds (OpenMetrics)."""

_LINE: Final = re.compile(
    r"""([a-zA-Z_:][\w:]*)                              # name
        (\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?             # labels, with quoted braces
        \s+(\S+)                                        # value
        (?:\s+(-?[\d.eE+]+))?                           # time stamp
        \s*(?:\#\s.*)?$                                 # exemplar
    """,
    re.VERBOSE,
)
_LABEL: Final = re.compile(r'\s*([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"n": "\n", "\\": "\\", '"': '"'}


class LineError(ValueError):
    """A line that cannot be read; the text says why."""


def split_line(line: str) -> tuple[str, str, str | None]:
    """A sample line as series text (name and labels), value and time stamp.

    The usual line is cut at its last brace; only one with an exemplar or odd spacing needs the full grammar.
    """
    if "#" not in line:
        close = line.rfind("}")
        if close > 0:
            rest = line[close + 1 :].split()
            series = line[: close + 1]
        else:
            rest = line.split()
            series = rest.pop(0) if rest else ""
        if len(rest) == 2:
            return series, rest[0], rest[1]
        if len(rest) == 1:
            return series, rest[0], None
    found = _LINE.match(line)
    if found is None:
        raise LineError("this is no line of Prometheus or OpenMetrics text")
    return found[1] + (found[2] or ""), found[3], found[4]


def name_of(series: str) -> str:
    """Metric name of a series text."""
    brace = series.find("{")
    return series if brace < 0 else series[:brace].rstrip()


def labels_of(series: str) -> Mapping[str, str]:
    """Labels of a series text, unescaped. Raises ``LineError`` when they are malformed."""
    brace = series.find("{")
    if brace < 0:
        return {}
    text = series[brace + 1 : series.rfind("}")].strip()
    labels = {}
    place = 0
    while place < len(text):
        found = _LABEL.match(text, place)
        if found is None:
            raise LineError(f"labels are malformed at {text[place : place + 30]!r}")
        value = found[2]
        labels[found[1]] = _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[0]), value) if "\\" in value else value
        place = found.end()
    return labels


def value_of(text: str) -> float:
    """The figure; ``NaN`` and ``+Inf`` are figures of this format. Raises ``LineError``."""
    try:
        return float(text)
    except ValueError:
        raise LineError(f"value {text!r} is not a number") from None


def ts_ms_of(text: str) -> int:
    """Epoch milliseconds of a time stamp, whichever unit it is in. Raises ``LineError``."""
    try:
        figure = float(text)
    except ValueError:
        raise LineError(f"time stamp {text!r} is not a number") from None
    if not 0 < figure < 1e14:
        raise LineError(f"time stamp {text!r} is no time since 1970")
    return round(figure) if figure >= MILLISECONDS_FROM else round(figure * 1000)
