"""REST: costs by any key."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from api.asked import DEFAULT_BY, ByQuery, FiltersDep
from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import costs as resource
from api.resources.costs import CostRow
from api.resources.idle_sharing import IdlePolicy

router = APIRouter(prefix="/costs", tags=["costs"])
IDLE = (
    "What becomes of the idle cost of GPUs that nobody owns: keep (a row of its own), even, or proportional to what each "
    "group costs; day by day, by owner, project, cost_centre, workload, user or namespace."
)


class CostPage(Page[CostRow]):
    """Costs, and which months of theirs are closed."""

    months_closed: list[str]


@router.get("", response_model=CostPage, responses=CSV_RESPONSE)
def list_costs(
    scope: ScopeDep,
    listing: ListingDep,
    filters: FiltersDep,
    by: ByQuery = DEFAULT_BY,
    idle: Annotated[IdlePolicy, Query(description=IDLE)] = IdlePolicy.KEEP,
) -> Response:
    """Cost, idle cost, energy cost and carbon; an unpriced GPU has none."""
    rows = resource.listing(scope, by, filters, idle=idle)
    more = {"months_closed": resource.months_closed(scope)}
    return listing.answer(rows, CostRow, ident=("key", "second_key"), window=scope.window, more=more)
