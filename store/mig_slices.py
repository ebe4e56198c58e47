"""Which card a MIG slice is part of, and how much of its compute. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from catalog.gpu_specs import resolve
from catalog.mig_profiles import of_card
from core.readings import SLICE_PREFIX, GpuIdentity

_PROFILE: Final = re.compile(r"^(?P<card>.*) MIG (?:(?P<part>\d+)c\.)?(?P<slices>\d+)g\.")
"""As NVML and dcgm-exporter name a slice: ``NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb`` (a third of a 3g slice)."""


@dataclass(frozen=True, slots=True)
class SliceOfCard:
    """A slice's place: its card, and its share of the card's compute slices (0–1)."""

    card_uuid: str
    share: float


def slices_of_cards(gpus: Iterable[GpuIdentity]) -> dict[str, SliceOfCard]:
    """Slices by UUID, as far as card and profile are known; a slice that is not here cannot be shared out by."""
    known = list(gpus)
    cards = [gpu for gpu in known if not gpu.is_slice]
    found: dict[str, SliceOfCard] = {}
    for gpu in known:
        profile = _PROFILE.match(gpu.model or "") if gpu.is_slice else None
        card = None if profile is None else _card_of(gpu, profile["card"], cards)
        if profile is None or card is None:
            continue
        spec = resolve(card.model, card.memory_total_bytes)
        split = of_card(None if spec is None else spec.gpu_key)
        count = int(profile["part"] or profile["slices"])
        if split is not None and 0 < count <= split.compute_slices:
            found[gpu.gpu_uuid] = SliceOfCard(card.gpu_uuid, count / split.compute_slices)
    return found


def _card_of(gpu: GpuIdentity, model: str, cards: list[GpuIdentity]) -> GpuIdentity | None:
    """The card whose UUID is in the slice's (dcgm-exporter), else the one of that name at its index on its host (NVML)."""
    inner = gpu.gpu_uuid.removeprefix(SLICE_PREFIX).partition("/")[0]
    for card in cards:
        if card.gpu_uuid == inner:
            return card
    fitting = [
        card
        for card in cards
        if (card.host, card.index) == (gpu.host, gpu.index) and card.index is not None and card.model == model
    ]
    return fitting[0] if len(fitting) == 1 else None
