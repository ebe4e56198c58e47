"""What the overview, the fleet and the weekly report say in the same words: sentence, tiles, charts. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from markupsafe import Markup

from api import formats
from api.charts import FunnelBar, Layer, funnel, stacked_bars
from api.charts_bands import Column
from api.charts_lines import meter
from api.resources.overview_model import Day, HostLine, Overview, Proven
from api.resources.waste import WasteKind, total_usd
from api.words import ACTIVITY, activity_class, activity_name
from core.activity import IDLE, Activity
from core.evidence import Window
from core.units import DAY_MS, HOUR_MS
from core.verification import Ledger
from ledger.calendar import Calendar


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure: what it is, the figure, what to know about it, and where its parts are."""

    name: str
    figure: str
    note: str
    idle: bool = False
    href: str = ""


SHARES: Final = (
    (0.23, 0.27, "A quarter"),
    (0.31, 0.36, "A third"),
    (0.46, 0.485, "Nearly half"),
    (0.485, 0.515, "Half"),
    (0.64, 0.69, "Two thirds"),
    (0.73, 0.77, "Three quarters"),
)
"""Shares that people name; every other one is a percentage."""


WORTH_SAYING: Final = 0.005
"""A smaller share of the spend that was not seen is not worth a reader's time."""


def headline(view: Overview) -> tuple[str, str]:
    """The sentence and its second half about idle money (or hours where nothing is priced)."""
    when = period_words(view)
    money = view.money
    if money.spend_usd is not None:
        first = f"You spent {formats.money(money.spend_usd)} on GPUs {when}."
        if money.idle_usd is None:
            return first, ""
        if money.idle_usd == 0:
            known = " is known to have" if money.unseen_usd else ""
            return first, f"None of it{known} bought hours in which nothing ran."
        return first, f"{formats.money(money.idle_usd)} of it bought hours in which nothing ran."
    total = next((row.gpu_h for row in view.funnel if row.step == "total"), None)
    idle = sum(day.seconds_by_activity.get(a, 0.0) for day in view.days for a in IDLE) / 3600
    return f"You held {formats.gpu_hours(total)} {when}.", f"In {formats.gpu_hours(idle)} of it nothing ran."


def period_words(view: Overview) -> str:
    """``in the last 30 days``, or ``in the 30 days to 21 Nov 2026`` when the window does not reach now."""
    window, calendar = view.window, Calendar(view.days_zone)
    length_ms = window.to_ms - window.from_ms
    if length_ms > 2 * DAY_MS:
        # Of a period of days the running one is a part: seven days are six whole ones and today.
        is_of_days = calendar.day_at(window.from_ms).from_ms == window.from_ms
        days = len(calendar.days(window.from_ms, window.to_ms)) if is_of_days else -(-length_ms // DAY_MS)
        length_ms = days * DAY_MS
    length = formats.duration(length_ms / 1000)
    if view.now_ms - window.to_ms <= HOUR_MS:
        return f"in the last {length}"
    last = formats.day_year(calendar.date_ms(window.to_ms - 1))
    if window.to_ms - window.from_ms < formats.SPAN_OF_DAYS_MS:
        return f"in {length} on {last}"
    return f"in the {length} to {last}"


WASTE: Final[dict[WasteKind, tuple[str, str, str]]] = {
    WasteKind.BROKEN: ("Broken", "kernels ran, nothing moved: stuck jobs", "/recommendations?rule=stuck-job"),
    WasteKind.UNOCCUPIED: ("Unoccupied", "nobody was on them", "/recommendations?rule=empty-gpu"),
    WasteKind.IDLE: ("Occupied and idle", "memory held, no work", "/recommendations?rule=parked-model"),
    WasteKind.INEFFICIENT: (
        "Occupied and inefficient",
        "work ran, but used little of the GPU: SM under half, or starved of input",
        "/recommendations",
    ),
}
"""Kinds of waste: name, what it is, where its advice is."""
AMOUNT: Final = {
    Ledger.CASH: formats.money,
    Ledger.CAPACITY: formats.gpu_hours,
    Ledger.ENERGY: formats.kwh,
}
"""How an amount of each kind of saving reads."""


@dataclass(frozen=True, slots=True)
class WasteLine:
    """One kind of waste: its name, what it is, its part of the money as figure and bar, hours, where its advice is."""

    name: str
    help: str
    href: str
    usd: Decimal | None
    gpu_h: float
    ratio: float | None
    bar: Markup


def waste_lines(view: Overview) -> tuple[WasteLine, ...]:
    """The kinds of waste with their share of the money, of the hours where nothing is priced."""
    total_h = next((row.gpu_h for row in view.funnel if row.step == "total"), None)
    lines = []
    for one in view.waste:
        name, what, href = WASTE[one.kind]
        share = one.gpu_h / total_h if total_h else None
        if one.usd is not None and view.money.spend_usd:
            share = float(one.usd / view.money.spend_usd)
        bar = meter(share, label=f"{name}: {formats.percent(share)}", key=f"w-{one.kind.value}")
        lines.append(WasteLine(name, what, href, one.usd, one.gpu_h, share, bar))
    return tuple(lines)


def waste_title(view: Overview) -> str:
    """What the kinds of waste come to, as a sentence."""
    total = total_usd(view.waste)
    if total is None or not view.money.spend_usd:
        hours = sum(one.gpu_h for one in view.waste)
        return f"{formats.gpu_hours(hours)} had no work to show"
    return f"{formats.money(total)} of {formats.money(view.money.spend_usd)} had no work to show"


def share_words(ratio: float | None) -> str:
    """A share as people say it: ``A third``, ``Nearly half``, ``12 %``."""
    if ratio is None:
        return ""
    return next((words for low, high, words in SHARES if low <= ratio < high), formats.percent(ratio))


def tiles(view: Overview) -> tuple[Tile, ...]:
    """Spend, idle, the three kinds of saving, what is proven. Never a sum across kinds."""
    money, totals = view.money, view.totals
    priced = money.priced_ratio
    note = f"{formats.percent(priced)} of GPU time priced" if priced is not None and priced < 0.995 else ""
    if (money.unseen_ratio or 0.0) >= WORTH_SAYING:
        unseen = f"{formats.money(money.unseen_usd)} of it not seen"
        note = f"{unseen} · {note}" if note else unseen
    nothing = "prices are named below" if money.spend_usd is not None else "no price known"
    if view.previous is not None and view.previous.change_ratio is not None:
        change = formats.change(1 + view.previous.change_ratio, 1)
        note = f"{change} on the period before" + (f" · {note}" if note else "")
    if money.energy_usd is not None:
        energy = (
            f"{formats.money(money.energy_usd)} of energy{' in it' if money.energy_in_spend else ' on top'}"
        )
        note = f"{note} · {energy}" if note else energy
    cash = totals.cash_usd_month if totals else None
    free = totals.capacity_gpu_h_month if totals else None
    less = totals.energy_kwh_month if totals else None
    waiting = "the rules have not run yet" if totals is None else "no claim the evidence would carry"
    idle_note = "no price known" if money.idle_usd is None else _idle_note(view)
    return (
        Tile("Spend", formats.money(money.spend_usd), note or nothing, href="/costs"),
        Tile("Idle", formats.money(money.idle_usd), idle_note, idle=bool(money.idle_usd), href="/fleet"),
        Tile(
            "Could save, cash",
            formats.money(cash.p50) if cash else formats.UNKNOWN,
            f"a month, {formats.spread(cash, 'cash')}" if cash else waiting,
            href="/recommendations",
        ),
        Tile(
            "Could free",
            formats.gpu_hours(free.p50) if free else formats.UNKNOWN,
            f"a month, {formats.spread(free, 'capacity')}: capacity only" if free else waiting,
            href="/recommendations",
        ),
        Tile(
            "Could save, energy",
            formats.kwh(less.p50) if less else formats.UNKNOWN,
            f"a month, of {formats.kwh(view.energy_kwh)} in this period" if less else waiting,
            href="/energy",
        ),
        _proven_tile(view.proven),
    )


def _proven_tile(found: Sequence[Proven]) -> Tile:
    """Verified savings: the hardest kind as the figure, the others in the note."""
    name, href = "Saved and verified", "/recommendations?view=done"
    if not found:
        return Tile(name, formats.UNKNOWN, "no change was verified yet", href=href)
    first, *others = found
    changes = sum(one.cases for one in found)
    note = f"a month, {changes} change{'' if changes == 1 else 's'}"
    if first.predicted is not None:
        note += f", of {AMOUNT[first.ledger](first.predicted)} predicted"
    note += "".join(f" · and {AMOUNT[one.ledger](one.saved)}" for one in others)
    return Tile(name, AMOUNT[first.ledger](first.saved), note, href=href)


def _idle_note(view: Overview) -> str:
    money = view.money
    if not money.idle_usd or not money.spend_usd:
        return "nothing empty, nothing parked"
    empty = float((money.empty_usd or Decimal(0)) / money.spend_usd)
    parked = float((money.parked_usd or Decimal(0)) / money.spend_usd)
    return f"{formats.percent(money.idle_ratio)} · empty {formats.figure(empty * 100)}, parked {formats.figure(parked * 100)}"


def _day_layers(days: Sequence[Day], in_hours: bool) -> list[Layer]:
    def value(day: Day, activity: Activity) -> float | None:
        if in_hours:
            seconds = day.known_seconds_by_activity
            return seconds.get(activity, 0.0) / 3600 if seconds else None
        return float(day.cost_by_activity.get(activity, 0)) if day.cost_by_activity else None

    layers = [
        Layer(activity_class(a), activity_name(a), tuple(value(day, a) for day in days)) for a in ACTIVITY
    ]
    return [layer for layer in layers if any(layer.values)]


def day_activities(view: Overview) -> tuple[Activity, ...]:
    """Activities of the chart of days, in its order; a gap is unknown."""
    return tuple(
        a
        for a in ACTIVITY
        if any(day.cost_by_activity.get(a) or day.known_seconds_by_activity.get(a) for day in view.days)
    )


def days_title(view: Overview) -> str:
    """What the chart of days shows, as a sentence."""
    ratio = view.money.idle_ratio
    if ratio is None:
        return "GPU-hours per day by activity"
    if ratio < 0.02:
        seen = (view.money.unseen_ratio or 0.0) < 0.02
        return "Nearly every dollar bought work" if seen else "Hardly a dollar is known to be idle"
    return f"{share_words(ratio)} of the money did no work"


def build_days(view: Overview, height: float = 220) -> tuple[Markup, bool]:
    """The chart of cost per day by activity; of GPU-hours where nothing is priced."""
    in_hours = view.money.spend_usd is None
    layers = _day_layers(view.days, in_hours)
    unit = "GPU-hours" if in_hours else "US dollars"
    total = {layer.name: sum(v or 0.0 for v in layer.values) for layer in layers}
    text_of = formats.gpu_hours if in_hours else formats.money
    said = ", ".join(f"{name} {text_of(value)}" for name, value in total.items())
    label = f"{unit} per day by activity over {len(view.days)} days; in total {said or 'nothing'}"
    chart = stacked_bars(
        [formats.day(day.from_ms) for day in view.days],
        layers,
        label=label,
        text_of=text_of,
        axis_text=(lambda v: f"{v:g} h") if in_hours else formats.money_axis,
        height=height,
    )
    return chart, in_hours


def build_funnel(view: Overview) -> tuple[str, Markup, str]:
    """Title, chart and note of total › allocated › active › effective."""
    bars = []
    for row in view.funnel:
        text = formats.gpu_hours(row.gpu_h) if row.gpu_h is not None else "unknown: nothing could tell"
        if row.cost_usd is not None:
            text += f" · {formats.money(row.cost_usd)}"
        bars.append(FunnelBar(row.step.capitalize(), row.gpu_h, text, row.unknown_gpu_h))
    label = "; ".join(f"{bar.name} {bar.text}" for bar in bars)
    by_step = {row.step: row for row in view.funnel}
    active = by_step.get("active")
    title = "Where the hours go"
    if active is not None and active.ratio is not None:
        title = f"Work ran in {formats.percent(active.ratio)} of the GPU-hours"
    effective = by_step.get("effective")
    note = ""
    if effective is not None and effective.unknown_gpu_h > 0.5:
        note = (
            f"Effective is unknown for {formats.gpu_hours(effective.unknown_gpu_h)} (hatched: gaps, or cards without"
            " counters); they are not counted as waste."
        )
    return title, funnel(bars, label=f"GPU-hours: {label}"), note


def host_columns(line: HostLine, window: Window) -> list[Column]:
    """What a host's GPUs mostly did, hour by hour; each GPU counts as one hour of the column."""
    return [
        Column(
            window.from_ms + i * HOUR_MS,
            window.from_ms + (i + 1) * HOUR_MS,
            {activity: 3600.0 * count for activity, count in hour.items()},
            3600.0 * line.gpus,
        )
        for i, hour in enumerate(line.hours)
    ]
