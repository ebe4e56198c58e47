"""REST: usage by any key."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import usage as resource
from api.resources.by import By
from api.resources.usage import UsageRow

router = APIRouter(prefix="/usage", tags=["usage"])


@router.get("", response_model=Page[UsageRow], responses=CSV_RESPONSE)
def list_usage(
    scope: ScopeDep,
    listing: ListingDep,
    by: Annotated[By, Query(description="What to group by.")] = By.GPU,
) -> Response:
    """GPU-hours: total › allocated › active › effective, and what is unknown."""
    rows = resource.rows(scope, by)
    return listing.answer(rows, UsageRow, ident=("key",), window=scope.window)
