"""Why a decode step was not fitted on an engine's own hours, in words: the conditions of ``decode_step.fit`` one by one."""

from collections.abc import Mapping

from advisor.estimators.decode_step import (
    FIT_MAX_ERROR,
    FIT_MIN_BATCH_S,
    FIT_MIN_BATCHES,
    FIT_MIN_SPREAD,
    FIT_MIN_TOTAL_S,
    fit,
)
from core.hours import BatchPoint
from core.percent import percent


def fit_refusal(profile: Mapping[float, BatchPoint]) -> str | None:
    """The first condition that an engine's batch profile does not meet; None where it can be fitted."""
    if fit(profile) is not None:
        return None
    kept = {
        batch: point.seconds
        for batch, point in profile.items()
        if batch >= 1 and point.seconds >= FIT_MIN_BATCH_S and point.generated_tokens > 0
    }
    if not kept:
        return f"no batch size was held for {FIT_MIN_BATCH_S:.0f} s with its tokens known"
    if len(kept) < FIT_MIN_BATCHES:
        sizes = ", ".join(f"{batch:g}" for batch in sorted(kept))
        return f"it ran at {len(kept)} batch size{'s' if len(kept) > 1 else ''} only ({sizes}): a line needs {FIT_MIN_BATCHES}"
    if sum(kept.values()) < FIT_MIN_TOTAL_S:
        return f"{sum(kept.values()):.0f} s of work are too few: {FIT_MIN_TOTAL_S:.0f} s are needed"
    if max(kept) < FIT_MIN_SPREAD * min(kept):
        return (
            f"its batches lie too close together ({min(kept):g} to {max(kept):g}): "
            f"the largest must be {FIT_MIN_SPREAD:g} times the smallest"
        )
    return (
        "its steps follow no line t = a + b·B with both above 0 "
        f"and residuals within {percent(FIT_MAX_ERROR)}: something else than the batch sets the pace"
    )
