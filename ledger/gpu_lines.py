"""The hours of one GPU, one after the other, as priced lines: each for itself, or added up by day. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from core.evidence import Price
from core.place import Place
from core.units import HOUR_MS
from ledger.day_lines import DayLines
from ledger.line import Line, Terms
from ledger.lines import known_ms, lines_of_gap, lines_of_hour

Uses = Sequence[Sequence[Any]]
NOBODY: Uses = ()


class Stretch(NamedTuple):
    """Whole hours (start inclusive, end exclusive) in which price and place of a GPU, and owners, are the same."""

    from_ms: int
    to_ms: int
    price: Price | None
    place: Place
    terms: Terms


class GpuHours(NamedTuple):
    """What is known of one GPU.

    Attributes:
        hours, uses: ``Hour`` and ``Use`` by the start of their hours, the uses in the order of their workloads.
        first_ms, until_ms: its first and last sample; between them an hour without samples is a gap.
    """

    hours: Mapping[int, Sequence[Any]]
    uses: Mapping[int, Uses]
    first_ms: int
    until_ms: int


def gpu_lines(stretches: Sequence[Stretch], gpu: GpuHours) -> Iterator[tuple[int, Stretch, Line]]:
    """Start of the hour, its stretch, and each of its lines; hours outside the stretches are passed over."""
    for hour_ms, stretch, hour, known in _hours(stretches, gpu):
        if hour is None:
            found = lines_of_gap(known, stretch.terms)
        else:
            found = lines_of_hour(hour, gpu.uses.get(hour_ms, NOBODY), known, stretch.terms)
        for line in found:
            yield hour_ms, stretch, line


def add_gpu_lines(
    total: DayLines,
    stretches: Sequence[Stretch],
    gpu: GpuHours,
    key_of: Callable[[Stretch, str, int | None], tuple[Any, ...]],
) -> None:
    """The same lines, added up: by the key that ``key_of`` gives for a stretch, a kind and a workload."""
    last: Stretch | None = None
    keys: dict[int | str, tuple[Any, ...]] = {}

    def key(kind: str, workload: int | None) -> tuple[Any, ...]:
        found = keys.get(workload or kind)
        if found is None:
            assert last is not None
            found = keys[workload or kind] = key_of(last, kind, workload)
        return found

    uses_of = gpu.uses.get
    for hour_ms, stretch, hour, known in _hours(stretches, gpu):
        if stretch is not last:
            last, keys = stretch, {}
        if hour is None:
            for line in lines_of_gap(known, stretch.terms):
                total.add(key(line.kind, None), line)
            continue
        uses = uses_of(hour_ms, NOBODY)
        if known == HOUR_MS and (not uses or (len(uses) == 1 and uses[0][0] is not None)):
            if uses:
                alone = total.add_alone(key("workload", uses[0][0]), hour, uses[0], stretch.terms)
            else:
                alone = total.add_alone(
                    key("idle" if hour[2] else "unattributed", None), hour, None, stretch.terms
                )
            if alone:
                continue
        for line in lines_of_hour(hour, uses, known, stretch.terms):
            total.add(key(line.kind, line.workload), line)


def _hours(
    stretches: Sequence[Stretch], gpu: GpuHours
) -> Iterator[tuple[int, Stretch, Sequence[Any] | None, int]]:
    """Every hour in which the GPU was known or has samples, with its stretch, and milliseconds known of it."""
    hours, _, first_ms, until_ms = gpu
    first_hour_ms = min(first_ms - first_ms % HOUR_MS, min(hours, default=first_ms))
    end_ms = max(until_ms, max(hours, default=0) + 1)
    whole_until_ms = until_ms - HOUR_MS
    for stretch in stretches:
        for hour_ms in range(max(stretch.from_ms, first_hour_ms), min(stretch.to_ms, end_ms), HOUR_MS):
            whole = first_ms <= hour_ms <= whole_until_ms
            known = HOUR_MS if whole else known_ms(hour_ms, first_ms, until_ms)
            yield hour_ms, stretch, hours.get(hour_ms), known
