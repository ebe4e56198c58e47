"""Measured use says that the other way of paying for GPUs is cheaper.

What it finds
    Rented GPUs whose *used* hours are clearly above the break-even use of an owned machine, and owned ones clearly
    below it, per GPU model and way of paying. Clearly means over the whole range: rent −30 %/+20 %, life 3–5 years, use p25–p75 of the days.

Why it costs
    Rent is paid by the hour, a machine by its life. An owned GPU-hour at 20 % use costs five times one at full use;
    a rented one costs the same at any use, if it is handed back when idle.

When it is wrong
    Rents fall within the life of the machine, procurement takes months, storage and egress sit on one side only, staff
    or power cannot be had, or the window is no picture of the years to come.

What to do
    Take the figures to ``gpuwise plan rent-or-buy`` with your own offer. Own the base load, rent the peaks: over eight
    weeks, the GPUs that are busy together 80–90 % of the time.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from math import isfinite
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import duration, graded
from advisor.digest import digest
from advisor.facts import price_facts, window_facts
from advisor.fleet import CASH_BILLING, billing
from advisor.model import Limits, Rule, Source, Verdict
from advisor.waterfall import base_of
from catalog import gpu_prices, gpu_specs
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence, Price, Site
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving, Subject
from core.owned_machine import OwnedMachine
from core.percent import percent, percent_range
from core.units import DAY_MS, HOURS_PER_MONTH, HOURS_PER_YEAR
from core.user_price import COMMITTED

RULE_ID: Final = "rent-or-buy"
FLEET: Final = Subject("fleet", "fleet", "the fleet")
RENTED: Final = "rented"


class RentOrBuyLimits(Limits):
    """Thresholds of ``rent-or-buy``."""

    min_span_h: Annotated[float, Field(ge=24)] = 168.0
    """A week at least: without a weekend, use is overstated."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due. Hours come from the clock: a gap is neither used nor unused."""
    rent_low_ratio: Annotated[float, Field(gt=0, le=1)] = 0.7
    rent_high_ratio: Annotated[float, Field(ge=1)] = 1.2
    """Rent range to hold against (cost-model 2)."""
    life_spread_years: Annotated[float, Field(ge=0, lt=3)] = 1.0
    """Years added and taken off the life in the range (cost-model 2: 3–5 around 4)."""
    capex_low_ratio: Annotated[float, Field(gt=0, le=1)] = 0.6
    capex_high_ratio: Annotated[float, Field(ge=1)] = 2.5
    """The capex given may be this share of the catalogue's card prices × count and still be a machine of this model."""


@dataclass(frozen=True, slots=True)
class Group:
    """GPUs of one model that are paid the same way, with the days' use: used GPU-hours over covered ones."""

    gpu_key: str
    paid: str
    gpus: Sequence[GpuEvidence]
    price: Price
    daily_use: Sequence[float]
    use: float

    def use_at(self, share: float) -> float:
        """Quantile of the daily use."""
        ordered = sorted(self.daily_use)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def evaluate(evidence: Evidence, limits: RentOrBuyLimits) -> Iterator[Verdict]:
    """Every GPU model of the fleet that the site's capex can stand for."""
    missing = _missing(evidence.site)
    if missing:
        why = "Without what a machine and its power cost here, renting cannot be compared with owning."
        yield NotEvaluated(RULE_ID, FLEET, missing, why)
        return
    groups: dict[tuple[str, str], list[GpuEvidence]] = defaultdict(list)
    for gpu in evidence.gpus:
        groups[gpu.gpu_key or "unknown", _paid(gpu, evidence.site)].append(gpu)
    sole = len({gpu_key for gpu_key, _ in groups}) == 1
    for (gpu_key, paid), gpus in sorted(groups.items()):
        subject = _subject(gpu_key, paid, len(gpus))
        group, refusal = _group(evidence, (gpu_key, paid), gpus, sole=sole, limits=limits)
        if group is None:
            yield NotEvaluated(RULE_ID, subject, *refusal)
            continue
        yield from _judged(evidence, group, subject, limits)


def _paid(gpu: GpuEvidence, site: Site) -> str:
    """``rented`` (the bill ends with the use), ``reserved``, ``owned`` or ``unpriced``: never compared as one."""
    if gpu.price is None:
        return "unpriced"
    found = billing(gpu.price, site)
    return RENTED if found in CASH_BILLING else found


def _subject(gpu_key: str, paid: str, count: int) -> Subject:
    if paid == RENTED:
        return Subject("fleet", gpu_key, f"{count} × {gpu_key}")
    return Subject("fleet", f"{gpu_key} ({paid})", f"{count} × {gpu_key} ({paid})")


def _missing(site: Site) -> tuple[str, ...]:
    names = []
    if site.own_capex_usd is None:
        names.append("setting own_capex_usd")
    if site.tariff_usd_per_kwh is None:
        names.append("setting tariff_usd_per_kwh")
    return tuple(names)


def _group(
    evidence: Evidence,
    key: tuple[str, str],
    gpus: Sequence[GpuEvidence],
    *,
    sole: bool,
    limits: RentOrBuyLimits,
) -> tuple[Group | None, tuple[tuple[str, ...], str]]:
    gpu_key, paid = key
    if not _is_machine_of(gpu_key, evidence.site, sole=sole, limits=limits):
        why = f"own_capex_usd does not look like the price of a machine with {evidence.site.own_gpu_count} × {gpu_key}."
        return None, (("setting own_capex_usd for this GPU model",), why)
    prices = (
        _rents(evidence, gpu_key) if paid == "owned" else [gpu.price for gpu in gpus if gpu.price is not None]
    )
    if not prices:
        return None, (("price",), "There is no rent to compare with: add a price row.")
    span_h = max(digest(evidence, gpu).observed_h for gpu in gpus)
    if span_h < limits.min_span_h:
        why = f"{duration(span_h)} of data; {duration(limits.min_span_h)} are needed: a purchase outlives any day."
        return None, (("time",), why)
    share = sum(digest(evidence, gpu).coverage for gpu in gpus) / len(gpus)
    if share < limits.min_coverage_ratio:
        return None, (
            ("samples",),
            f"Samples cover {percent(share)} of the time; what was used in the rest is not known.",
        )
    covered_h = sum((seen := digest(evidence, gpu)).covered_h - seen.unknown_h for gpu in gpus)
    if covered_h <= 0:
        return None, (("busy_ratio",), "Whether the GPUs worked was not read.")
    use = sum(digest(evidence, gpu).active_h for gpu in gpus) / covered_h
    return Group(gpu_key, paid, gpus, _mean_price(prices), _daily_use(gpus), use), ((), "")


def _rents(evidence: Evidence, gpu_key: str) -> list[Price]:
    """What this model rents for: the site's own rented cards, else the catalogue's median; never an owner's own rate."""
    peers = [
        gpu.price for gpu in evidence.gpus if gpu.gpu_key == gpu_key and _paid(gpu, evidence.site) == RENTED
    ]
    if peers:
        return [price for price in peers if price is not None]
    market = gpu_prices.median_on_demand(gpu_key)
    if market is None:
        return []
    return [
        Price(
            market.usd_per_gpu_hour,
            market.basis,
            "on_demand",
            market.gpus_per_unit,
            market.as_of,
            from_user=False,
        )
    ]


def _mean_price(prices: Sequence[Price]) -> Price:
    """What the GPUs cost on average, so that the group at this price costs what its GPUs cost."""
    first = prices[0]
    if all(price.usd_per_gpu_hour == first.usd_per_gpu_hour for price in prices):
        return first
    mean = sum((price.usd_per_gpu_hour for price in prices), Decimal(0)) / len(prices)
    return replace(
        first,
        usd_per_gpu_hour=mean.quantize(Decimal("0.0001")),
        basis=f"mean of the prices of {len(prices)} GPUs",
        as_of=min(price.as_of for price in prices),
    )


def _daily_use(gpus: Sequence[GpuEvidence]) -> list[float]:
    """Used over known GPU-seconds of each day (UTC)."""
    active: dict[int, float] = defaultdict(float)
    known: dict[int, float] = defaultdict(float)
    for gpu in gpus:
        for hour in gpu.parts:  # of one day each, or less
            active[hour.hour_ms // DAY_MS] += hour.active_s
            known[hour.hour_ms // DAY_MS] += hour.covered_s - hour.seconds.get(Activity.UNKNOWN, 0.0)
    return [active[day] / known[day] for day in sorted(known) if known[day] > 0]


def _is_machine_of(gpu_key: str, site: Site, *, sole: bool, limits: RentOrBuyLimits) -> bool:
    """Whether the site's one capex can be that of a machine of this model: by the catalogue's price range per card."""
    spec = gpu_specs.by_key(gpu_key)
    if spec is None or spec.purchase_usd_low is None or spec.purchase_usd_high is None:
        return sole
    assert site.own_capex_usd is not None
    low = limits.capex_low_ratio * spec.purchase_usd_low * site.own_gpu_count
    high = limits.capex_high_ratio * spec.purchase_usd_high * site.own_gpu_count
    return low <= site.own_capex_usd <= high


def _machine(site: Site) -> OwnedMachine:
    machine = OwnedMachine.of_site(site)
    assert machine is not None, "asked for by _missing"
    return machine


def _break_even(machine: OwnedMachine, rent_usd_gpu_h: float) -> float:
    """Use above which owning is cheaper; infinite when it never is."""
    found = machine.breakeven_utilisation(rent_usd_gpu_h)
    return float("inf") if found is None else found


def _advantage(machine: OwnedMachine, rent_usd_gpu_h: float, use: float) -> float:
    """Dollars a month per GPU that owning saves at that use; negative: renting is cheaper."""
    difference = machine.rent_usd_per_year(rent_usd_gpu_h, use) - machine.own_usd_per_year(
        rent_usd_gpu_h, use
    )
    return difference / machine.gpu_count / HOURS_PER_YEAR * HOURS_PER_MONTH


@dataclass(frozen=True, slots=True)
class Case:
    """The comparison over its range of rent, life and use."""

    rent: float
    break_even: Range
    advantage: Range


def _case(evidence: Evidence, group: Group, limits: RentOrBuyLimits) -> Case:
    site = evidence.site
    rent = float(group.price.usd_per_gpu_hour)
    years, spread = site.own_life_years, limits.life_spread_years
    lives = (max(0.5, years - spread), years, years + spread)
    rents = (rent * limits.rent_low_ratio, rent, rent * limits.rent_high_ratio)
    uses = (group.use_at(0.25), group.use, group.use_at(0.75))
    middle = _machine(site)
    machines = [replace(middle, life_years=life) for life in lives]
    points = [_break_even(machine, r) for machine, r in product(machines, rents)]
    gains = [_advantage(machine, r, use) for machine, r, use in product(machines, rents, uses)]
    at_middle = _advantage(middle, rent, group.use)
    return Case(
        rent,
        Range(min(points), _break_even(middle, rent), max(points)),
        Range(min(*gains, at_middle), at_middle, max(*gains, at_middle)),
    )


def _judged(evidence: Evidence, group: Group, subject: Subject, limits: RentOrBuyLimits) -> Iterator[Verdict]:
    case = _case(evidence, group, limits)
    if group.paid in COMMITTED:
        why = f"{group.paid.capitalize()} capacity is paid until its term ends; the comparison counts when it is renewed."
        yield NotEvaluated(RULE_ID, subject, ("on-demand, spot or owned GPUs",), why)
        return
    machines = len(group.gpus) // evidence.site.own_gpu_count
    if group.paid == RENTED and group.use_at(0.25) > case.break_even.p90:
        if machines == 0:
            yield NotEvaluated(
                RULE_ID,
                subject,
                ("GPUs for a whole machine",),
                f"Use is above break-even, but {len(group.gpus)} GPUs do not fill a machine of {evidence.site.own_gpu_count}.",
            )
        else:
            yield _buy(evidence, group, subject, case, machines)
    elif group.paid == "owned" and group.use_at(0.75) < case.break_even.p10:
        yield _rent(evidence, group, subject, case, len(group.gpus))


def _buy(evidence: Evidence, group: Group, subject: Subject, case: Case, machines: int) -> Finding:
    count = machines * evidence.site.own_gpu_count
    return replace(
        _rent(evidence, group, subject, case, count),
        cause="buy",
        title=f"Buy rather than rent {count} × {group.gpu_key}",
        state="rented above break-even",
        saving=Saving(cash_usd_month=_cash(evidence, group.gpus[:count], case.advantage)),
        no_figure=None,
    )


def _cash(evidence: Evidence, gpus: Sequence[GpuEvidence], advantage_usd_month: Range) -> Range:
    """For the time samples vouch for, and never more than these GPUs cost in it."""
    bases = [base_of(gpu, digest(evidence, gpu), evidence.window.hours) for gpu in gpus]
    months = sum(base.capacity for base in bases) / HOURS_PER_MONTH
    spend = sum(base.cash for base in bases if base.cash is not None)
    wanted = advantage_usd_month.scaled(months)
    return Range(min(wanted.p10, spend), min(wanted.p50, spend), min(wanted.p90, spend))


def _rent(evidence: Evidence, group: Group, subject: Subject, case: Case, count: int) -> Finding:
    span_h = max(digest(evidence, gpu).observed_h for gpu in group.gpus)
    covered_h = sum(digest(evidence, gpu).covered_h for gpu in group.gpus) / len(group.gpus)
    grade, confidence = graded(
        Grade.C,
        "Use is measured; rent, life and resale are assumptions, and the range is over them",
        span_h=span_h,
        covered_h=covered_h,
    )
    return Finding(
        rule_id=RULE_ID,
        subject=subject,
        cause="rent",
        title=f"Rent rather than replace {group.gpu_key} when its life ends",
        because=(
            f"GPUs work {percent(group.use)} of the time ({percent_range(group.use_at(0.25), group.use_at(0.75))} of the days' middle"
            f" half); an owned machine breaks even at {_percent(case.break_even.p50)}"
            f" ({_percent(case.break_even.p10)}–{_percent(case.break_even.p90)})."
        ),
        state="owned below break-even",
        confidence=confidence,
        grade=grade,
        effort=Effort.HIGH,
        risk=Risk.HIGH,
        saving=Saving(),
        no_figure="No figure: the machines are paid. The comparison counts at the next purchase.",
        evidence=_facts(evidence, group, case, count),
        actions=(
            Action(
                "Repeat it with your own offer",
                f"gpuwise plan rent-or-buy --capex-usd {evidence.site.own_capex_usd:.0f} --gpu-count {evidence.site.own_gpu_count}"
                f" --rent-usd-per-gpu-hour {case.rent:.2f} --utilisation {group.use:.3f}",
            ),
        ),
        wrong_when="Rents fall, procurement takes months, staff or power cannot be had, or the window is no picture of the years to come.",
        not_claimed="The discount of a commitment you could sign instead. Tax, network and storage beyond the capex given, migration, and the price of delivery time.",
        gpu_uuids=tuple(gpu.gpu_uuid for gpu in group.gpus[:count]),
        stage="price",
        chart={},
    )


def _finite(share: float) -> float | None:
    """None where no use makes owning cheaper."""
    return round(share, 4) if isfinite(share) else None


def _percent(share: float) -> str:
    return percent(share) if isfinite(share) else "no use"


def _facts(evidence: Evidence, group: Group, case: Case, count: int) -> dict[str, Any]:
    site, machine = evidence.site, _machine(evidence.site)
    payback_h = machine.payback_h(case.rent, 1.0)
    share = sum(digest(evidence, gpu).coverage for gpu in group.gpus) / len(group.gpus)
    return {
        **window_facts(evidence, share),
        **price_facts(group.price),
        "gpu_count": count,
        "used_gpu_h": round(sum(digest(evidence, gpu).active_h for gpu in group.gpus), 3),
        "use_ratio": round(group.use, 4),
        "use_p25_ratio": round(group.use_at(0.25), 4),
        "use_p75_ratio": round(group.use_at(0.75), 4),
        "breakeven_p10_ratio": _finite(case.break_even.p10),
        "breakeven_p50_ratio": _finite(case.break_even.p50),
        "breakeven_p90_ratio": _finite(case.break_even.p90),
        "own_usd_per_gpu_h": machine.own_usd_per_gpu_h(group.use),
        "payback_months_at_full_use": None if payback_h is None else round(payback_h / HOURS_PER_MONTH, 2),
        "capex_usd": site.own_capex_usd,
        "life_years": site.own_life_years,
        "tariff_usd_per_kwh": site.tariff_usd_per_kwh,
        "pue": site.pue,
    }


RULE: Final = Rule(
    id=RULE_ID,
    code="R32",
    title="Own the base load, rent the peaks",
    needs=frozenset({"busy_ratio", "memory_used_bytes", "price", "own_capex_usd", "tariff_usd_per_kwh"}),
    limits=RentOrBuyLimits(),
    effort=Effort.HIGH,
    risk=Risk.HIGH,
    sources=(Source("Break-even formulas with their worked example", "core/breakeven.py"),),
    evaluate=evaluate,
    scope="fleet",
)
