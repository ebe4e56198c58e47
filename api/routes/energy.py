"""REST: energy by any key."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import energy as resource
from api.resources.by import By
from api.resources.energy import EnergyRow

router = APIRouter(prefix="/energy", tags=["energy"])


@router.get("", response_model=Page[EnergyRow], responses=CSV_RESPONSE)
def list_energy(
    scope: ScopeDep,
    listing: ListingDep,
    by: Annotated[By, Query(description="What to group by.")] = By.GPU,
) -> Response:
    """Energy at the GPU, with method and coverage."""
    rows = resource.rows(scope, by)
    return listing.answer(rows, EnergyRow, ident=("key",), window=scope.window)
