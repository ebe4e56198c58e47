"""What one GPU cost over a window, what of it was idle, its energy, and the same day by day: the steps down to its hours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from api.pages.view import View
from api.resources import costs, energy, usage
from api.resources.by import By
from api.resources.costs import CostRow
from api.resources.energy import EnergyRow
from api.resources.pricing import price_lookup, spec_of
from api.resources.report import Question, report
from api.resources.report_filters import Filters, workload_text
from api.resources.report_parts import ENERGY, MONEY, USAGE, Amounts, Part
from api.resources.report_sum import LineSum
from api.resources.scope import Scope, in_hours
from api.resources.usage import UsageRow
from core.activity import IDLE
from core.evidence import Price
from core.readings import GpuIdentity
from core.samples import EnergyMethod
from ledger.prices import Unpriced
from store.queries import hours

SAME_RATE = Decimal("0.005")
"""Relative difference below which the rate of the period is the price of now, rounded."""


@dataclass(frozen=True, slots=True)
class Power:
    """Energy of the GPU itself; ``method`` in words."""

    kwh: float | None
    method: str
    coverage_ratio: float | None


@dataclass(frozen=True, slots=True)
class Paid:
    """What one workload cost on this GPU, and the teams that paid for it, the dearest first; None: unpriced."""

    cost_usd: Decimal | None
    owners: tuple[str, ...]


class Holders:
    """Takes the lines of a report apart by workload and owner while they are added up by day: one reading for both."""

    def __init__(self) -> None:
        self._sums: dict[str, dict[str | None, LineSum]] = {}

    def note(self, _key: tuple[str | None, ...], part: Part, amounts: Amounts) -> None:
        """A part of the report."""
        if part.workload is None:
            return
        owners = self._sums.setdefault(workload_text(part.workload), {})
        team = None if part.owner is None else part.owner.team
        owners.setdefault(team, LineSum()).add(part, amounts)

    def paid(self) -> dict[str, Paid]:
        """Cost and owners by workload."""
        found = {}
        for workload, owners in self._sums.items():
            spent = {team: one.spend_usd for team, one in owners.items()}
            ranked = sorted((team for team in spent if team), key=lambda team: -(spent[team] or Decimal(0)))
            found[workload] = Paid(_sum(spent.values()), tuple(ranked))
        return found


@dataclass(frozen=True, slots=True)
class DayLine:
    """One accounting day; None where nothing is known. ``href`` leads to its hours."""

    day: str
    href: str
    gpu_h: float
    active_h: float | None
    idle_h: float
    unknown_h: float
    cost_usd: Decimal | None
    idle_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class GpuMoney:
    """Figures of one GPU that come from hours.

    Attributes:
        widened: they are of whole clock hours, as the table of costs, and those are more than the charts' window.
        price: now. why_unpriced: why there is none; empty: there is one.
        cost_usd: of clock time. idle_usd, unseen_usd: parts of it. All None unpriced. idle_h: empty or parked.
        paid: by workload, as ``report_filters.workload_text`` has it.
        clock_h: hours from first to last sample within the window. rate_usd: cost over them, where it is another than the price.
    """

    widened: bool
    price: Price | None
    why_unpriced: str
    cost_usd: Decimal | None
    idle_usd: Decimal | None
    unseen_usd: Decimal | None
    idle_h: float
    clock_h: float
    rate_usd: Decimal | None
    power: Power
    days: tuple[DayLine, ...]
    paid: Mapping[str, Paid] = field(default_factory=dict)


AMOUNTS: Final = tuple(dict.fromkeys((*USAGE, *ENERGY, *MONEY)))
METHODS: Final = {
    EnergyMethod.COUNTER: "by the card's own counter",
    EnergyMethod.INTEGRATED: "power readings added up over time",
    EnergyMethod.MIXED: "partly by the card's counter, partly power added up over time",
}


def hourly_scope(scope: Scope) -> Scope:
    """The scope over whole clock hours, clipped to the data, as every figure of money has it."""
    return replace(scope, window=in_hours(scope.window, hours.bounds(scope.session)))


def money(view: View, card: GpuIdentity, path: str) -> GpuMoney:
    """What ``costs`` and ``energy`` say of this GPU over the view's window, and its price now."""
    scope = hourly_scope(view.scope)
    uuid = card.gpu_uuid
    only = Filters(gpu=(uuid,))
    found = price_of(scope, card)
    # One question for all three tables: each reads its own columns of the same sums.
    keys = (By.DAY,)
    holders = Holders()
    question = Question(keys, AMOUNTS, money=True, filters=only, extra=frozenset({"workload", "owner"}))
    sums = report(scope, question, holders.note)
    cost_days = [costs.row_of(key, keys, one) for key, one in sums.items()]
    used_days = [usage.row_of(key, keys, one) for key, one in sums.items()]
    drawn_days = [energy.row_of(key, keys, one) for key, one in sums.items()]
    cost = _sum(row.cost_usd for row in cost_days)
    clock_h = sum(row.total_gpu_h for row in used_days)
    price = found if isinstance(found, Price) else None
    asked = view.scope.window
    return GpuMoney(
        widened=scope.window.from_ms < asked.from_ms or scope.window.to_ms > asked.to_ms,
        price=price,
        why_unpriced=found.why if isinstance(found, Unpriced) else "",
        cost_usd=cost,
        idle_usd=_sum(row.idle_cost_usd for row in cost_days),
        unseen_usd=_sum(row.unseen_cost_usd for row in cost_days),
        idle_h=sum(_idle_h(row) for row in used_days),
        clock_h=clock_h,
        rate_usd=other_rate(cost, clock_h, price),
        power=drawn(drawn_days, clock_h),
        days=day_lines(cost_days, used_days, path),
        paid=holders.paid(),
    )


def price_of(scope: Scope, card: GpuIdentity) -> Price | Unpriced:
    """The price of a card now, or why there is none."""
    spec = spec_of(card)
    prices = price_lookup(scope.session, scope.settings)
    return prices.answer(card, spec.gpu_key if spec else None, scope.now_ms)


def other_rate(cost: Decimal | None, clock_h: float, price: Price | None) -> Decimal | None:
    """Cost of one clock hour in the period where the price of now does not explain it (it changed, or energy is in it)."""
    if cost is None or clock_h <= 0:
        return None
    rate = cost / Decimal(str(clock_h))
    now = None if price is None else price.usd_per_gpu_hour
    same = now is not None and abs(rate - now) <= SAME_RATE * max(now, Decimal("0.01"))
    return None if same else rate


def day_lines(cost_days: list[CostRow], used_days: list[UsageRow], path: str) -> tuple[DayLine, ...]:
    """Days, the newest first."""
    by_day = {row.key: row for row in cost_days}
    lines = []
    for used in reversed(used_days):
        cost = by_day.get(used.key)
        lines.append(
            DayLine(
                day=used.key or used.label,
                href=f"{path}/hours?day={used.key}",
                gpu_h=used.total_gpu_h,
                active_h=used.active_gpu_h,
                idle_h=_idle_h(used),
                unknown_h=used.unknown_gpu_h,
                cost_usd=None if cost is None else cost.cost_usd,
                idle_usd=None if cost is None else cost.idle_cost_usd,
            )
        )
    return tuple(lines)


def _idle_h(row: UsageRow) -> float:
    return sum(row.seconds_by_activity.get(a, 0.0) for a in IDLE) / 3600


def drawn(days: Iterable[EnergyRow], clock_h: float) -> Power:
    """Energy of the days together."""
    known = [row for row in days if row.energy_kwh is not None]
    if not known:
        return Power(None, "not measured", None)
    methods = {row.method for row in known if row.method is not None}
    method = EnergyMethod.MIXED if len(methods) > 1 else next(iter(methods), None)
    covered_h = sum(row.energy_covered_s for row in known) / 3600
    return Power(
        sum(row.energy_kwh or 0.0 for row in known),
        METHODS[method] if method else "",
        min(covered_h / clock_h, 1.0) if clock_h > 0 else None,
    )


def _sum(values: Iterable[Decimal | None]) -> Decimal | None:
    known = [value for value in values if value is not None]
    return sum(known, Decimal(0)) if known else None
