"""Days of a team, a user or a workload: money used against idle, and GPU-hours by how well they were used."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from markupsafe import Markup

from api import formats
from api.charts import Layer, stacked_bars
from api.charts_use import Use
from api.resources.by import By
from api.resources.report import time_key
from api.resources.report_filters import Filters
from api.resources.report_parts import Need, parts
from api.resources.report_sum import LineSum
from api.resources.scope import Scope
from api.resources.who_used import AMOUNTS, Group
from core.clock import to_ms
from core.money import from_micro
from core.units import J_PER_KWH
from ledger.calendar import Calendar


@dataclass(frozen=True, slots=True)
class UseDay:
    """One accounting day. ``prices``: each price of it with its GPU-hours, what they cost, and whose price it is."""

    key: str
    use: Use
    of: LineSum
    prices: tuple[tuple[float, Decimal, Decimal, str], ...]

    @property
    def spent(self) -> Decimal | None:
        """GPU price and billed energy."""
        return self.of.spend_usd

    @property
    def idle(self) -> Decimal | None:
        """Part of it for time without work."""
        return self.of.usd("idle_cost_usd")

    @property
    def energy_kwh(self) -> float | None:
        """At the GPUs."""
        return None if self.of.energy_j is None else self.of.energy_j / J_PER_KWH


def days_of(scope: Scope, filters: Filters, *, with_prices: bool = False) -> list[UseDay]:
    """Days of the window with lines that fit, by time; without prices told apart they are read faster."""
    calendar = Calendar(scope.settings.accounting_time_zone)
    need = Need(frozenset({"day", "money"}), AMOUNTS, filters.only(scope.session))
    days: dict[str, Group] = {}
    rates: dict[str, dict[tuple[int, str], list[int]]] = {}
    for part, amounts in parts(scope, need):
        key = time_key(part.at_ms or 0, By.DAY, calendar)
        days.setdefault(key, Group(key)).total.add(part, amounts)
        if with_prices and part.rate is not None:
            sums = rates.setdefault(key, {}).setdefault(
                (part.rate.micro_usd_per_hour, part.rate.basis), [0, 0]
            )
            sums[0] += amounts.get("known_ms") or 0
            sums[1] += amounts.get("cost_usd") or 0
    return [
        UseDay(
            key,
            group.use,
            group.total,
            tuple(
                (ms / 3.6e6, from_micro(rate), from_micro(cost), basis)
                for (rate, basis), (ms, cost) in sorted(rates.get(key, {}).items())
                if ms > 0
            ),
        )
        for key, group in sorted(days.items())
    ]


def _column(day: UseDay) -> str:
    return formats.day(to_ms(datetime.fromisoformat(day.key).replace(tzinfo=UTC)))


def cost_chart(days: Sequence[UseDay]) -> Markup | None:
    """Money by day: used, idle, not seen; None without a price."""
    known = [day.spent for day in days if day.spent is not None]
    if not known:
        return None
    idle = sum((day.idle or Decimal(0) for day in days), Decimal(0))
    label = f"Cost per day: {formats.money(sum(known, Decimal(0)))} over {len(days)} days, of it {formats.money(idle)} idle"

    def used(day: UseDay) -> float | None:
        if day.spent is None:
            return None
        return float(day.spent - (day.idle or Decimal(0)) - (day.of.unseen_usd or Decimal(0)))

    layers = [
        Layer("m-used", "used", tuple(used(day) for day in days)),
        Layer("m-idle", "idle", tuple(None if day.idle is None else float(day.idle) for day in days)),
    ]
    if any(day.of.unseen_usd for day in days):
        unseen = tuple(None if day.of.unseen_usd is None else float(day.of.unseen_usd) for day in days)
        layers.append(Layer("a-unknown", "not seen", unseen))
    return stacked_bars([_column(day) for day in days], layers, label=label)


def hours_chart(days: Sequence[UseDay]) -> Markup | None:
    """GPU-hours by day: effective, active, held without work, what nothing can tell."""
    if not days:
        return None

    parts_of = [_parts(day.use) for day in days]
    total = sum(day.use.held_h for day in days)
    return stacked_bars(
        [_column(day) for day in days],
        [
            Layer(key, name, tuple(one[at] for one in parts_of))
            for at, (key, name) in enumerate(
                (
                    ("f-3", "effective"),
                    ("f-1", "active, not effective"),
                    ("a-unknown", "nothing can tell"),
                    ("f-0", "held, nothing ran"),
                )
            )
        ],
        label=f"GPU-hours held per day: {formats.gpu_hours(total)} over {len(days)} days",
        text_of=formats.gpu_hours,
        axis_text=formats.short,
    )


def _parts(use: Use) -> tuple[float, float, float, float]:
    """Effective, active and not effective, not to be told, held without work: they add up to what was held."""
    if use.active_h is None:
        return 0.0, 0.0, use.held_h, 0.0
    known = use.effective_h or 0.0
    untold = min(use.untold_h, max(0.0, use.active_h - known))
    active = max(0.0, use.active_h - known - untold)
    return known, active, untold, max(0.0, use.held_h - use.active_h)
