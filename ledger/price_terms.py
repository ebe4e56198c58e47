"""What a price comes to: prepayments spread over their term, and spot with the work that interruptions cost.

    effective      = amount + upfront / (committed GPUs × hours of the term)
    spot_effective = spot × (1 + λ × (t_ckpt/2 + t_restart))     λ interruptions per running hour, times in hours

Source: cost-model 2 (spot) and 6 (EffectiveCost spreads prepayments over the hours they cover).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from math import isfinite
from typing import Self

from core.money import usd
from core.units import HOUR_MS
from core.user_price import UserPrice
from ledger.share import rounded


@dataclass(frozen=True, slots=True)
class SpotTerms:
    """How often a spot machine is taken away and what that costs.

    Attributes:
        interruptions_per_hour: per running hour. checkpoint_h: between checkpoints. restart_h: until work goes on.
    """

    interruptions_per_hour: float
    checkpoint_h: float = 0.0
    restart_h: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot be. Raises ``ValueError`` that names the input."""
        for name, value in asdict(self).items():
            if not isfinite(value) or not 0 <= value <= 10_000:
                raise ValueError(f"{name} is {value}: give a value from 0 to 10000")

    @classmethod
    def of(cls, given: Mapping[str, float | bool]) -> Self:
        """From inputs by name. Raises ``ValueError`` for a name that is none, or a bad value."""
        names = {field.name for field in fields(cls)}
        for name in given:
            if name not in names:
                raise ValueError(f"{name} is no input of a spot price: use {', '.join(sorted(names))}")
        if "interruptions_per_hour" not in given:
            raise ValueError(
                "interruptions_per_hour is not given: how often it is taken away in a running hour"
            )
        return cls(**given)

    def by_name(self) -> dict[str, float | bool]:
        """Every input: what is kept with a price."""
        return asdict(self)

    @property
    def factor(self) -> float:
        """What an hour of finished work costs, in hours paid."""
        return 1 + self.interruptions_per_hour * (self.checkpoint_h / 2 + self.restart_h)


def effective_amount(price: UserPrice) -> Decimal:
    """Amount of one GPU-hour with its share of what was paid at the start, in the price's currency, not rounded."""
    if price.upfront is None:
        return price.amount_per_gpu_hour
    assert price.committed_gpus is not None, "checked when made"
    assert price.valid_to_ms is not None, "checked when made"
    hours = Decimal(price.valid_to_ms - price.valid_from_ms) / HOUR_MS
    return price.amount_per_gpu_hour + price.upfront / (price.committed_gpus * hours)


def spot_effective(price: UserPrice) -> Decimal | None:
    """What an hour of finished work costs on a spot machine, in the price's currency; None: not said how often it is interrupted."""
    if price.billing != "spot" or price.inputs is None:
        return None
    return rounded(price.amount_per_gpu_hour * usd(SpotTerms.of(price.inputs).factor))
