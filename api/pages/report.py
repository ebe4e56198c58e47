"""The weekly report as a page: the same words as the mail, the charts as SVG."""

from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from api import formats
from api.deps import NowDep, SessionDep, SettingsDep
from api.pages.frame import Frame, build_frame
from api.report import WeeklyReport, weekly
from api.resources.scope import Scope
from api.templating import render
from core.evidence import Window
from core.units import DAY_MS

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class ReportPage:
    """The report, and whether it would be mailed."""

    frame: Frame
    report: WeeklyReport
    mailing: str


def mailing(recipients: tuple[str, ...], weekday: int, hour: int) -> str:
    """Who gets it and when, in words."""
    if not recipients:
        return "No recipients are set (report_recipients), so it is not mailed."
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    noun = "recipient" if len(recipients) == 1 else "recipients"
    return f"Mailed to {len(recipients)} {noun} every {days[weekday]} at {hour:02d}:00 UTC."


def build_report(scope: Scope) -> ReportPage:
    """The page as of the newest data."""
    report = weekly(scope.session, scope.settings, scope.now_ms)
    frame = build_frame(
        Scope(scope.session, scope.settings, scope.now_ms, report.window),
        active="report",
        title="Weekly report",
        window_text=formats.span(report.window.from_ms, report.window.to_ms),
        coverage_ratio=report.overview.coverage_ratio,
    )
    settings = scope.settings
    return ReportPage(
        frame, report, mailing(settings.report_recipients, settings.report_weekday, settings.report_hour_utc)
    )


@router.get("/report", response_class=HTMLResponse)
def report_page(session: SessionDep, settings: SettingsDep, now: NowDep) -> str:
    """The report as HTML."""
    return render("pages/report.html", build_report(Scope(session, settings, now, Window(now - DAY_MS, now))))
