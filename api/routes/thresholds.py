"""REST: thresholds of the rules, and those that people set."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse, Response

from api.deps import NowDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import thresholds as resource
from api.resources.as_json import to_json
from api.resources.thresholds import EndThresholdsBody, ThresholdsBody, ThresholdView

router = APIRouter(prefix="/thresholds", tags=["thresholds"])

Id = Annotated[int, Path(ge=1, le=2**31 - 1, description="The id that a listed threshold has.")]


@router.get("", response_model=Page[ThresholdView], responses=CSV_RESPONSE)
def list_thresholds(
    *,
    session: SessionDep,
    settings: SettingsDep,
    now: NowDep,
    listing: ListingDep,
    rule_id: Annotated[str | None, Query(max_length=60, description="Of this rule alone.")] = None,
    only_set: Annotated[bool, Query(description="Leave out what is at its default.")] = False,
) -> Response:
    """Every threshold of every rule: value in force, bounds, meaning, and where the value is from."""
    found = resource.rows(session, settings, now, rule_id, only_set=only_set)
    return listing.answer(
        found, ThresholdView, ident=("rule_id", "part", "name", "origin", "id"), window=None
    )


@router.post("", response_model=list[ThresholdView], status_code=201)
def set_thresholds(session: SessionDep, settings: SettingsDep, now: NowDep, body: ThresholdsBody) -> Response:
    """Set thresholds of one rule, for the fleet or a part of it; all of them, or none where one is refused."""
    return JSONResponse(to_json(resource.set_(session, settings, body, now)), 201)


@router.post("/{id_}/end", response_model=list[ThresholdView])
def end_thresholds(
    *,
    session: SessionDep,
    settings: SettingsDep,
    now: NowDep,
    id_: Id,
    body: EndThresholdsBody | None = None,
) -> Response:
    """End what was set, or some of it: the file's values or the defaults hold again. Answers what stays set."""
    return JSONResponse(to_json(resource.end(session, settings, id_, body or EndThresholdsBody(), now)))
