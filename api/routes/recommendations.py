"""REST: recommendations and what people do with them."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.asked import Several, only
from api.deps import NowDep, SessionDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.ranking import rank
from api.resources import recommendation_actions as actions
from api.resources.advise import last_run, last_spend, last_totals
from api.resources.as_json import to_json
from api.resources.overview import WAITING
from api.resources.recommendation_actions import Act, StepView
from api.resources.recommendation_filters import Asked, fitting, known_of
from api.resources.recommendations import RecommendationRow, TotalsView, row_of, totals_view
from api.text import Storable
from core.clock import from_ms
from core.finding import NotEvaluated, Status
from store.queries import recommendations as kept

router = APIRouter(prefix="/recommendations", tags=["recommendations"])
IdPath = Annotated[int, Path(ge=1, le=2**31 - 1, description="The recommendation's id.")]


StepPath = Annotated[Act, Path(description="What you do with it.")]


class RecommendationPage(Page[RecommendationRow]):
    """A page of recommendations, with what the last run of the rules said beside them."""

    not_evaluated: list[NotEvaluated] = Field(description="What the last run could not judge, and why.")
    totals: TotalsView | None = Field(
        description="After overlap, of the last run; null before the first one."
    )
    evaluated_at: datetime | None = Field(description="When the rules last ran, UTC.")


class StepBody(BaseModel):
    """What goes with a step."""

    model_config = ConfigDict(extra="forbid", strict=True)

    note: Storable | None = Field(
        default=None, max_length=2_000, description="In your words; required to dismiss."
    )
    who: Storable | None = Field(default=None, max_length=200, description="Who you are; kept with the step.")
    until: str | None = Field(
        default=None, max_length=40, description="Snooze only, required: the time or day it returns."
    )
    at: str | None = Field(
        default=None,
        max_length=40,
        description="Done only: when it was done, if before now; before and after are compared from then on.",
    )


def filters(  # noqa: PLR0917 - one parameter a filter
    rule: Annotated[Several, only("findings of these rules")] = None,
    host: Annotated[Several, only("what is about these hosts, or GPUs in them")] = None,
    owner: Annotated[Several, only("what is about GPUs most of which these teams pay for")] = None,
    model: Annotated[Several, only("what is about GPUs of these models")] = None,
    saves: Annotated[Several, only("what saves cash, capacity or energy, or none of them (none)")] = None,
    grade: Annotated[Several, only("figures of these grades (A, B, C, D)")] = None,
    effort: Annotated[Several, only("low, medium or high effort")] = None,
    assignee: Annotated[Several, only("what these people claimed")] = None,
    gpu: Annotated[Several, only("what is about these GPUs, by UUID")] = None,
    engine: Annotated[Several, only("what is about these engines")] = None,
    q: Annotated[
        Several, only("those with all of these words in title, reason, subject, host or note")
    ] = None,
) -> Asked:
    """Filters of the list; several of one are alternatives, of different ones conditions."""
    given = {
        "rule": rule,
        "host": host,
        "owner": owner,
        "model": model,
        "saves": saves,
        "grade": grade,
        "effort": effort,
        "assignee": assignee,
        "gpu": gpu,
        "engine": engine,
        "q": q,
    }
    return {name: values for name, values in given.items() if values}


@router.get("", response_model=RecommendationPage, responses=CSV_RESPONSE)
def list_recommendations(
    session: SessionDep,
    listing: ListingDep,
    asked: Annotated[Asked, Depends(filters)],
    status: Annotated[list[Status] | None, Query(description="Only these; default: all.")] = None,
) -> Response:
    """Findings with their status, best first; what could not be judged; totals of all that wait, after overlap."""
    found = kept.listing(session, status)
    if asked:
        found = fitting(asked, found, known_of(session, last_spend(session)))
    items = sorted(found, key=lambda item: (rank(item.finding), item.id))
    last = last_run(session)
    now = last_totals(session, kept.listing(session, WAITING, brief=True))
    more = {
        "not_evaluated": [] if last is None else to_json(last.not_evaluated),
        "totals": None if now is None else to_json(totals_view(now[0])),
        "evaluated_at": None if last is None else to_json(from_ms(last.at_ms)),
    }
    rows = [row_of(item.finding, item) for item in items]
    window = None if last is None else last.window
    return listing.answer(rows, RecommendationRow, ident=("id",), window=window, more=more)


@router.get("/{id_}", response_model=RecommendationRow)
def one_recommendation(session: SessionDep, id_: IdPath) -> Response:
    """One recommendation."""
    return JSONResponse(to_json(actions.find(session, id_)))


@router.post("/{id_}/{step}", response_model=RecommendationRow)
def take_step(
    session: SessionDep, now: NowDep, id_: IdPath, step: StepPath, body: StepBody | None = None
) -> Response:
    """Claim it, say it is done, snooze it until a time, dismiss it with a reason, reopen it."""
    given = body or StepBody()
    row = actions.act(session, id_, step, now, note=given.note, until=given.until, who=given.who, at=given.at)
    return JSONResponse(to_json(row))


@router.get("/{id_}/events", response_model=list[StepView])
def steps_of(session: SessionDep, id_: IdPath) -> Response:
    """Every step of its life, oldest first: who, when, why."""
    return JSONResponse(to_json(actions.steps(session, id_)))
