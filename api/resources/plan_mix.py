"""The cheapest mix of owned, promised and rented GPUs for the demand measured here, one answer per GPU model."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from typing import Annotated, Any, Final

from api.resources.columns import about
from api.resources.plan_inputs import inputs_for
from api.resources.plan_measured import (
    BY_USE,
    Group,
    Wanted,
    demand,
    groups,
    mean_price,
    paid_now,
    prices_now,
)
from api.resources.recommendations import with_money
from api.resources.scope import Scope
from core.errors import UsageError
from core.money import usd
from ledger.demand import Demand
from ledger.mix import MixPrices
from ledger.mix_answer import Low10High90, MixAnswer, Point, Standing, Step, answer
from ledger.mix_prices import MixInputs, mix_prices
from ledger.rent_or_buy_inputs import RentOrBuyInputs

PRICES: Final = tuple(field.name for field in fields(MixInputs))
OF_THE_SITE: Final = frozenset({"tariff_usd_per_kwh", "colo_usd_per_kw_month"})
"""Prices that are not of one GPU model."""
FIGURES: Final = (
    "own_gpus",
    "commit_gpus",
    "reserve_gpus",
    "on_demand_gpus",
    "spot_gpus",
    "idle_gpus",
    "usd_per_month",
)
"""Of the mix itself: null where it is refused."""


@dataclass(frozen=True, slots=True)
class Question:
    """One group of GPUs, what owning them takes, and what was wanted of them."""

    scope: Scope
    group: Group
    owned: RentOrBuyInputs
    measured: Demand
    wanted: Wanted
    assume_measured: bool
    is_one_of_several: bool = False
    """Other models are asked about too: then the site's one machine stands for none of them."""


@dataclass(frozen=True, slots=True)
class DemandRow:
    """GPUs wanted at once, by clock hour."""

    wanted: Annotated[Wanted, about("When a GPU counts as wanted.")]
    weeks: Annotated[float, about("Hours seen well enough, in weeks of 168 h.")]
    left_out_hours: Annotated[int, about("Hours in which too little was seen: gaps.")]
    unseen_ratio: Annotated[float, about("Unseen share of the counted hours, taken as their seen part.")]
    full_ratio: Annotated[float, about("Share of hours in which every GPU was wanted: more may have been.")]
    present_gpus: Annotated[float, about("GPUs that were there, on average.")]
    mean_gpus: Annotated[float | None, about("Wanted at once, on average.")]
    p10_gpus: Annotated[float | None, about("Wanted at once in all but a tenth of the hours, at least.")]
    p20_gpus: Annotated[float | None, about("Wanted at once in all but a fifth of the hours, at least.")]
    p50_gpus: Annotated[float | None, about("Median of the hours.")]
    p90_gpus: Annotated[float | None, about("Enough for nine hours in ten.")]
    most_gpus: Annotated[int | None, about("Enough for every hour.")]


@dataclass(frozen=True, slots=True)
class MixRow:
    """One GPU model's cheapest mix; its figures are null where it is refused."""

    gpu_model: Annotated[str, about("Key of the catalogue, or the driver's name.")]
    standing: Annotated[Standing, about("firm, provisional (under 8 weeks) or refused (under 4).")]
    reason: Annotated[str, about("One sentence.")]
    own_gpus: Annotated[int | None, about("To own, in whole machines.")]
    commit_gpus: Annotated[int | None, about("To commit to for long.")]
    reserve_gpus: Annotated[int | None, about("To reserve for a shorter term.")]
    on_demand_gpus: Annotated[float | None, about("Rented on demand, on average at once.")]
    spot_gpus: Annotated[float | None, about("Rented as spot, on average at once.")]
    idle_gpus: Annotated[float | None, about("Paid for and not wanted, on average.")]
    usd_per_month: Annotated[Decimal | None, about("Of 730 hours like the measured ones.")]
    today_usd_per_month: Annotated[
        Decimal | None, about("Every GPU that is there at its price, wanted or not; null: unpriced.")
    ]
    saves_usd_per_month: Annotated[
        Decimal | None, about("Against today; negative: today's prices are lower.")
    ]
    ranges: Annotated[Mapping[str, Low10High90], about("p10 and p90 over weeks drawn with replacement.")]
    steps: Annotated[
        tuple[Step, ...], about("From today's bill: each way of paying added to those before it.")
    ]
    curve: Annotated[tuple[Point, ...], about("Cost by the number of GPUs paid for, the rest rented.")]
    break_even_ratio: Annotated[Mapping[str, float], about("Use of the last GPU above which a way pays.")]
    left_out: Annotated[Mapping[str, str], about("Ways that were not to be had, and why.")]
    demand: Annotated[DemandRow, about("What was wanted.")]
    prices: Annotated[dict[str, Any], about("One GPU-hour in each way.")]
    assumptions: Annotated[dict[str, Any], about("Every input.")]


def mix(
    scope: Scope,
    given: dict[str, Any],
    *,
    gpu_model: str | None = None,
    host: str | None = None,
    wanted: Wanted = Wanted.ALLOCATED,
    assume_measured: bool = False,
) -> list[MixRow]:
    """The cheapest mix of each GPU model.

    Args:
        scope: its window is what the demand is measured over.
        given: inputs by name (``MixInputs`` and ``RentOrBuyInputs``); what is absent comes from settings and prices.
        gpu_model, host: which GPUs; default: all.
        wanted: when a GPU counts as wanted.
        assume_measured: answer even where less than four weeks were measured.

    Raises:
        UsageError: an input that cannot be, or no GPU of that model or host.
    """
    found = groups(scope, gpu_model, host)
    several = len(found) > 1
    named = sorted(name for name in given if "_usd" in name and name not in OF_THE_SITE)
    if several and named:
        raise UsageError(
            f"{named[0]} is for one GPU model, and {len(found)} are here ({', '.join(g.name for g in found)}): "
            "pick one with --gpu-model"
        )
    return [
        mix_of(
            Question(
                scope,
                group,
                inputs_for(scope, [group], given, wanted, BY_USE),
                demand([group], scope.window, wanted),
                wanted,
                assume_measured,
                is_one_of_several=several,
            ),
            given,
        )
        for group in found
    ]


def mix_of_two(asked: Question) -> MixRow | None:
    """Owning and renting alone, with the inputs of rent-or-buy; None without a rent."""
    rent = asked.owned.rent_per_gpu_hour
    return None if rent is None else _answered(asked, MixInputs(usd(rent)))


def mix_of(asked: Question, given: Mapping[str, Any]) -> MixRow:
    """The cheapest mix of one group; promises without a price given are to be had at those in force."""
    rent = asked.owned.rent_per_gpu_hour
    if rent is None:
        why = f"Not evaluated: there is no rent of {asked.group.name}: give --rent-usd-per-gpu-hour, or a price of it."
        return _row(asked, MixAnswer(Standing.REFUSED, why, None, {}, (), (), {}, {}), {}, {})
    named = promises_now(asked) | {name: given[name] for name in PRICES if given.get(name) is not None}
    money: dict[str, Any] = {name: usd(value) if "usd" in name else value for name, value in named.items()}
    return _answered(asked, MixInputs(**money | {"rent_usd_per_gpu_hour": usd(rent)}))


def promises_now(asked: Question) -> dict[str, Any]:
    """What is reserved or committed already is to be had at the price in force."""
    found = [price for price in prices_now(asked.scope, asked.group) if price is not None]
    means = {
        name: mean_price([price for price in found if price.billing == billing])
        for name, billing in (
            ("reserve_usd_per_gpu_hour", "reserved"),
            ("commit_usd_per_gpu_hour", "committed"),
        )
    }
    return {name: price.usd_per_gpu_hour for name, price in means.items() if price is not None}


def _answered(asked: Question, inputs: MixInputs) -> MixRow:
    try:
        owned = replace(asked.owned, capex_usd=None) if asked.is_one_of_several else asked.owned
        prices, left_out = mix_prices(inputs, owned)
        if asked.is_one_of_several and asked.owned.capex_usd is not None:
            left_out["own"] = "the settings have the price of one machine: pick its GPU with --gpu-model"
    except ValueError as error:
        raise UsageError(str(error)) from error
    found = answer(
        asked.measured,
        prices,
        today_usd_per_gpu_h=paid_now(asked.scope, asked.group),
        left_out=left_out,
        assume_measured=asked.assume_measured,
    )
    return _row(asked, found, _prices(prices, asked.owned), asdict(inputs))


def _row(asked: Question, found: MixAnswer, prices: dict[str, Any], inputs: Mapping[str, Any]) -> MixRow:
    best = found.mix
    figures = {name: None if best is None else getattr(best, name) for name in FIGURES}
    today = next((step.usd_per_month for step in found.steps if step.name == "today"), None)
    return MixRow(
        gpu_model=asked.group.name,
        standing=found.standing,
        reason=found.reason,
        today_usd_per_month=today,
        saves_usd_per_month=None if best is None or today is None else today - best.usd_per_month,
        ranges=found.ranges,
        steps=found.steps,
        curve=found.curve,
        break_even_ratio=found.break_even_ratio,
        left_out=found.left_out,
        demand=_demand_row(asked.measured, asked.wanted),
        prices=prices,
        assumptions=_assumptions(asked.owned, inputs),
        **figures,
    )


def _demand_row(measured: Demand, wanted: Wanted) -> DemandRow:
    curve = measured.duration if measured.hours else None
    return DemandRow(
        wanted=wanted,
        weeks=measured.weeks,
        left_out_hours=measured.left_out_hours,
        unseen_ratio=measured.unseen_ratio,
        full_ratio=measured.full_ratio,
        present_gpus=measured.present_gpus,
        mean_gpus=None if curve is None else curve.mean_gpus,
        p10_gpus=None if curve is None else curve.wanted_gpus(0.1),
        p20_gpus=None if curve is None else curve.wanted_gpus(0.2),
        p50_gpus=None if curve is None else curve.wanted_gpus(0.5),
        p90_gpus=None if curve is None else curve.wanted_gpus(0.9),
        most_gpus=None if curve is None else curve.most_gpus,
    )


def _prices(prices: MixPrices, owned: RentOrBuyInputs) -> dict[str, Any]:
    own = prices.own
    return {
        "rent_usd_per_gpu_h": prices.rent,
        "rent_basis": owned.rent_basis,
        "commit_usd_per_gpu_h": prices.commit,
        "reserve_usd_per_gpu_h": prices.reserve,
        "spot_with_interruptions_usd_per_gpu_h": prices.spot,
        "own_fixed_usd_per_gpu_h": None if own is None else own.fixed_usd_per_gpu_h,
        "own_used_usd_per_gpu_h": None if own is None else own.used_usd_per_gpu_h,
        "own_machine_gpus": None if own is None else own.unit,
    }


def _assumptions(owned: RentOrBuyInputs, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Every input; a use is none here: the demand takes its place."""
    known = {name: value for name, value in owned.assumptions().items() if "utilisation" not in name}
    return with_money({**known, **inputs})
