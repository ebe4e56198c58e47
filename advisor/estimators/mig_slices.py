"""Which MIG slices hold some tenants of one card: the smallest profile each, if all of them fit together.

A tenant fits a slice when its memory does and its peak is no more than the slice's share of the compute: a tenant at
30 % of a card is at 70 % of three sevenths. Fits together: compute and memory slices within the card's, no profile more
often than the card allows (the placements of the user guide are within these sums).

Isolation is worth something: a voice pipeline made 1.00 request/s per GPU in slices and 0.76 time-sliced (R21).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from catalog.mig_profiles import MigCard, MigProfile


@dataclass(frozen=True, slots=True)
class Demand:
    """What a tenant needs of the whole card: memory in bytes, and its peak as a share 0–1."""

    memory_bytes: float
    peak_ratio: float


def slice_for(card: MigCard, demand: Demand) -> MigProfile | None:
    """The smallest profile that holds a tenant; None when only the whole card, or not even that, does."""
    return next(
        (
            profile
            for profile in card.profiles
            if profile.memory_slices < card.memory_slices
            and profile.usable_bytes >= demand.memory_bytes
            and profile.compute_slices / card.compute_slices >= demand.peak_ratio
        ),
        None,
    )


def slices_for(card: MigCard, demands: Sequence[Demand]) -> tuple[MigProfile, ...] | None:
    """A profile for each tenant, in their order; None when one fits no slice or all of them do not fit together."""
    chosen = [slice_for(card, demand) for demand in demands]
    known = [profile for profile in chosen if profile is not None]
    if not known or len(known) < len(chosen):
        return None
    counts = Counter(known)
    fits = (
        sum(profile.compute_slices for profile in known) <= card.compute_slices
        and sum(profile.memory_slices for profile in known) <= card.memory_slices
        and all(count <= profile.max_instances for profile, count in counts.items())
    )
    return tuple(known) if fits else None
