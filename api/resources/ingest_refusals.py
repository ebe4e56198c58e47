"""Why a delivery is refused: one sentence that names the field by its path, and what would be taken."""

import json
from collections.abc import Sequence
from typing import Any, Final

from pydantic import ValidationError

from api.resources.ingest_body import range_of
from core.errors import GpuwiseError
from core.metrics import BY_NAME

MOST_SHOWN: Final = 60
"""Characters of what was sent that a sentence repeats."""


class RefusedError(GpuwiseError):
    """A delivery is not taken; ``status`` says whether it may come again, ``retry_s`` when."""

    def __init__(self, status: int, sentence: str, *, retry_s: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.retry_s = retry_s


def invalid(sentence: str) -> RefusedError:
    """A refusal of what the body says."""
    return RefusedError(422, sentence)


def path_of(parts: Sequence[int | str]) -> str:
    """``gpu_samples[3].values.power_w``."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{_name(part)}"
    return text.removeprefix(".")


def shown(value: object) -> str:
    """A value as it stood in the JSON, cut to what a sentence can carry."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value, ensure_ascii=True, default=repr)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def sentence_of(error: ValidationError) -> str:
    """The first thing that is wrong with a body."""
    first = error.errors(include_url=False)[0]
    kind, place = first["type"], first["loc"]
    if kind == "json_invalid":
        return f"the body is no JSON: {first['ctx']['error']}"
    path = path_of(place)
    if not place:
        return f"the body is {shown(first['input'])}: send one object as in docs/openapi.json"
    if kind == "missing":
        return f"{path} is missing: it belongs in every {_row_of(place)}"
    if kind == "extra_forbidden":
        return _unknown_name(place, path)
    return f"{path} is {shown(first['input'])}: {_reason(place, kind, first)}"


def _unknown_name(place: Sequence[int | str], path: str) -> str:
    if len(place) > 1 and place[-2] == "values":
        return f"{path} is no metric that this server knows: see docs/metrics.md, or upgrade the server before its agents"
    return f"{path} is no field that this server knows: see docs/openapi.json, or upgrade the server before its agents"


def _reason(place: Sequence[int | str], kind: str, first: Any) -> str:
    metric = BY_NAME.get(str(place[-1])) if len(place) > 1 and place[-2] == "values" else None
    if metric is not None and kind in _OUT_OF_RANGE and _is_figure(first["input"]):
        return range_of(metric).reason
    if kind == "finite_number":
        return "a figure is finite; leave out what is unknown"
    if kind == "string_pattern_mismatch":
        return "it has characters that are not allowed there, or is too long"
    said = str(first["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return f"it {said}" if said.startswith("should") else said[:1].lower() + said[1:]


_OUT_OF_RANGE: Final = frozenset(
    {"less_than_equal", "greater_than_equal", "less_than", "greater_than", "finite_number"}
)


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and value == value and abs(value) != float("inf")  # noqa: PLR0124 - NaN


def _row_of(place: Sequence[int | str]) -> str:
    names = [part for part in place[:-1] if isinstance(part, str)]
    return f"row of {names[0]}" if names and isinstance(place[1], int) else (names or ["delivery"])[-1]


def _name(part: str) -> str:
    plain = part if part.isprintable() and part.isascii() else json.dumps(part)
    return plain if len(plain) <= MOST_SHOWN else f"{plain[:MOST_SHOWN]}…"
