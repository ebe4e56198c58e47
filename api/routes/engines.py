"""REST: LLM engines."""

from fastapi import APIRouter
from fastapi.responses import Response

from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import engines as resource
from api.resources.engines import EngineRow

router = APIRouter(prefix="/engines", tags=["engines"])


@router.get("", response_model=Page[EngineRow], responses=CSV_RESPONSE)
def list_engines(scope: ScopeDep, listing: ListingDep) -> Response:
    """Load, rate, energy and money per token, and distance from the hardware's limits."""
    rows = resource.rows(scope)
    return listing.answer(rows, EngineRow, ident=("engine",), window=scope.window)
