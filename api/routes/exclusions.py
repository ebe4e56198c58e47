"""REST: what the rules leave alone, until when, and what an exclusion would cover."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.deps import NowDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import exclusions as resource
from api.resources.as_json import to_json
from api.resources.exclusion_cover import Coverage
from api.resources.exclusions import ExclusionBody, ExclusionEnded, ExclusionMade, ExclusionView
from api.text import Named

router = APIRouter(prefix="/exclusions", tags=["exclusions"])

Id = Annotated[int, Path(ge=1, le=2**31 - 1, description="The exclusion's id.")]


class EndBody(BaseModel):
    """What goes with an end."""

    model_config = ConfigDict(extra="forbid", strict=True)

    who: Named | None = Field(default=None, max_length=200, description="Who you are; kept with it.")


@router.get("", response_model=Page[ExclusionView], responses=CSV_RESPONSE)
def list_exclusions(
    *,
    session: SessionDep,
    settings: SettingsDep,
    now: NowDep,
    listing: ListingDep,
    past: Annotated[bool, Query(description="Also those that are over or were ended.")] = False,
) -> Response:
    """Exclusions in force and to come, of the file and of the database; the first to end first."""
    found = resource.rows(session, settings, now, past=past)
    return listing.answer(found, ExclusionView, ident=("until", "origin", "id", "part"), window=None)


@router.post("", response_model=ExclusionMade, status_code=201)
def add_exclusion(session: SessionDep, settings: SettingsDep, now: NowDep, body: ExclusionBody) -> Response:
    """Leave a part of the fleet alone until a day; what is open about it is set aside at once."""
    return JSONResponse(to_json(resource.add(session, settings, body, now)), 201)


@router.post("/dry-run", response_model=Coverage)
def look_at_exclusion(
    session: SessionDep, settings: SettingsDep, now: NowDep, body: ExclusionBody
) -> Response:
    """What an exclusion would cover: GPUs, engines, open recommendations. Nothing is kept."""
    return JSONResponse(to_json(resource.look(session, settings, body, now)))


@router.post("/{id_}/end", response_model=ExclusionEnded)
def end_exclusion(session: SessionDep, now: NowDep, id_: Id, body: EndBody | None = None) -> Response:
    """End an exclusion before its time; what it had set aside is open again at once."""
    return JSONResponse(to_json(resource.end(session, id_, now, (body or EndBody()).who)))
