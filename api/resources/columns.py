"""Descriptions of row fields, as ``Annotated`` marks: said once, read by OpenAPI. Metrics bring the catalogue's sentence."""

from typing import Any

from pydantic import Field

from core.metrics import BY_NAME


def about(sentence: str) -> Any:
    """A field's description."""
    return Field(description=sentence)


def metric(name: str) -> Any:
    """The description of a metric of the catalogue."""
    return Field(description=BY_NAME[name].help)
