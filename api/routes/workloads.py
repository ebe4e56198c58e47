"""REST: who used what."""

from fastapi import APIRouter
from fastapi.responses import Response

from api.asked import FiltersDep
from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import workloads as resource
from api.resources.workloads import WorkloadView

router = APIRouter(prefix="/workloads", tags=["usage"])


@router.get("", response_model=Page[WorkloadView], responses=CSV_RESPONSE)
def list_workloads(scope: ScopeDep, listing: ListingDep, filters: FiltersDep) -> Response:
    """Every workload that held a GPU: user, owner, GPU-hours, cost, idle cost, energy and carbon."""
    rows = resource.rows(scope, filters)
    return listing.answer(rows, WorkloadView, ident=("workload",), window=scope.window)
