"""Which other GPUs an engine could run on, and what they would cost beside the price in force."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from advisor.estimators.precision import Precision
from catalog import gpu_prices, gpu_specs
from catalog.gpu_specs import GpuSpec
from core.evidence import Evidence, Price

BF16_CAPABILITY: Final = 8.0
"""First compute capability with bfloat16, the precision today's weights and activations come in."""
FP8_CAPABILITY: Final = 8.9
"""First with FP8 tensor cores; weight-only kernels run on older ones, and how fast is not known here (R10)."""
GEFORCE: Final = re.compile(r"RTX-[2-5]0\d0\b")
"""Cards whose driver licence excludes data centres."""
MIN_PROVIDERS: Final = 2
"""One provider's price is no market."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Another GPU and its price, per GPU-hour, with where that price is from."""

    spec: GpuSpec
    usd_per_gpu_hour: Decimal
    basis: str
    as_of: str


def cheaper(evidence: Evidence, spec: GpuSpec, price: Price, precision: Precision) -> Sequence[Offer]:
    """GPUs with no more memory than ``spec`` that cost less, cheapest first, and can run weights of that precision."""
    found = (
        _offer(evidence, other, spec, price)
        for other in gpu_specs.specs()
        if other.gpu_key != spec.gpu_key
        and other.memory_bytes <= spec.memory_bytes
        and runs(other, precision)
    )
    offers = [
        offer for offer in found if offer is not None and offer.usd_per_gpu_hour < price.usd_per_gpu_hour
    ]
    return sorted(offers, key=lambda offer: (offer.usd_per_gpu_hour, offer.spec.gpu_key))


def runs(spec: GpuSpec, precision: Precision) -> bool:
    """Whether a data-centre card has what the weights need, as far as the catalogue knows."""
    capability = spec.compute_capability
    if spec.vendor != "NVIDIA" or capability is None or not spec.bf16_flops or GEFORCE.match(spec.gpu_key):
        return False
    return capability >= (FP8_CAPABILITY if precision.bits == 8 else BF16_CAPABILITY)


def _offer(evidence: Evidence, other: GpuSpec, spec: GpuSpec, price: Price) -> Offer | None:
    """Your own price of that card, else the catalogue's; beside a price of yours, yours times the market's ratio.

    A negotiated price and a list price are not comparable: the discount is taken to go along.
    """
    own = next(
        (
            gpu.price
            for gpu in evidence.gpus
            if gpu.gpu_key == other.gpu_key and gpu.price is not None and gpu.price.from_user
        ),
        None,
    )
    if own is not None:
        return Offer(other, own.usd_per_gpu_hour, own.basis, own.as_of)
    market = gpu_prices.median_on_demand(other.gpu_key)
    if market is None or market.provider_count < MIN_PROVIDERS or market.market_key != other.gpu_key:
        return None
    if not price.from_user:
        return Offer(other, market.usd_per_gpu_hour, market.basis, market.as_of)
    now = gpu_prices.median_on_demand(spec.gpu_key)
    if now is None:
        return None
    ratio = market.usd_per_gpu_hour / now.usd_per_gpu_hour
    basis = (
        f"your price × {ratio:.2f}, the ratio of the catalogue's medians ({now.market_key}, {other.gpu_key})"
    )
    return Offer(other, price.usd_per_gpu_hour * ratio, basis, market.as_of)
