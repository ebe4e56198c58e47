"""What a check of given values says, for people: field, value, what to do."""

from collections.abc import Collection, Mapping
from typing import Any, Final

LONGEST: Final = 60


def sentence(item: Mapping[str, Any], whole: str = "price", without: Collection[str] = ()) -> str:
    """One error of pydantic as a sentence with the field's path and the value it got.

    Args:
        item: the error. whole: what to call the value as a whole. without: parts of the path that tell nothing.
    """
    where = ".".join(str(part) for part in item["loc"] if part not in without) or whole
    said = str(item["msg"])
    if item["type"] == "value_error":
        return f"{where}: {said.removeprefix('Value error, ')}"
    said = f"{said[:1].lower()}{said[1:]}"
    if item["type"] in {"missing", "json_invalid"}:
        return f"{where}: {said}"
    return f"{where} is {shown(item['input'])}: {said}"


def shown(value: object) -> str:
    """A value as it was given, cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
