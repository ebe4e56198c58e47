"""REST: energy by any key."""

from fastapi import APIRouter
from fastapi.responses import Response

from api.asked import DEFAULT_BY, ByQuery, FiltersDep
from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import energy as resource
from api.resources.energy import EnergyRow

router = APIRouter(prefix="/energy", tags=["energy"])


@router.get("", response_model=Page[EnergyRow], responses=CSV_RESPONSE)
def list_energy(
    scope: ScopeDep,
    listing: ListingDep,
    filters: FiltersDep,
    by: ByQuery = DEFAULT_BY,
) -> Response:
    """Energy at the GPU, with method and coverage."""
    rows = resource.rows(scope, by, filters)
    return listing.answer(rows, EnergyRow, ident=("key", "second_key"), window=scope.window)
