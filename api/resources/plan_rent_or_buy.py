"""Rent or buy with the site's settings, the price in force, and the use and power measured here, for whatever is not given."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any

from api.resources.columns import about
from api.resources.plan_inputs import inputs_for
from api.resources.plan_measured import (
    Group,
    Wanted,
    demand,
    groups,
    use_by_day,
)
from api.resources.plan_mix import MixRow, Question, mix_of_two
from api.resources.recommendations import with_money
from api.resources.scope import Scope
from ledger.demand import Demand
from ledger.mix_answer import LEAST_WEEKS, too_short
from ledger.rent_or_buy import RentOrBuyResult, Spread, Verdict, evaluate
from ledger.rent_or_buy_inputs import RentOrBuyInputs


@dataclass(frozen=True, slots=True)
class RentOrBuyRow:
    """The answer, with both tests, their ranges and everything assumed."""

    verdict: Annotated[Verdict, about("rent, buy, mix, never (renting always wins) or unknown.")]
    payback_months: Annotated[float | None, about("Months until the purchase is earned back; null: never.")]
    breakeven_utilisation: Annotated[
        float | None, about("Use above which owning is cheaper; above 1: at none.")
    ]
    own_usd_per_gpu_h: Annotated[Decimal | None, about("One wanted GPU-hour of an owned node at this use.")]
    rent_usd_per_gpu_h: Annotated[Decimal | None, about("One GPU-hour rented.")]
    ranges: Annotated[dict[str, Spread], about("Over rent −30 %/+20 %, life 3–5 years, use p25–p75.")]
    assumptions: Annotated[dict[str, Any], about("Every input, and every term left out.")]
    reason: Annotated[str, about("One sentence for the verdict.")]
    missing: Annotated[tuple[str, ...], about("Inputs without which there is no verdict.")]
    firm: Annotated[bool | None, about("The verdict is the same in every corner of the ranges.")]
    breakeven_hours_per_day: Annotated[float | None, about("The break-even use as hours of a day.")]
    own_usd_per_year: Annotated[
        Decimal | None, about("The owned node at this use, with what is rented while it is down.")
    ]
    rent_usd_per_year: Annotated[Decimal | None, about("The rented node at this use.")]
    measured: Annotated["MeasuredUse | None", about("What was measured; null: no GPU was seen.")]
    mix: Annotated[
        MixRow | None,
        about("Where the verdict is mix: how many to own and to rent, for the measured demand."),
    ]


@dataclass(frozen=True, slots=True)
class MeasuredUse:
    """What the use rests on, taken or not."""

    models: Annotated[tuple[str, ...], about("GPU models measured.")]
    gpu_count: Annotated[int, about("GPUs measured.")]
    weeks: Annotated[float, about("Hours seen well enough, in weeks of 168 h.")]
    left_out_hours: Annotated[int, about("Hours in which too little was seen.")]
    allocated_ratio: Annotated[float | None, about("Share of known GPU time in which a workload held it.")]
    active_ratio: Annotated[float | None, about("Share of known GPU time in which work ran.")]
    wanted: Annotated[Wanted, about("Which of the two counts as wanted.")]


def rent_or_buy(
    scope: Scope,
    given: dict[str, Any],
    *,
    gpu_model: str | None = None,
    host: str | None = None,
    wanted: Wanted = Wanted.ALLOCATED,
    assume_measured: bool = False,
) -> RentOrBuyRow:
    """Weigh renting against buying.

    Args:
        scope: its window is what the use is measured over.
        given: inputs by name (``RentOrBuyInputs``); what is absent comes from settings, prices and measurement.
        gpu_model, host: which GPUs are measured and priced; default: all.
        wanted: when a GPU counts as wanted.
        assume_measured: take the measured use even where it is of less than four weeks.

    Raises:
        UsageError: an input that cannot be, or no GPU of that model or host.
    """
    chosen = groups(scope, gpu_model, host)
    measured = demand(chosen, scope.window, wanted)
    inputs = inputs_for(scope, chosen, given, wanted)
    if given.get("utilisation") is None:
        inputs = with_use(scope, chosen, inputs, measured, wanted, assume_measured=assume_measured)
    else:
        inputs = replace(inputs, utilisation_basis="given")
    result = evaluate(inputs)
    mix = None
    if result.verdict is Verdict.MIX and len(chosen) == 1 and given.get("utilisation") is None:
        mix = mix_of_two(Question(scope, chosen[0], inputs, measured, wanted, assume_measured))
    return _row(result, _measured_use(scope, chosen, measured, wanted), mix)


def with_use(
    scope: Scope,
    chosen: Sequence[Group],
    inputs: RentOrBuyInputs,
    measured: Demand,
    wanted: Wanted,
    *,
    assume_measured: bool,
) -> RentOrBuyInputs:
    """The inputs with the measured use and its quartiles; without them, and why, where too little was measured."""
    use = measured.use_ratio
    if use is None:
        return replace(inputs, utilisation_basis="no use was measured: give --utilisation to assume one")
    if measured.weeks < LEAST_WEEKS and not assume_measured:
        why = f"{too_short(measured.weeks)} give --utilisation to assume one, or --assume-measured"
        return replace(inputs, utilisation_basis=why)
    count = sum(len(group.gpus) for group in chosen)
    what = "a workload held" if wanted is Wanted.ALLOCATED else "work ran on"
    basis = f"measured: share of known time in which {what} {count} GPUs, {measured.weeks:.1f} weeks, quartiles over days"
    if measured.weeks < LEAST_WEEKS:
        basis += f"; less than {LEAST_WEEKS} weeks, assumed to go on"
    quartiles = use_by_day(chosen, wanted, scope.settings.accounting_time_zone)
    low, high = (None, None) if quartiles is None else quartiles
    return replace(
        inputs, utilisation=use, utilisation_p25=low, utilisation_p75=high, utilisation_basis=basis
    )


def _measured_use(
    scope: Scope, chosen: Sequence[Group], measured: Demand, wanted: Wanted
) -> MeasuredUse | None:
    if not chosen:
        return None
    ratios = {one: demand(chosen, scope.window, one).use_ratio for one in Wanted}
    return MeasuredUse(
        models=tuple(group.name for group in chosen),
        gpu_count=sum(len(group.gpus) for group in chosen),
        weeks=measured.weeks,
        left_out_hours=measured.left_out_hours,
        allocated_ratio=ratios[Wanted.ALLOCATED],
        active_ratio=ratios[Wanted.ACTIVE],
        wanted=wanted,
    )


def _row(result: RentOrBuyResult, measured: MeasuredUse | None, mix: MixRow | None) -> RentOrBuyRow:
    return RentOrBuyRow(
        verdict=result.verdict,
        payback_months=result.payback_months,
        breakeven_utilisation=result.breakeven_utilisation,
        own_usd_per_gpu_h=result.own_usd_per_gpu_h,
        rent_usd_per_gpu_h=result.rent_usd_per_gpu_h,
        ranges=dict(result.ranges),
        assumptions=with_money(result.assumptions),
        reason=result.reason,
        missing=result.missing,
        firm=result.firm,
        breakeven_hours_per_day=result.breakeven_hours_per_day,
        own_usd_per_year=result.own_usd_per_year,
        rent_usd_per_year=result.rent_usd_per_year,
        measured=measured,
        mix=mix,
    )
