"""REST: usage by any key."""

from fastapi import APIRouter
from fastapi.responses import Response

from api.asked import DEFAULT_BY, ByQuery, FiltersDep
from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import usage as resource
from api.resources.usage import UsageRow

router = APIRouter(prefix="/usage", tags=["usage"])


@router.get("", response_model=Page[UsageRow], responses=CSV_RESPONSE)
def list_usage(
    scope: ScopeDep,
    listing: ListingDep,
    filters: FiltersDep,
    by: ByQuery = DEFAULT_BY,
) -> Response:
    """GPU-hours: total › allocated › active › effective, and what is unknown."""
    rows = resource.rows(scope, by, filters)
    return listing.answer(rows, UsageRow, ident=("key", "second_key"), window=scope.window)
