"""Rent or buy in words: the answer as a sentence, and the figures beside it with their ranges. Pure."""

from collections.abc import Callable
from decimal import Decimal

from api import formats
from api.overview_parts import Tile
from api.pages.plan_rent_or_buy_form import BY_NAME
from api.resources.plan_mix import MixRow
from ledger.rent_or_buy import RentOrBuyResult, Spread, Verdict
from ledger.rent_or_buy_inputs import RentOrBuyInputs
from ledger.rent_or_buy_swings import dearest_purchase_usd


def headline(inputs: RentOrBuyInputs, found: RentOrBuyResult, mix: MixRow | None = None) -> tuple[str, str]:
    """The answer as a sentence, and what to know of it; ``mix``: for the measured demand."""
    use, breakeven = inputs.utilisation, found.breakeven_utilisation
    firm = ""
    if found.firm is not None:
        firm = (
            "It holds over the whole range of rent, life and use."
            if found.firm
            else "It does not hold over the whole range of rent, life and use: look at the offer you have."
        )
    if found.verdict is Verdict.UNKNOWN:
        return _unknown(inputs, found)
    if found.verdict is Verdict.NEVER:
        return "Keep renting: running a machine of your own costs more than its rent", firm
    if breakeven is None or breakeven > 1:
        return "Keep renting: owning does not pay even at full use", firm
    at, runs = formats.percent(breakeven), formats.percent(use)
    if found.verdict is Verdict.MIX:
        low, high = formats.percent(inputs.utilisation_p25), formats.percent(inputs.utilisation_p75)
        days = f"owning pays from {at} use, and your days are between {low} and {high}"
        if mix is None or mix.own_gpus is None:
            return (
                f"Own what is always busy and rent the rest: {days}",
                "How many to own is on the third page.",
            )
        if mix.own_gpus == 0:
            return (
                f"Keep renting: {days}",
                "No whole machine is wanted enough: renting all of it costs least.",
            )
        count = formats.figure(mix.own_gpus)
        return f"Own {count} GPUs and rent the rest: {days}", f"For the demand measured here. {mix.reason}"
    if found.verdict is Verdict.BUY:
        return f"Owning pays: it takes {at} use, and you run at {runs}", firm
    return f"Keep renting: owning pays from {at} use, and you run at {runs}", firm


def _unknown(inputs: RentOrBuyInputs, found: RentOrBuyResult) -> tuple[str, str]:
    most = dearest_purchase_usd(inputs)
    if found.missing == ("capex_usd",) and inputs.utilisation is not None:
        use = formats.percent(inputs.utilisation)
        if most is None:
            return (
                f"At {use} use no purchase price is low enough to own",
                "Give the price of your offer to see how far it is.",
            )
        count = formats.figure(inputs.gpu_count)
        return (
            f"Owning pays if a machine of {count} GPUs costs less than {formats.money(round(most, -2))}",
            f"At the {use} use and the rent below. Give the price of your offer for the whole answer.",
        )
    breakeven = found.breakeven_utilisation
    if found.missing == ("utilisation",) and breakeven is not None:
        if breakeven > 1:
            return "Keep renting: owning does not pay even at full use", ""
        hours = formats.figure(24 * breakeven, 1)
        return (
            f"Owning pays from {formats.percent(breakeven)} use",
            f"That is {hours} hours of every day. How much yours are wanted is not known yet: give a use.",
        )
    names = [BY_NAME[name].label.lower() for name in found.missing if name in BY_NAME]
    return (
        "Rent or buy: what does the machine cost, and how much is it wanted?",
        f"Still needed: {', '.join(names)}.",
    )


def paid_title(mix: MixRow | None) -> str:
    """What the curve by number owned shows."""
    if mix is None or mix.own_gpus is None:
        return ""
    if mix.own_gpus == 0:
        return "For the measured demand renting all of it costs least"
    return f"For the measured demand {mix.own_gpus} owned GPUs cost least, {formats.money(mix.usd_per_month)} a month"


def tiles(inputs: RentOrBuyInputs, found: RentOrBuyResult) -> tuple[Tile, ...]:
    """The figures beside the sentence, each with its range."""
    ranges, use = found.ranges, inputs.utilisation
    breakeven = found.breakeven_utilisation
    at = "at full use" if use is None else f"at {formats.percent(use)} use"
    own, rent = found.own_usd_per_gpu_h, found.rent_usd_per_gpu_h
    saves = None
    if found.rent_usd_per_year is not None and found.own_usd_per_year is not None:
        saves = found.rent_usd_per_year - found.own_usd_per_year
    verb = "Owning saves" if saves is None or saves >= 0 else "Owning costs more"
    never = "never" if ranges and found.payback_months is None else None
    return (
        Tile(
            "Owning pays from",
            "no use" if ranges and (breakeven is None or breakeven > 1) else formats.percent(breakeven),
            _range(ranges.get("breakeven_utilisation"), formats.percent, "of all hours", "no use"),
        ),
        Tile(
            "Wanted",
            formats.percent(use),
            "not known"
            if use is None
            else _ends(inputs.utilisation_p25, inputs.utilisation_p75, "on half of the days"),
        ),
        Tile("Owned, a GPU-hour", rate(own), _range(ranges.get("own_usd_per_gpu_h"), rate, at, "any price")),
        Tile("Rented, a GPU-hour", rate(rent), _range(ranges.get("rent_usd_per_gpu_h"), rate, "")),
        Tile(
            "Paid back in",
            never or months(found.payback_months),
            _range(ranges.get("payback_months"), months, "" if use is not None else "at full use"),
        ),
        Tile(
            f"{verb} a year",
            formats.money(None if saves is None else abs(saves)),
            "the whole machine, against renting the same hours",
        ),
    )


def months(value: float | None) -> str:
    """Months, as years from two of them on."""
    if value is None:
        return formats.UNKNOWN
    if value < 24:
        return f"{formats.figure(value, 1)}{formats.NBSP}months"
    return f"{formats.figure(value / 12, 1)}{formats.NBSP}years"


def rate(value: float | Decimal | None) -> str:
    """Dollars of a GPU-hour, to the cent."""
    return formats.UNKNOWN if value is None else f"${formats.figure(value, 2)}"


def _ends(low: float | None, high: float | None, of: str) -> str:
    return (
        "no range"
        if low is None or high is None
        else f"{formats.percent(low)} to {formats.percent(high)} {of}"
    )


def _range(found: Spread | None, text: Callable[[float], str], more: str, never: str = "never") -> str:
    if found is None or found.low is None:
        return more
    high = never if found.high is None else text(float(found.high))
    return f"{text(float(found.low))} to {high}{' ' if more else ''}{more}"
