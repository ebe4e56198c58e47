"""What a check of given values says, for people: field, value, what to do."""

from collections.abc import Collection, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from core.errors import UsageError

Model = TypeVar("Model", bound=BaseModel)
LONGEST: Final = 60


def sentence(item: Mapping[str, Any], whole: str = "value", without: Collection[str] = ()) -> str:
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


def validated(model: type[Model], given: Mapping[str, Any], whole: str) -> Model:
    """A model from named values; ``whole``: what to call it in a refusal. Raises ``UsageError`` that names field and value."""
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise UsageError("; ".join(sentence(item, whole) for item in error.errors())) from error


def shown(value: object) -> str:
    """A value as it was given, cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
