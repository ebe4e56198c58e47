"""REST: LLM engines, and the samples of one."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import Response

from api import paging
from api.deps import ScopeDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import engine_samples
from api.resources import engines as resource
from api.resources.engine_samples import EngineSampleView
from api.resources.engines import EngineRow
from api.routes.gpus import NewestScopeDep, after_ms
from core.clock import to_ms

router = APIRouter(prefix="/engines", tags=["engines"])


@router.get("", response_model=Page[EngineRow], responses=CSV_RESPONSE)
def list_engines(scope: ScopeDep, listing: ListingDep) -> Response:
    """Load, rate, energy and money per token, and distance from the hardware's limits."""
    rows = resource.rows(scope)
    return listing.answer(rows, EngineRow, ident=("engine",), window=scope.window)


@router.get("/{engine:path}/samples", response_model=Page[EngineSampleView], responses=CSV_RESPONSE)
def list_samples(
    scope: NewestScopeDep,
    listing: ListingDep,
    engine: Annotated[str, Path(description="Engine as engines names it, slashes and all.", max_length=300)],
) -> Response:
    """Raw samples of one engine by time, as long as they are kept; by default of the newest hour."""
    after = None if listing.cursor is None else after_ms(listing.cursor)
    rows = engine_samples.samples(scope, engine, after_ms=after, limit=listing.limit + 1)
    kept = rows[: listing.limit]
    following = paging.encode([to_ms(kept[-1].sampled_at)]) if len(rows) > listing.limit else None
    return listing.page(kept, EngineSampleView, next_cursor=following, window=scope.window)
