"""What a million tokens cost in money and energy (cost-model 4).

Say with every figure which tokens are meant: prefill is bound by compute, decode by memory bandwidth, and a price over
both hides both.
"""

from decimal import Decimal

from core.money import usd
from core.units import J_PER_KWH

MILLION = 1_000_000


def usd_per_million_tokens(
    usd_per_hour: Decimal, tokens_per_s: float, use_ratio: float = 1.0
) -> Decimal | None:
    """Dollars for a million tokens.

    Args:
        usd_per_hour: of all GPUs that make them.
        tokens_per_s: while they work.
        use_ratio: share of the paid time in which they do; 1 for the time in use alone.

    Returns:
        None when no tokens are made.
    """
    if tokens_per_s <= 0 or use_ratio <= 0:
        return None
    return MILLION * usd_per_hour / (3600 * usd(tokens_per_s) * usd(use_ratio))


def j_per_token(mean_power_w: float, tokens_per_s: float) -> float | None:
    """Joules for one token; None when no tokens are made."""
    return mean_power_w / tokens_per_s if tokens_per_s > 0 else None


def kwh_per_million_tokens(j_token: float) -> float:
    """Energy of a million tokens of so many joules each, kWh, at the meter that measured them."""
    return MILLION * j_token / J_PER_KWH
