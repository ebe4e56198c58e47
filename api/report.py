"""The weekly report: the last seven full days of data against the seven before, of an owner or of the whole fleet."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from markupsafe import Markup
from sqlalchemy.orm import Session

from api import formats
from api import report_lines as lines
from api.overview_parts import build_days, build_funnel, day_activities, days_title, headline
from api.rec_row import RecommendationRow, rows_of
from api.report_model import HostIdle, ReportChart, WeeklyReport
from api.resources.ledger_anew import anew
from api.resources.overview_model import Overview
from api.resources.report_week import HostMoney, Week, period_of, week
from api.resources.scope import Scope
from core.evidence import Window
from core.ownership import Owner
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS
from store.queries import report_told
from store.queries.hours import bounds
from store.queries.recommendations import Recommendation
from store.queries.report_told import Told

DAYS: Final = 7
BEST: Final = 3
HOSTS: Final = 6
NEWS_RATIO: Final = 0.005
"""Idle money that changed by less is not a change."""


def report_window(data: Window) -> tuple[Window, str]:
    """The last seven full UTC days of data, and a note where there are fewer.

    Days end at the newest full one; data that hold no full day are taken as they are.
    """
    end = data.to_ms - data.to_ms % DAY_MS
    start = end - DAYS * DAY_MS
    if end - data.from_ms < DAY_MS - HOUR_MS:
        length = formats.duration((data.to_ms - data.from_ms) / 1000)
        return data, f"There is no full day of data yet: these are {length}."
    if data.from_ms - start >= HOUR_MS:
        first = data.from_ms - data.from_ms % HOUR_MS
        days = (end - first) / DAY_MS
        return Window(first, end), f"There are {days:.1f} days of data so far, not seven."
    return Window(start, end), ""


def window_of(session: Session, now_ms: int, until_ms: int | None = None) -> tuple[Window, str]:
    """The days of a report as of the newest data, or of those before ``until_ms``; and a note where there are fewer."""
    data = bounds(session)
    if data is not None and until_ms is not None:
        data = Window(data.from_ms, min(data.to_ms, until_ms)) if data.from_ms < until_ms else None
    if data is not None:
        return report_window(data)
    end_ms = now_ms if until_ms is None else until_ms
    return Window(end_ms - DAYS * DAY_MS, end_ms), ""


def weekly(
    session: Session,
    settings: Settings,
    now_ms: int,
    audience: Owner | None = None,
    *,
    until_ms: int | None = None,
) -> WeeklyReport:
    """The report as of the newest data; ``audience`` None: of the whole fleet; ``until_ms``: of the days before it."""
    window, note = window_of(session, now_ms, until_ms)
    waiting = anew(session, settings, now_ms)
    note = " ".join(part for part in (note, "" if waiting is None else str(waiting)) if part)
    before = report_told.before(session, audience, period_of(window))
    found = week(Scope(session, settings, now_ms, window), audience, adds_up=bool(before))
    return report_of(found, settings, note, before)


def report_of(
    found: Week, settings: Settings, partial_note: str = "", before: Mapping[str, Told] | None = None
) -> WeeklyReport:
    """Lay out a week as a report; pure. ``before``: what earlier reports of this audience told, by fingerprint."""
    view = found.view
    told_before = dict(before or {})
    news, known = lines.split(view.recommendations, told_before)
    rows, grown, told = _actions(found, news, told_before)
    first, second = headline(view)
    done = lines.done_lines(found)
    return WeeklyReport(
        window=view.window,
        audience=found.audience,
        audience_name=lines.audience_name(found.audience),
        period=period_of(view.window),
        days=formats.days(view.window.from_ms, view.window.to_ms),
        has_data=view.has_data,
        has_news=view.has_data and has_news(view, has_actions=bool(rows or done)),
        simulated=view.simulated,
        subject=subject(view, found.audience),
        headline=_whose(first, found.audience),
        headline_idle=second,
        compared=compared(view),
        partial_note=partial_note,
        tiles=lines.tiles(view),
        budgets=lines.budget_lines(found),
        recommendations=rows,
        grown=grown,
        still_open=lines.still_open(len(known), found.totals(known)) if known else "",
        open_count=view.open_count,
        done=done[: lines.DONE],
        done_more=max(0, len(done) - lines.DONE),
        charts=_charts(view) if view.has_data else (),
        activities=day_activities(view),
        hosts=_hosts(found.hosts),
        hosts_more=max(0, len(found.hosts) - HOSTS),
        hosts_all=HostIdle("All", view.gpu_count, view.money.spend_usd, view.money.idle_usd)
        if len(found.hosts) > 1
        else None,
        quality=lines.quality(found),
        price_note=lines.joined(view.price_note.split("; ")),
        carbon_note=lines.clip(view.carbon_note, lines.SENTENCE),
        base_url=settings.base_url.rstrip("/"),
        overview=view if found.audience is None else replace(view, recommendations=()),
        told=told,
    )


def _whose(sentence: str, audience: Owner | None) -> str:
    """The fleet's sentence as an owner's."""
    if audience is None:
        return sentence
    name = lines.audience_name(audience)
    return sentence.replace("You ", f"{name} ", 1) if sentence.startswith("You ") else sentence


def has_news(view: Overview, *, has_actions: bool) -> bool:
    """Something was spent (or held, where nothing is priced), idle money changed, or there is something to do."""
    if has_actions:
        return True
    now, before = view.money.idle_usd, None if view.previous is None else view.previous.idle_usd
    if view.money.spend_usd is None:
        return any(row.gpu_h for row in view.funnel if row.step == "total")
    if view.money.spend_usd > 0:
        return True
    return before is not None and abs((now or Decimal(0)) - before) > before * Decimal(str(NEWS_RATIO))


def _actions(
    found: Week, news: Sequence[Recommendation], before: Mapping[str, Told]
) -> tuple[tuple[RecommendationRow, ...], dict[str, str], tuple[Told, ...]]:
    """The best of what is news as rows, by how much those that were told have grown, and what is told now."""
    by_id = {item.id: item for item in news}
    rows: list[RecommendationRow] = []
    grown: dict[str, str] = {}
    told: list[Told] = []
    for row in rows_of(news, found.host_of, most=BEST):
        items = [by_id[int(id_)] for id_ in _ids(row)]
        told += [lines.figure_of(item) for item in items]
        then = [before[one.finding.fingerprint] for one in items if one.finding.fingerprint in before]
        if then:
            was = sum(one.figure or 0.0 for one in then)
            grown[row.id] = f"grew since it was told: {lines.ledger_words(then[0].ledger, was)} then"
        rows.append(_mail_row(row, found.parts.get(items[0].id)))
    return tuple(rows), grown, tuple(told)


def _ids(row: RecommendationRow) -> list[str]:
    return [one.href.rpartition("/")[2] for one in row.alike] or [row.id]


def _mail_row(row: RecommendationRow, share: float | None) -> RecommendationRow:
    """The row in lengths that a mail bears; a command comes out as it is, or not at all."""
    command = lines.command_of(row.command)
    action = row.action
    if row.command is not None and command is None:
        why = (
            "is too long for a mail"
            if len(row.command) > lines.COMMAND
            else "holds letters that a mail cannot show"
        )
        action = f"Its command {why}: copy it in gpuwise."
    note = row.sum_note if share is None else f"{row.sum_note} · your part of it"
    return replace(
        row,
        title=lines.clip(row.title, lines.TITLE),
        because=lines.clip(row.because, lines.SENTENCE),
        sum_note=lines.clip(note, lines.TITLE),
        command=command,
        action=None if action is None else lines.clip(action, lines.SENTENCE),
    )


def subject(view: Overview, audience: Owner | None = None) -> str:
    """The subject with its number."""
    when = formats.days(view.window.from_ms, view.window.to_ms)
    mark = "[simulated] " if view.simulated else ""
    who = "gpuwise" if audience is None else f"gpuwise, {lines.audience_name(audience)}"
    if not view.has_data:
        return f"{mark}{who}: no samples, {when}"
    money = view.money
    if money.spend_usd is None:
        total = next((row.gpu_h for row in view.funnel if row.step == "total"), None)
        return f"{mark}{who}: {formats.gpu_hours(total)}, no price known, {when}".replace(formats.NBSP, " ")
    idle = f", {formats.money(money.idle_usd)} of it idle" if money.idle_usd is not None else ""
    return f"{mark}{who}: {formats.money(money.spend_usd)} spent{idle}, {when}".replace(formats.NBSP, " ")


def compared(view: Overview) -> str:
    """The week against the one before; empty when that one is not there in full."""
    before = view.previous
    if before is None or before.spend_usd is None or view.money.spend_usd is None:
        return ""
    text = f"Spend {formats.change(view.money.spend_usd, before.spend_usd)} on the {DAYS} days before ({formats.money(before.spend_usd)})"
    if before.idle_usd is not None and view.money.idle_usd is not None:
        change = formats.change(view.money.idle_usd, before.idle_usd)
        text += f"; idle {change} ({formats.money(before.idle_usd)})" if before.idle_usd else ""
    return text + "."


def _charts(view: Overview) -> tuple[ReportChart, ...]:
    days, in_hours = build_days(view, height=190)
    title, bars, note = build_funnel(view)
    unit = "GPU-hours per day by activity." if in_hours else "Cost per day by activity, in US dollars."
    return (
        ReportChart("days", days_title(view), days, _label(days), unit, 202),
        ReportChart("funnel", title, bars, _label(bars), note, 188),
    )


def _label(svg: Markup) -> str:
    """The chart's accessible name: what the picture says, for the mail's alt text."""
    start = svg.index('aria-label="') + len('aria-label="')
    return html.unescape(svg[start : svg.index('"', start)])


def _hosts(found: Sequence[HostMoney]) -> tuple[HostIdle, ...]:
    return tuple(
        HostIdle(
            "host unknown" if row.host is None else lines.clip(row.host, lines.NAME),
            row.gpus,
            row.sums.spend_usd,
            row.sums.usd("idle_cost_usd"),
        )
        for row in found[:HOSTS]
    )
