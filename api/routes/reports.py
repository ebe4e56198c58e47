"""REST: the weekly report of the fleet or of an owner, as figures, as the page that is mailed, or as text."""

from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, Field

from api.deps import NowDep, SessionDep, SettingsDep

router = APIRouter(prefix="/reports", tags=["reports"])


MAIL_CSP: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors {}"
"""The report as a file is a mail: its style is inline and its pictures are inside. It may load and run nothing."""
OwnerQuery = Annotated[
    str | None, Query(max_length=300, description="Of this team alone. Default: the whole fleet.")
]
ProjectQuery = Annotated[str | None, Query(max_length=300, description="Of this project of the team alone.")]


class ReportFormat(StrEnum):
    """What the report is answered in."""

    JSON = "json"
    HTML = "html"
    TEXT = "text"


class ReportAction(BaseModel):
    """One thing to do first."""

    recommendation_id: int = Field(description="Key of the recommendation, or of the first of some alike.")
    title: str = Field(description="What to do.")
    sum: str = Field(description="The saving, of an owner its part, for people.")
    because: str = Field(description="One sentence with the numbers.")
    command: str | None = Field(description="To copy; null: there is none, or a mail cannot show it.")
    grown: str | None = Field(description="How much it grew since a report told it; null: it is new.")
    url: str = Field(description="Its page.")


class WeeklyReport(BaseModel):
    """What the weekly report says."""

    period: str = Field(description="First and last day; the key of one sending.")
    subject: str = Field(description="Subject of the mail.")
    owner: str | None = Field(description="Whose; null: the whole fleet.")
    project: str | None = Field(description="Of this project of the owner alone.")
    has_data: bool = Field(description="There is any sample in it.")
    has_news: bool = Field(description="It is worth a mail.")
    simulated: bool = Field(description="It is of the demo fleet.")
    headline: str = Field(description="The sentence at the top.")
    headline_idle: str = Field(description="Its second half, about idle money.")
    compared: str = Field(description="Against the seven days before; empty without them.")
    partial_note: str = Field(description="Why there are fewer than seven days; empty: there are seven.")
    budgets: list[dict[str, Any]] = Field(description="How the month goes.")
    actions: list[ReportAction] = Field(description="What to do first: new, or grown since it was told.")
    still_open: str = Field(description="What was told before and waits; empty: nothing.")
    open_count: int = Field(description="Everything that waits.")
    done: list[dict[str, Any]] = Field(description="What was decided and verified in these days.")
    quality: str = Field(description="Data quality in one line.")
    price_note: str = Field(description="Whose prices.")
    carbon_note: str = Field(description="Which grid factor.")
    overview: dict[str, Any] = Field(
        description="The figures that it rests on; recommendations only of the whole fleet."
    )


@router.get(
    "/weekly",
    response_model=WeeklyReport,
    responses={
        200: {
            "description": "JSON; the self-contained page with format=html; plain text with format=text.",
            "content": {
                "text/html": {"schema": {"type": "string"}},
                "text/plain": {"schema": {"type": "string"}},
            },
        }
    },
)
def weekly(  # noqa: PLR0917 - one parameter of the address each
    session: SessionDep,
    settings: SettingsDep,
    now: NowDep,
    owner: OwnerQuery = None,
    project: ProjectQuery = None,
    format_: Annotated[
        ReportFormat, Query(alias="format", description="json, html or text.")
    ] = ReportFormat.JSON,
) -> Response:
    """The last seven full days of data against the seven before, of the whole fleet or of what an owner pays for."""
    from api import report as reports  # charts and mail parts: only this route needs them
    from api.report_render import render_html, render_text
    from api.resources.report_audiences import audience_of
    from api.resources.weekly_reports import as_json

    made = reports.weekly(session, settings, now, audience_of(session, owner, project))
    match format_:
        case ReportFormat.HTML:
            return HTMLResponse(
                render_html(made), headers={"Content-Security-Policy": MAIL_CSP.format("'none'")}
            )
        case ReportFormat.TEXT:
            return PlainTextResponse(render_text(made))
        case ReportFormat.JSON:
            return JSONResponse(as_json(made))
