"""The hours of one GPU, one after the other, as priced lines. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from core.evidence import Price
from core.place import Place
from core.units import HOUR_MS
from ledger.line import Line, Terms
from ledger.lines import known_ms, lines_of_gap, lines_of_hour


class Stretch(NamedTuple):
    """Whole hours (start inclusive, end exclusive) in which price and place of a GPU are the same."""

    from_ms: int
    to_ms: int
    price: Price | None
    place: Place
    terms: Terms


def gpu_lines(
    stretches: Sequence[Stretch],
    hours: Mapping[int, Sequence[Any]],
    uses: Mapping[int, Sequence[Sequence[Any]]],
    first_ms: int,
    until_ms: int,
) -> Iterator[tuple[int, Stretch, Line]]:
    """Start of the hour, its stretch, and each of its lines.

    Args:
        stretches: in order of time. hours, uses: ``Hour`` and ``Use`` by the start of their hours, the uses in the order
            of their workloads; hours outside the stretches are passed over.
        first_ms, until_ms: the GPU's first and last sample; between them an hour without samples is a gap.
    """
    first_hour_ms = min(first_ms - first_ms % HOUR_MS, min(hours, default=first_ms))
    end_ms = max(until_ms, max(hours, default=0) + 1)
    nobody: tuple[Sequence[Any], ...] = ()
    for stretch in stretches:
        terms = stretch.terms
        for hour_ms in range(max(stretch.from_ms, first_hour_ms), min(stretch.to_ms, end_ms), HOUR_MS):
            inside = first_ms <= hour_ms <= until_ms - HOUR_MS
            known = HOUR_MS if inside else known_ms(hour_ms, first_ms, until_ms)
            hour = hours.get(hour_ms)
            if hour is None:
                found = lines_of_gap(known, terms)
            else:
                found = lines_of_hour(hour, uses.get(hour_ms, nobody), known, terms)
            for line in found:
                yield hour_ms, stretch, line
