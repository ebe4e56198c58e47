"""REST: costs by any key."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import costs as resource
from api.resources.by import By
from api.resources.costs import CostRow

router = APIRouter(prefix="/costs", tags=["costs"])


@router.get("", response_model=Page[CostRow], responses=CSV_RESPONSE)
def list_costs(
    scope: ScopeDep,
    listing: ListingDep,
    by: Annotated[By, Query(description="What to group by.")] = By.GPU,
) -> Response:
    """Cost, idle cost, energy cost and carbon; an unpriced GPU has none."""
    rows = resource.rows(scope, by)
    return listing.answer(rows, CostRow, ident=("key",), window=scope.window)
