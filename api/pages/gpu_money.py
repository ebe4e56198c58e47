"""What one GPU cost over a window, what of it was idle, its energy, and the same day by day: the steps down to its hours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from api.links import gpu_path
from api.pages.gpu_days import DayLine, day_lines, slice_days
from api.pages.gpu_slice import card_of
from api.pages.view import View
from api.resources import costs, energy, usage
from api.resources.by import By
from api.resources.energy import EnergyRow
from api.resources.pricing import price_lookup, spec_of
from api.resources.report import Question, report
from api.resources.report_filters import Filters, workload_text
from api.resources.report_parts import ENERGY, MONEY, USAGE, Amounts, Part
from api.resources.report_sum import LineSum
from api.resources.scope import Scope, in_hours
from core.evidence import Price, Window
from core.hour_merge import known_sum
from core.readings import GpuIdentity
from core.samples import EnergyMethod
from ledger.calendar import Calendar
from ledger.prices import Unpriced
from store.queries import hours
from store.queries.fleet import FleetGpu

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
class GpuMoney:
    """Figures of one GPU that come from hours.

    Attributes:
        widened: they are of whole clock hours, as the table of costs, and those are more than the charts' window.
        price: now. why_unpriced: why there is none; empty: there is one.
        cost_usd: of clock time. idle_usd, unseen_usd: parts of it. All None unpriced. idle_h: empty or parked; None: not known.
        paid: by workload, as ``report_filters.workload_text`` has it.
        card_href: address of the card that a slice is paid for with; empty: a card, or not known which.
        clock_h: hours from first to last sample within the window. rate_usd: cost over them, where it is another than the price.
    """

    widened: bool
    price: Price | None
    why_unpriced: str
    cost_usd: Decimal | None
    idle_usd: Decimal | None
    unseen_usd: Decimal | None
    idle_h: float | None
    clock_h: float
    rate_usd: Decimal | None
    power: Power
    days: tuple[DayLine, ...]
    paid: Mapping[str, Paid] = field(default_factory=dict)
    card_href: str = ""


AMOUNTS: Final = tuple(dict.fromkeys((*USAGE, *ENERGY, *MONEY)))
METHODS: Final = {
    EnergyMethod.COUNTER: "by the card's own counter",
    EnergyMethod.INTEGRATED: "power readings added up over time",
    EnergyMethod.MIXED: "partly by the card's counter, partly power added up over time",
}


def hourly_scope(scope: Scope) -> Scope:
    """The scope over whole clock hours, clipped to the data, as every figure of money has it."""
    return replace(scope, window=in_hours(scope.window, hours.bounds(scope.session)))


def money(view: View, gpu: FleetGpu, path: str) -> GpuMoney:
    """What ``costs`` and ``energy`` say of this GPU over the view's window, and its price now."""
    scope = hourly_scope(view.scope)
    card = gpu.identity
    if card.is_slice:
        return _of_slice(view, gpu, path)
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
    days = day_lines(cost_days, used_days, path)
    price = found if isinstance(found, Price) else None
    return GpuMoney(
        widened=_is_widened(view.scope, scope),
        price=price,
        why_unpriced=found.why if isinstance(found, Unpriced) else "",
        cost_usd=cost,
        idle_usd=_sum(row.idle_cost_usd for row in cost_days),
        unseen_usd=_sum(row.unseen_cost_usd for row in cost_days),
        idle_h=known_sum(day.idle_h for day in days),
        clock_h=clock_h,
        rate_usd=other_rate(cost, clock_h, price),
        power=drawn(drawn_days, clock_h),
        days=days,
        paid=holders.paid(),
    )


def _of_slice(view: View, gpu: FleetGpu, path: str) -> GpuMoney:
    """Days of a slice from its hours; what it costs and draws is part of its card's."""
    scope, uuid = hourly_scope(view.scope), gpu.identity.gpu_uuid
    days: tuple[DayLine, ...] = ()
    if gpu.first_seen_ms is not None and gpu.last_seen_ms is not None:
        window = scope.window
        known = Window(max(window.from_ms, gpu.first_seen_ms), min(window.to_ms, gpu.last_seen_ms))
        if known.from_ms < known.to_ms:
            found = hours.gpu_hours(scope.session, known, [uuid])
            days = slice_days(found, known, Calendar(scope.settings.accounting_time_zone), path)
    price = price_of(scope, gpu.identity)
    card = card_of(scope.session, uuid)
    return GpuMoney(
        widened=_is_widened(view.scope, scope),
        price=None,
        why_unpriced=price.why if isinstance(price, Unpriced) else "",
        cost_usd=None,
        idle_usd=None,
        unseen_usd=None,
        idle_h=known_sum(day.idle_h for day in days),
        clock_h=sum(day.gpu_h for day in days),
        rate_usd=None,
        power=Power(None, "measured of its card", None),
        days=days,
        card_href="" if card is None else view.address.link(gpu_path(card)),
    )


def _is_widened(asked: Scope, hourly: Scope) -> bool:
    return hourly.window.from_ms < asked.window.from_ms or hourly.window.to_ms > asked.window.to_ms


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
