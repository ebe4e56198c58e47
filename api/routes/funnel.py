"""REST: the funnel of GPU-hours."""

from fastapi import APIRouter
from fastapi.responses import Response

from api.asked import FiltersDep
from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import funnel as resource
from api.resources.funnel import FunnelRow

router = APIRouter(prefix="/funnel", tags=["usage"])


@router.get("", response_model=Page[FunnelRow], responses=CSV_RESPONSE)
def list_funnel(scope: ScopeDep, listing: ListingDep, filters: FiltersDep) -> Response:
    """Total › allocated › active › effective GPU-hours of the fleet, with the money of each step."""
    rows = resource.rows(scope, filters)
    return listing.answer(rows, FunnelRow, ident=("step",), window=scope.window)
