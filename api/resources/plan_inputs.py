"""Inputs of the calculators: what is given, else what is measured here, else what the settings say."""

from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from api.resources.plan_measured import RENTED, Group, Power, Wanted, power, rent_of, site_for
from api.resources.scope import Scope
from core.errors import UsageError
from core.evidence import Price
from ledger.rent_or_buy import of_site
from ledger.rent_or_buy_inputs import RentOrBuyInputs

INPUTS: Final = frozenset(field.name for field in fields(RentOrBuyInputs))


CAVEATS: Final = {
    "reserved": "paid for every hour, used or not: here it counts by use",
    "committed": "paid for every hour, used or not: here it counts by use",
    "spot": "without what its interruptions cost",
}
SEVERAL: Final = "not known: GPUs of several models are here, pick one with --gpu-model"


def inputs_for(
    scope: Scope,
    chosen: Sequence[Group],
    given: dict[str, Any],
    wanted: Wanted,
    billings: Collection[str] = RENTED,
    *,
    drawn: Power | None = None,
) -> RentOrBuyInputs:
    """Everything but the use: what is given, else measured, else set.

    Args:
        scope, chosen: which GPUs, and when. given: inputs by name. wanted: when a GPU counts as wanted.
        billings: prices in force of these billings count as rent. drawn: the machine's draw where it was read before.

    Raises:
        UsageError: an input that cannot be.
    """
    site = site_for(scope, chosen)
    if drawn is None:
        drawn = power(scope, chosen, wanted, site, given.get("gpu_count") or site.own_gpu_count)
    rent = rent_of(scope, chosen[0], billings) if len(chosen) == 1 else None
    known = {name: value for name, value in given.items() if name in INPUTS and value is not None}
    try:
        inputs = of_site(
            replace(site, own_idle_kw=drawn.idle_kw, own_active_kw=drawn.active_kw),
            rent,
            utilisation=None,
            power_basis="given" if {"idle_kw", "active_kw"} <= known.keys() else drawn.basis,
        )
        inputs = replace(inputs, rent_basis=SEVERAL if len(chosen) > 1 else _basis(rent))
        if any(name.startswith("capex_") for name in known):
            inputs = replace(inputs, capex_usd=None)
        if "rent_usd_per_hour" in known or "rent_usd_per_gpu_hour" in known:
            inputs = replace(inputs, rent_usd_per_gpu_hour=None, rent_basis="given")
        return replace(inputs, **known)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _basis(rent: Price | None) -> str:
    if rent is None:
        return ""
    caveat = CAVEATS.get(rent.billing)
    return rent.basis if caveat is None else f"{rent.basis} ({rent.billing}: {caveat})"
