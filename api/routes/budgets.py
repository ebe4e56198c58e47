"""REST: budgets, and how the month goes against each."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse, Response

from api.deps import NowDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import budgets as resource
from api.resources.as_json import to_json
from api.resources.budgets import BudgetBody, BudgetChange, BudgetView
from api.routes.forecast import MONTH

router = APIRouter(prefix="/budgets", tags=["budgets"])

Id = Annotated[int, Path(ge=1, le=2**31 - 1, description="The budget's id.")]


@router.get("", response_model=Page[BudgetView], responses=CSV_RESPONSE)
def list_budgets(
    *,
    session: SessionDep,
    settings: SettingsDep,
    now: NowDep,
    listing: ListingDep,
    month: Annotated[str | None, Query(max_length=20, description=MONTH)] = None,
) -> Response:
    """Budgets of a month: spent, expected at its end, status, the day it breaks, what is left a day."""
    found = resource.rows(session, settings, now, month)
    return listing.answer(found, BudgetView, ident=("id",), window=None)


@router.post("", response_model=BudgetView, status_code=201)
def add_budget(session: SessionDep, settings: SettingsDep, now: NowDep, body: BudgetBody) -> Response:
    """Keep a budget."""
    return JSONResponse(to_json(resource.add(session, settings, body, now)), 201)


@router.patch("/{id_}", response_model=BudgetView)
def change_budget(
    session: SessionDep, settings: SettingsDep, now: NowDep, id_: Id, body: BudgetChange
) -> Response:
    """Change a budget: for all its months, or with since_month from one on. to_month ends it."""
    return JSONResponse(to_json(resource.change(session, settings, id_, body, now)))


@router.delete("/{id_}", status_code=204)
def remove_budget(session: SessionDep, id_: Id) -> Response:
    """Remove a budget, as if it had never been given."""
    resource.remove(session, id_)
    return Response(status_code=204)
