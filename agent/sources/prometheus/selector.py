"""Selectors of PromQL: a metric's name, what the user wants to match, and whose series."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

from core.errors import UsageError

_MATCHER: Final = re.compile(r'\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")\s*(?:,|$)')


def matchers_of(text: str) -> list[str]:
    """Matchers of ``{cluster="a",job=~"dcgm.*"}``, with or without the braces.

    Raises:
        UsageError: not such a selector.
    """
    inside = text.strip()
    if inside.startswith("{") and inside.endswith("}"):
        inside = inside[1:-1]
    found, place = [], 0
    while place < len(inside.rstrip()):
        one = _MATCHER.match(inside, place)
        if one is None:
            break
        found.append(f"{one[1]}{one[2]}{one[3]}")
        place = one.end()
    if not found or place < len(inside.rstrip()):
        raise UsageError(f'--match {text}: give label matchers such as cluster="a" or {{job=~"dcgm.*"}}')
    return found


def selector(name: str, matchers: Sequence[str]) -> str:
    """Series of one metric."""
    return f"{name}{{{','.join(matchers)}}}" if matchers else name


def of_names(names: Iterable[str], matchers: Sequence[str]) -> str:
    """Series of several metrics."""
    return f"{{{','.join([one_of('__name__', names), *matchers])}}}"


def one_of(label: str, values: Iterable[str]) -> str:
    """A matcher for any of some values of a label."""
    listed = list(values)
    if len(listed) == 1:
        return f"{label}={json.dumps(listed[0], ensure_ascii=False)}"
    # RE2 knows no escape of a letter, and Python's escapes none.
    return f"{label}=~{json.dumps('|'.join(map(re.escape, listed)), ensure_ascii=False)}"
