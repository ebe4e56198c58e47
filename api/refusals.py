"""What a check of given values says, for people: field, value, what to do."""

from collections.abc import Collection, Mapping
from typing import Any, Final

LONGEST: Final = 60


def sentence(item: Mapping[str, Any], whole: str = "price", without: Collection[str] = ()) -> str:
    """One error of pydantic as a sentence with the field's path and the value it got.

    Args:
        item: the error. whole: what to call the value as a whole. without: parts of the path that tell nothing.
    """
    if item["type"] == "json_invalid":
        return f"{whole}: no JSON at character {item['loc'][-1]} ({str(item['ctx']['error']).lower()}): correct it"
    if isinstance(item["input"], bytes):
        return f"{whole}: not read as JSON: send it with Content-Type: application/json"
    where = ".".join(str(part).rstrip("_") for part in item["loc"] if part not in without) or whole
    said = str(item["msg"])
    if item["type"] == "value_error":
        said = said.removeprefix("Value error, ")
        return said if said.startswith(f"{where} is ") else f"{where}: {said}"
    said = f"{said[:1].lower()}{said[1:]}"
    return f"{where}: {said}" if item["type"] == "missing" else f"{where} is {shown(item['input'])}: {said}"


def shown(value: object) -> str:
    """A value as it was given, cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
