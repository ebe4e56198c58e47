"""REST: costs by any key."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from api.asked import DEFAULT_BY, ByQuery, FiltersDep
from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page, Span
from api.resources import costs as resource
from api.resources.as_json import to_json
from api.resources.by import By
from api.resources.cost_parts import EnergyPart, Group, PricePart, cost_parts
from api.resources.costs import CostRow
from api.resources.idle_sharing import IdlePolicy
from core.errors import NotFoundError, UsageError

router = APIRouter(prefix="/costs", tags=["costs"])
IDLE = (
    "What becomes of the idle cost of GPUs that nobody owns: keep (a row of its own), even, or proportional to what each "
    "group costs; day by day, by owner, project, cost_centre, workload, user or namespace."
)


class CostPage(Page[CostRow]):
    """Costs, and which months of theirs are closed."""

    months_closed: list[str]


class CostPartsBody(BaseModel):
    """What a cost is made of."""

    cost: CostRow = Field(description="The cost as costs gives it.")
    prices: list[PricePart] = Field(description="Hours × price.")
    corrections: list[PricePart] = Field(description="The same, booked after its month was closed.")
    energy: list[EnergyPart] = Field(description="Energy by place; billed_usd of it is in the cost.")
    billed_usd: str = Field(description="Energy in the cost.")
    shared_usd: str = Field(description="Idle cost shared out to the group; below 0: taken from it.")
    sum_usd: str = Field(description="All parts together: the cost, to the micro-dollar.")
    unpriced_gpu_h: float = Field(description="Time without a price: in no cost.")
    window: Span = Field(description="The window the figures are of.")


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


@router.get("/parts", response_model=CostPartsBody)
def get_cost_parts(
    scope: ScopeDep,
    filters: FiltersDep,
    by: Annotated[By, Query(description="What the cost is a group of: one key of costs.")] = By.GPU,
    key: Annotated[
        str | None, Query(max_length=1000, description="key of that group. Default: everything.")
    ] = None,
    *,
    nobody: Annotated[bool, Query(description="The group without a key, such as unowned time.")] = False,
    idle: Annotated[IdlePolicy, Query(description=IDLE)] = IdlePolicy.KEEP,
) -> Response:
    """What one cost is made of: hours × price, corrections, energy × tariff, shared idle cost; the parts add up to it."""
    if nobody and key:
        raise UsageError("key and nobody name two groups: give one")
    group = Group(is_nobody=True) if nobody else Group(key=key) if key else None
    found = cost_parts(scope, by, group, filters, idle=idle)
    if found is None:
        raise NotFoundError(
            "no such group has a cost in this window: GET /api/v1/costs lists those that have"
        )
    body = {
        "cost": found.row,
        "prices": found.prices,
        "corrections": found.corrections,
        "energy": found.energy,
        "billed_usd": found.billed_usd,
        "shared_usd": found.shared_usd,
        "sum_usd": found.sum_usd,
        "unpriced_gpu_h": found.unpriced_gpu_h,
        "window": scope.window,
    }
    return JSONResponse(to_json(body))
