"""What a GPU-hour costs in each way, from what is given and known; what is not to be had is left out, and why is said."""

from dataclasses import dataclass
from decimal import Decimal

from core.money import usd
from core.units import HOURS_PER_YEAR
from ledger.mix import MixPrices, OwnPrice
from ledger.price_terms import SpotTerms
from ledger.rent_or_buy_inputs import RentOrBuyInputs
from ledger.share import rounded


@dataclass(frozen=True, slots=True)
class MixInputs:
    """Prices of one GPU-hour, USD; None: not to be had.

    Attributes:
        rent_usd_per_gpu_hour: on demand. commit_usd_per_gpu_hour, reserve_usd_per_gpu_hour: paid for every clock hour.
        spot_usd_per_gpu_hour: as listed. interruptions_per_hour: of a running hour; without it spot has no honest price.
        checkpoint_h: between checkpoints. restart_h: until work goes on. restartable_ratio: share of the demand that may
            be interrupted; 0 unless declared.
    """

    rent_usd_per_gpu_hour: Decimal
    commit_usd_per_gpu_hour: Decimal | None = None
    reserve_usd_per_gpu_hour: Decimal | None = None
    spot_usd_per_gpu_hour: Decimal | None = None
    interruptions_per_hour: float | None = None
    checkpoint_h: float = 0.0
    restart_h: float = 0.0
    restartable_ratio: float = 0.0


def mix_prices(inputs: MixInputs, owned: RentOrBuyInputs) -> tuple[MixPrices, dict[str, str]]:
    """Prices in each way, and the ways left out with the reason.

    Raises:
        ValueError: a price or ratio that cannot be, of a way that is left out too; names it.
    """
    if inputs.spot_usd_per_gpu_hour is not None and not inputs.spot_usd_per_gpu_hour >= 0:
        raise ValueError(f"spot_usd_per_gpu_hour is {inputs.spot_usd_per_gpu_hour}: give 0 or more")
    own, spot = own_price(owned, inputs.rent_usd_per_gpu_hour), _spot(inputs)
    left_out = {name: why for name, why in (("own", own), ("spot", spot)) if isinstance(why, str)}
    for name in ("commit", "reserve"):
        if getattr(inputs, f"{name}_usd_per_gpu_hour") is None:
            left_out[name] = f"{name}_usd_per_gpu_hour is not given"
    found = MixPrices(
        rent=inputs.rent_usd_per_gpu_hour,
        own=None if isinstance(own, str) else own,
        commit=inputs.commit_usd_per_gpu_hour,
        reserve=inputs.reserve_usd_per_gpu_hour,
        spot=None if isinstance(spot, str) else spot,
        restartable_ratio=inputs.restartable_ratio,
    )
    if found.spot is not None and not found.takes_spot:
        left_out["spot"] = f"with its interruptions it costs {found.spot:.4f} USD, not less than the rent"
    return found, left_out


def own_price(inputs: RentOrBuyInputs, rent: Decimal) -> OwnPrice | str:
    """An owned GPU by the hour, or why it cannot be had.

    A machine that is up for a share of the time only must be bought for the rest too: its fixed cost is over that share.
    """
    machine = inputs.machine()
    if machine is None:
        names = [name for name in inputs.missing() if name in {"capex_usd", "tariff_usd_per_kwh"}]
        return f"{' and '.join(names)} not given"
    served_gpu_h = machine.gpu_count * HOURS_PER_YEAR * machine.availability_ratio
    used = rounded(usd(machine.variable_usd_per_h / machine.gpu_count))
    if used >= rent:
        return f"an hour of work costs {used:.4f} USD in energy alone, not less than the rent"
    return OwnPrice(rounded(usd(machine.fixed_usd_per_year / served_gpu_h)), used, machine.gpu_count)


def _spot(inputs: MixInputs) -> Decimal | str:
    if inputs.spot_usd_per_gpu_hour is None:
        return "spot_usd_per_gpu_hour is not given"
    if inputs.restartable_ratio <= 0:
        return "restartable_ratio is 0: nothing was declared to be restartable"
    if inputs.interruptions_per_hour is None:
        return "interruptions_per_hour is not given: a spot price without interruptions is not what it costs"
    terms = SpotTerms(inputs.interruptions_per_hour, inputs.checkpoint_h, inputs.restart_h)
    return rounded(inputs.spot_usd_per_gpu_hour * usd(terms.factor))
