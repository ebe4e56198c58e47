"""By which method a GPU is shared out among those who held it together. Standard library only."""

from enum import StrEnum
from typing import Final


class ShareMethod(StrEnum):
    """How a GPU's time is split among those who held it together, from strongest to weakest (cost-model 5)."""

    WHOLE = "whole"
    """Alone on the GPU."""
    MIG_SLICE = "mig_slice"
    """By the compute fraction of the card's slices; who shares a slice has it by memory, else evenly."""
    SM_TIME = "sm_time"
    """By each one's share of time with a kernel of its own."""
    MEMORY_TIME = "memory_time"
    """By memory × time."""
    EVEN = "even"
    """The figures for the wanted method are not known of all."""


SHARED_BY: Final = tuple(method for method in ShareMethod if method is not ShareMethod.WHOLE)
"""What a site may choose; where figures for it are missing it is ``even``."""
