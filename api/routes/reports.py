"""REST: the weekly report, as figures or as the page that is mailed."""

from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, Field

from api.deps import NowDep, SessionDep, SettingsDep
from api.resources.as_json import to_json

router = APIRouter(prefix="/reports", tags=["reports"])


MAIL_CSP = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
)
"""The report as a file is a mail: its style is inline and its pictures are inside. It may load and run nothing."""


class ReportFormat(StrEnum):
    """What the report is answered in."""

    JSON = "json"
    HTML = "html"


class WeeklyReport(BaseModel):
    """What the weekly report rests on."""

    period: str = Field(description="The seven days, for people; the key of one sending.")
    subject: str = Field(description="Subject of the mail.")
    overview: dict[str, Any] = Field(description="The figures of the overview page over those days.")


@router.get(
    "/weekly",
    response_model=WeeklyReport,
    responses={
        200: {
            "description": "JSON, or the self-contained page with format=html.",
            "content": {"text/html": {"schema": {"type": "string"}}},
        }
    },
)
def weekly(
    session: SessionDep,
    settings: SettingsDep,
    now: NowDep,
    format_: Annotated[ReportFormat, Query(alias="format", description="json or html.")] = ReportFormat.JSON,
) -> Response:
    """The last seven full days of data against the seven before."""
    from api import report as reports  # charts and mail parts: only this route needs them

    made = reports.weekly(session, settings, now)
    if format_ is ReportFormat.HTML:
        return HTMLResponse(reports.render_html(made), headers={"Content-Security-Policy": MAIL_CSP})
    return JSONResponse({"period": made.period, "subject": made.subject, "overview": to_json(made.overview)})
