"""Descriptions of row fields: said once, read by OpenAPI. Metrics bring theirs from the catalogue."""

from dataclasses import field
from typing import Any

from core.metrics import BY_NAME


def about(sentence: str) -> Any:
    """A dataclass field with its description."""
    return field(metadata={"description": sentence})


def metric(name: str, *, note: str = "") -> Any:
    """A dataclass field that shows a metric of the catalogue, with the catalogue's sentence."""
    declared = BY_NAME[name]
    return field(metadata={"description": f"{declared.help} {note}".strip()})
