"""REST: what a token and a useful GPU-hour costs."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import unit_economics as resource
from api.resources.unit_economics import UnitBy, UnitRow

router = APIRouter(prefix="/unit-economics", tags=["costs"])


@router.get("", response_model=Page[UnitRow], responses=CSV_RESPONSE)
def list_unit_economics(
    scope: ScopeDep,
    listing: ListingDep,
    by: Annotated[
        UnitBy, Query(description="engine; model, as engines serve it; owner, the team.")
    ] = UnitBy.ENGINE,
) -> Response:
    """Dollars per million tokens, joules per token, dollars per useful GPU-hour: at measured use and while busy."""
    return listing.answer(resource.rows(scope, by), UnitRow, ident=("key",), window=scope.window)
