"""REST: hosts."""

from fastapi import APIRouter
from fastapi.responses import Response

from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import hosts as resource
from api.resources.hosts import HostRow

router = APIRouter(prefix="/hosts", tags=["hosts"])


@router.get("", response_model=Page[HostRow], responses=CSV_RESPONSE)
def list_hosts(scope: ScopeDep, listing: ListingDep) -> Response:
    """Hosts with what their GPUs do, how well they are seen and what they cost."""
    rows = resource.rows(scope)
    return listing.answer(rows, HostRow, ident=("host",), window=scope.window)
