"""Into which slices a card can be split (MIG): profiles, how many of each, and what a slice holds.

A card has 7 compute and 8 memory slices (4 and 4 on the A30 and the RTX PRO 6000); a profile takes some of both.
``3g`` takes half of the memory though it is less than half of the compute, so sums over both decide what fits.
Profiles with media extensions (``+me``) and graphics (``+gfx``) are left out: they hold no more.

Source: ``catalog/data/mig_profiles.csv``, NVIDIA MIG User Guide. Cards whose profiles are not in it have none here,
which says that nobody looked them up, not that they cannot be split (``GpuSpec.mig_max_instances`` tells that).
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

from catalog.loader import Cells, packaged, read_rows
from core.units import GIB

FILE: Final = "mig_profiles.csv"
COLUMNS: Final = (
    "gpu_key",
    "profile",
    "compute_slices",
    "memory_slices",
    "memory_gb",
    "max_instances",
    "source",
)
USABLE: Final = 0.88
"""What a slice shows over what its name says, at least: 16.0 GiB of ``1g.18gb`` (H200), 9.75 of ``1g.10gb`` (H100)."""


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One kind of slice of one card.

    Attributes:
        gpu_key: the card. profile: as ``nvidia-smi mig -cgi`` takes it, ``3g.40gb``.
        compute_slices, memory_slices: of the card's. usable_bytes: memory a slice shows at least.
        max_instances: how many of this profile alone fit on a card.
    """

    gpu_key: str
    profile: str
    compute_slices: int
    memory_slices: int
    usable_bytes: float
    max_instances: int


@dataclass(frozen=True, slots=True)
class MigCard:
    """A card's profiles, smallest first; the largest is the whole card."""

    profiles: tuple[MigProfile, ...]

    @property
    def compute_slices(self) -> int:
        """Of the whole card."""
        return max(profile.compute_slices for profile in self.profiles)

    @property
    def memory_slices(self) -> int:
        """Of the whole card."""
        return max(profile.memory_slices for profile in self.profiles)


def _parse(cells: Cells) -> MigProfile:
    return MigProfile(
        gpu_key=cells.text("gpu_key"),
        profile=cells.text("profile"),
        compute_slices=cells.whole("compute_slices", low=1),
        memory_slices=cells.whole("memory_slices", low=1),
        usable_bytes=USABLE * cells.number("memory_gb", low=1.0) * GIB,
        max_instances=cells.whole("max_instances", low=1),
    )


@cache
def profiles() -> tuple[MigProfile, ...]:
    """All profiles of the catalogue, in the file's order."""
    return read_rows(packaged(FILE), COLUMNS, _parse, key=lambda row: (row.gpu_key, row.profile))


@cache
def of_card(gpu_key: str | None) -> MigCard | None:
    """A card's profiles; None where the catalogue has none."""
    own = [profile for profile in profiles() if profile.gpu_key == gpu_key]
    own.sort(key=lambda profile: (profile.memory_slices, profile.compute_slices))
    return MigCard(tuple(own)) if own else None
