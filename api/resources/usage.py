"""GPU-hours: total › allocated › active › effective, and what is not known, by any key."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from api.resources.by import AskedBy, By, Keys, key_fields, keys_of
from api.resources.columns import about
from api.resources.report import Question, report
from api.resources.report_filters import NO_FILTERS, Filters
from api.resources.report_parts import SPENT_MS, USAGE
from api.resources.report_sum import LineSum, ratio
from api.resources.scope import Scope
from ledger.line import ACTIVITIES


@dataclass(frozen=True, slots=True)
class UsageRow:
    """GPU-hours of one group (design section 2)."""

    key: Annotated[
        str | None, about("Group; null: what cannot be said (no known workload, user, engine, owner).")
    ]
    label: Annotated[str, about("The group for people; of two keys both.")]
    total_gpu_h: Annotated[float, about("Hours from each GPU's first to its last sample, inside the window.")]
    allocated_gpu_h: Annotated[
        float | None, about("Hours a workload held the GPU; null when nothing could tell.")
    ]
    active_gpu_h: Annotated[
        float | None, about("Hours not empty and not parked; null when nothing could tell.")
    ]
    effective_gpu_h: Annotated[
        float | None,
        about("Hours known to have used the GPU well; null when none is and some cannot be told."),
    ]
    unknown_gpu_h: Annotated[float, about("Hours without samples, or whose activity could not be named.")]
    seconds_by_activity: Annotated[
        Mapping[str, float], about("Seconds by activity; the gap is part of unknown.")
    ]
    effective_unknown_gpu_h: Annotated[
        float, about("Active hours in which nothing could tell whether they were effective.")
    ]
    coverage_ratio: Annotated[float | None, about("Share of the total that samples vouch for.")]
    second_key: Annotated[str | None, about("Group by the second key; null: only one was asked for.")] = None
    keys: Annotated[Mapping[str, str | None], about("All, by the names of the keys.")] = field(
        default_factory=dict
    )


def row_of(key: tuple[str | None, ...], keys: Keys, one: LineSum) -> UsageRow:
    """A group as a row."""
    named = one.named_ms > 0
    effective_ms, unsaid_ms = one.whole("effective_ms"), one.whole("effective_unknown_ms")
    # No 0 where active time remains that nothing can tell about.
    can_tell = named and (effective_ms > 0 or unsaid_ms <= 0)
    seconds = {
        a.value: ms / 1000
        for a, name in zip(ACTIVITIES, SPENT_MS, strict=True)
        if (ms := one.whole(name)) > 0
    }
    return UsageRow(
        **key_fields(key, keys),
        label=one.label,
        total_gpu_h=one.hours("known_ms"),
        allocated_gpu_h=one.hours("allocated_ms") if named else None,
        active_gpu_h=one.hours("active_ms") if named else None,
        effective_gpu_h=one.hours("effective_ms") if can_tell else None,
        unknown_gpu_h=one.hours("unknown_ms"),
        seconds_by_activity=dict(sorted(seconds.items())),
        effective_unknown_gpu_h=one.hours("effective_unknown_ms"),
        coverage_ratio=ratio(one.whole("covered_ms"), one.whole("known_ms")),
    )


def rows(scope: Scope, by: AskedBy = By.GPU, filters: Filters = NO_FILTERS) -> list[UsageRow]:
    """GPU-hours by ``by``, ordered by key; the group that cannot be said comes last."""
    keys = keys_of(by)
    return [
        row_of(key, keys, one) for key, one in report(scope, Question(keys, USAGE, filters=filters)).items()
    ]
