"""The cheapest mix as an answer: refused or provisional on short data, with its interval, its curve and its steps. Pure.

Below four weeks there is none: a month of use says nothing of years. From four to eight weeks it is provisional, because
cost-model 2 asks for eight weeks before anything is owned. The interval is over weeks drawn with replacement: weeks are
alike, hours of one week are not independent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from random import Random
from typing import Final

from core.units import HOURS_PER_MONTH
from ledger.demand import Demand
from ledger.mix import Load, Mix, MixPrices, cheapest, curves, with_paid, without
from ledger.share import rounded

LEAST_WEEKS: Final = 4
ENOUGH_WEEKS: Final = 8
"""Cost-model 2: own the p10–p20 of concurrently busy GPUs over at least 8 weeks."""
DRAWS: Final = 200
SEED: Final = 2_026
"""The same data give the same interval."""
CURVE_POINTS: Final = 40


class Standing(StrEnum):
    """What the data carry."""

    FIRM = "firm"
    PROVISIONAL = "provisional"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Low10High90:
    """Interval of a number of GPUs over the drawn weeks."""

    p10: int
    p90: int


@dataclass(frozen=True, slots=True)
class Point:
    """Cost at one number of GPUs paid for, the rest rented; ``use_ratio``: of the last of them."""

    gpus: int
    own_gpus: int
    promised_gpus: int
    on_demand_gpus: float
    spot_gpus: float
    usd_per_month: Decimal
    use_ratio: float | None


@dataclass(frozen=True, slots=True)
class Step:
    """One way more to pay, and what it saves against the step before; None where there is nothing to compare with."""

    name: str
    what: str
    own_gpus: int
    promised_gpus: int
    on_demand_gpus: float
    spot_gpus: float
    usd_per_month: Decimal
    saves_usd_per_month: Decimal | None


@dataclass(frozen=True, slots=True)
class MixAnswer:
    """The answer.

    Attributes:
        standing: firm, provisional or refused. reason: one sentence.
        mix: None where refused. ranges: of ``own_gpus``, ``promised_gpus``, ``paid_gpus`` (p10–p90 over weeks).
        curve: cost by GPUs paid for. steps: from today's bill to the mix.
        break_even_ratio: use above which the last GPU of a way pays, by way; of an owned one per GPU.
        left_out: ways that were not to be had, and why.
    """

    standing: Standing
    reason: str
    mix: Mix | None
    ranges: Mapping[str, Low10High90]
    curve: tuple[Point, ...]
    steps: tuple[Step, ...]
    break_even_ratio: Mapping[str, float]
    left_out: Mapping[str, str]


def answer(
    demand: Demand,
    prices: MixPrices,
    *,
    today_usd_per_gpu_h: Decimal | None,
    left_out: Mapping[str, str],
    assume_measured: bool = False,
) -> MixAnswer:
    """The cheapest mix for a measured demand.

    Args:
        demand: of one group of like GPUs. prices: in each way.
        today_usd_per_gpu_h: what each GPU that is there costs now, wanted or not; None: unpriced.
        left_out: ways without a price, and why. assume_measured: answer below four weeks too, marked.
    """
    standing, reason = _standing(demand, assume_measured=assume_measured)
    if standing is Standing.REFUSED:
        return MixAnswer(standing, reason, None, {}, (), (), _break_evens(prices), left_out)
    load = Load.of([wanted for _, wanted in demand.hours], prices.restartable_ratio)
    mix = cheapest(load, prices)
    return MixAnswer(
        standing=standing,
        reason=reason,
        mix=mix,
        ranges=_ranges(demand, prices),
        curve=_curve(demand, load, prices, mix),
        steps=_steps(demand, load, prices, today_usd_per_gpu_h),
        break_even_ratio=_break_evens(prices),
        left_out=left_out,
    )


def _standing(demand: Demand, *, assume_measured: bool) -> tuple[Standing, str]:
    weeks = demand.weeks
    if not demand.hours:
        return Standing.REFUSED, "No hour was seen well enough to say how many GPUs were wanted."
    if weeks < LEAST_WEEKS and not assume_measured:
        return (
            Standing.REFUSED,
            f"{too_short(weeks)} give --assume-measured to take them for the years to come.",
        )
    if weeks < ENOUGH_WEEKS:
        least = (
            f"Provisional: {weeks:.1f} weeks measured, {ENOUGH_WEEKS} are asked for before anything is owned."
        )
        return Standing.PROVISIONAL, least
    return Standing.FIRM, f"{weeks:.1f} weeks measured."


def too_short(weeks: float) -> str:
    """The first half of the sentence that refuses."""
    return f"{int(weeks * 10) / 10:.1f} weeks measured, {LEAST_WEEKS} are needed:"


def _ranges(demand: Demand, prices: MixPrices) -> dict[str, Low10High90]:
    weeks = [curves([wanted for _, wanted in week], prices.restartable_ratio) for week in demand.by_week()]
    if len(weeks) < 2:
        return {}
    draw = Random(SEED)  # noqa: S311 - statistics
    mixes: list[Mix] = []
    for _ in range(DRAWS):
        times = [0] * len(weeks)
        for _ in weeks:
            times[draw.randrange(len(weeks))] += 1
        parts = tuple((*week, count) for week, count in zip(weeks, times, strict=True) if count)
        mixes.append(cheapest(Load(parts), prices))
    return {
        "own_gpus": _tenths([mix.own_gpus for mix in mixes]),
        "promised_gpus": _tenths([mix.commit_gpus + mix.reserve_gpus for mix in mixes]),
        "paid_gpus": _tenths([mix.paid_gpus for mix in mixes]),
    }


def _tenths(counts: list[int]) -> Low10High90:
    ordered = sorted(counts)
    tenth = len(ordered) // 10
    return Low10High90(ordered[tenth], ordered[-1 - tenth])


def _curve(demand: Demand, load: Load, prices: MixPrices, best: Mix) -> tuple[Point, ...]:
    most = max(load.most_gpus, round(demand.present_gpus), best.paid_gpus)
    stride = max(1, -(-most // CURVE_POINTS))
    if prices.flat is None and prices.own is not None:
        stride = -(-stride // prices.own.unit) * prices.own.unit
    unit = 1 if prices.own is None else prices.own.unit
    near = {best.paid_gpus + step * unit for step in (-1, 0, 1)}
    counts = sorted(
        {*range(0, most + stride, stride), *(count for count in near if 0 <= count <= most + unit - 1)}
    )
    found = ((count, with_paid(load, prices, count)) for count in counts)
    return tuple(
        Point(
            gpus=count,
            own_gpus=mix.own_gpus,
            promised_gpus=mix.commit_gpus + mix.reserve_gpus,
            on_demand_gpus=mix.on_demand_gpus,
            spot_gpus=mix.spot_gpus,
            usd_per_month=mix.usd_per_month,
            use_ratio=demand.duration.use_ratio(count) if count else None,
        )
        for count, mix in found
        if mix is not None
    )


def _steps(
    demand: Demand, load: Load, prices: MixPrices, today_usd_per_gpu_h: Decimal | None
) -> tuple[Step, ...]:
    """Each way of paying added to those before it, in the order of how soon one can turn back."""
    steps: list[Step] = []
    if today_usd_per_gpu_h is not None:
        cost = today_usd_per_gpu_h * Decimal(str(demand.present_gpus)) * Decimal(str(HOURS_PER_MONTH))
        what = f"every GPU that is there, wanted or not: {demand.present_gpus:.1f} on average"
        steps.append(Step("today", what, 0, 0, demand.present_gpus, 0.0, rounded(cost), None))
    ways = (
        ("on_demand", "rent by the hour, hand back what nobody wants", ("own", "commit", "reserve", "spot")),
        ("spot", "put what can restart on spot", ("own", "commit", "reserve")),
        ("reserve", "reserve what is wanted most of the time", ("own", "commit")),
        ("commit", "commit to it for longer", ("own",)),
        ("own", "own whole machines", ()),
    )
    for name, what, missing in ways:
        if not _has(prices, name):
            continue
        mix = cheapest(load, without(prices, *missing))
        before = steps[-1].usd_per_month if steps else None
        steps.append(
            Step(
                name=name,
                what=what,
                own_gpus=mix.own_gpus,
                promised_gpus=mix.commit_gpus + mix.reserve_gpus,
                on_demand_gpus=mix.on_demand_gpus,
                spot_gpus=mix.spot_gpus,
                usd_per_month=mix.usd_per_month,
                saves_usd_per_month=None if before is None else before - mix.usd_per_month,
            )
        )
    return tuple(steps)


def _has(prices: MixPrices, name: str) -> bool:
    if name == "spot":
        return prices.takes_spot
    return name == "on_demand" or getattr(prices, name) is not None


def _break_evens(prices: MixPrices) -> dict[str, float]:
    found = {
        name: float(price / prices.rent)
        for name, price in (("commit", prices.commit), ("reserve", prices.reserve))
        if price is not None
    }
    if prices.own is not None:
        own = prices.own
        found["own"] = float(own.fixed_usd_per_gpu_h / (prices.rent - own.used_usd_per_gpu_h))
    return found
