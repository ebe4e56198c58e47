"""One GPU's day by the hour: what each was, what it cost and at which price; every hour leads to its samples."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts_bands import Column, activity_band, say
from api.pages.frame import Frame, build_frame
from api.pages.gpu import Close, close_up
from api.pages.view import ViewDep
from api.resources import costs
from api.resources.by import By
from api.resources.pricing import price_lookup, spec_of
from api.resources.report_filters import Filters
from api.templating import render
from core.activity import IDLE, Activity
from core.clock import from_ms, iso, to_ms
from core.errors import UsageError
from core.evidence import Window
from core.hour_merge import known_sum
from core.hours import GpuHour
from core.units import HOUR_MS, J_PER_KWH
from ledger.calendar import Calendar, Span
from store.queries import hours

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class HourLine:
    """One clock hour; ``hour`` None: no samples of it. ``worked_s``, ``idle_s``: None too where no activity could be named."""

    hour_ms: int
    href: str
    hour: GpuHour | None
    doing: str
    band: Markup
    worked_s: float | None
    idle_s: float | None
    price_usd: Decimal | None
    cost_usd: Decimal | None
    idle_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class HoursPage:
    """Everything the page prints; totals are of the day, None where nothing is known."""

    frame: Frame
    name: str
    gpu_href: str
    day: str
    zone: str
    before_href: str
    after_href: str | None
    csv_href: str
    lines: tuple[HourLine, ...]
    covered_s: float
    active_s: float | None
    idle_s: float | None
    energy_kwh: float | None
    cost_usd: Decimal | None
    idle_usd: Decimal | None
    basis: str


def day_of(close: Close, day: str) -> Span:
    """The accounting day asked for; without one the day of the GPU's newest sample.

    Raises:
        UsageError: no day.
    """
    calendar = Calendar(close.scope.settings.accounting_time_zone)
    if not day:
        return calendar.day_at(max((close.gpu.last_seen_ms or close.scope.now_ms) - 1, 0))
    try:
        return next(span for span in calendar.days(*_around(day)) if span.key == day)
    except (ValueError, StopIteration) as error:
        raise UsageError(f"day is {day!r}: give a day such as 2026-10-05") from error


def _around(day: str) -> tuple[int, int]:
    """Two days around a day of any time zone."""
    at = date.fromisoformat(day)
    noon = to_ms(datetime(at.year, at.month, at.day, 12, tzinfo=UTC))
    return max(noon - 36 * HOUR_MS, 0), noon + 36 * HOUR_MS


def hour_line(
    close: Close, hour_ms: int, hour: GpuHour | None, price: Decimal | None, cost: costs.CostRow | None
) -> HourLine:
    """One line."""
    seconds = {} if hour is None else hour.seconds
    is_named = any(activity is not Activity.UNKNOWN for activity in seconds)
    column = Column(hour_ms, hour_ms + HOUR_MS, seconds, HOUR_MS / 1000)
    window = Window(hour_ms, hour_ms + HOUR_MS)
    return HourLine(
        hour_ms,
        f"{close.path}/samples?{urlencode({'hour': f'{from_ms(hour_ms):%Y-%m-%dT%H:00:00Z}'})}",
        hour,
        say([column]),
        activity_band([column], window=window, label=formats.minute(hour_ms)),
        hour.active_s if hour is not None and is_named else None,
        sum(seconds.get(a, 0.0) for a in IDLE) if is_named else None,
        price,
        None if cost is None else cost.cost_usd,
        None if cost is None else cost.idle_cost_usd,
    )


def build_hours(close: Close, day: str) -> HoursPage:
    """The page of one day."""
    view, scope = close.view, close.scope
    span = day_of(close, day)
    window = Window(span.from_ms, span.to_ms)
    hourly = replace(scope, window=window, asked=window)
    by_hour = {hour.hour_ms: hour for hour in hours.gpu_hours(scope.session, window, [close.uuid])}
    card = close.gpu.identity
    prices, spec = price_lookup(scope.session, scope.settings), spec_of(card)
    gpu_key = spec.gpu_key if spec else None
    paid = {row.key: row for row in costs.rows(hourly, By.HOUR, Filters(gpu=(close.uuid,)))}
    lines = []
    bases: list[str] = []
    for hour_ms in range(span.from_ms, min(span.to_ms, close.gpu.last_seen_ms or span.to_ms), HOUR_MS):
        price = prices(card, gpu_key, hour_ms)
        if price is not None and price.basis not in bases:
            bases.append(price.basis)
        cost = paid.get(f"{from_ms(hour_ms):%Y-%m-%dT%H:00:00Z}")
        usd = None if price is None else price.usd_per_gpu_hour
        lines.append(hour_line(close, hour_ms, by_hour.get(hour_ms), usd, cost))
    known = list(by_hour.values())
    joules = [hour.energy_j for hour in known if hour.energy_j is not None]
    calendar = Calendar(scope.settings.accounting_time_zone)
    before, after = calendar.day_at(span.from_ms - 1), calendar.day_at(span.to_ms)
    newest = close.gpu.last_seen_ms or 0
    since = urlencode({"format": "csv", "since": iso(span.from_ms), "until": iso(span.to_ms)})
    return HoursPage(
        frame=build_frame(view, active="fleet", title=f"{close.name}, {span.key}", window_text=""),
        name=close.name,
        gpu_href=f"{close.path}?{urlencode({'since': iso(span.from_ms), 'until': iso(span.to_ms)})}",
        day=span.key,
        zone=calendar.zone,
        before_href=f"{close.path}/hours?day={before.key}",
        after_href=f"{close.path}/hours?day={after.key}" if after.from_ms < newest else None,
        csv_href=f"/api/v1{close.path}/hours?{since}",
        lines=tuple(lines),
        covered_s=sum(hour.covered_s for hour in known),
        active_s=known_sum(line.worked_s for line in lines),
        idle_s=known_sum(line.idle_s for line in lines),
        energy_kwh=sum(joules) / J_PER_KWH if joules else None,
        cost_usd=_sum([line.cost_usd for line in lines]),
        idle_usd=_sum([line.idle_usd for line in lines]),
        basis="; ".join(bases),
    )


def _sum(values: list[Decimal | None]) -> Decimal | None:
    known = [value for value in values if value is not None]
    return sum(known, Decimal(0)) if known else None


@router.get("/gpus/{gpu_uuid:path}/hours", response_class=HTMLResponse)
def hours_page(gpu_uuid: str, view: ViewDep, day: Annotated[str, Query(max_length=10)] = "") -> str:
    """One day of one GPU as HTML."""
    return render("pages/gpu_hours.html", build_hours(close_up(view, gpu_uuid), day))
