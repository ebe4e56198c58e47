"""Key-value columns of FOCUS: JSON objects of plain values. Pure."""

import json
from collections.abc import Sequence


def flat_pairs(text: str) -> dict[str, str | float | bool | None] | None:
    """The pairs of a text; None where it is no JSON object, a key comes twice, or a value is an object or a list."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return None if any(isinstance(value, dict | list) for value in found.values()) else found


def _once(items: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(items)
    if len(found) != len(items):
        raise ValueError("a key comes twice")
    return found


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no JSON")
