"""Faults that people are told of, and when a fault is worth another message. Standard library only."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from core.ownership import Owner

GROWN_RATIO: Final = 1.25
"""A figure that grew by a quarter since people were told is news."""


class FaultKind(StrEnum):
    """What is watched."""

    SILENT = "agent-silent"
    GPU = "gpu-unhealthy"
    STUCK = "stuck-job"
    BUDGET = "budget"
    RECOMMENDATION = "recommendation"


class Severity(IntEnum):
    """How bad, so that worse is greater."""

    NOTE = 1
    WARN = 2
    BAD = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong now.

    Attributes:
        key: the same fault however often it is found (``gpu-unhealthy:GPU-…``).
        title: a short sentence without its full stop. detail: what is known, in sentences.
        figure: what "it grew" is measured by (dollars, GPUs); None: nothing to count.
        path: of the page about it.
        gpu_uuids: GPUs it is about; empty: the fleet as a whole.
        owner: it is this owner's matter, whatever GPUs it is about.
        recommendation_id: it is what this recommendation says.
    """

    key: str
    kind: FaultKind
    severity: Severity
    title: str
    detail: str
    path: str
    figure: float | None = None
    gpu_uuids: tuple[str, ...] = ()
    owner: Owner | None = None
    recommendation_id: int | None = None


def has_grown(
    severity: int, figure: float | None, sent_severity: int | None, sent_figure: float | None
) -> bool:
    """Whether it is worse than people were told."""
    if sent_severity is not None and severity > sent_severity:
        return True
    if figure is None or sent_figure is None:
        return False
    return figure > 0 and figure >= sent_figure * GROWN_RATIO
