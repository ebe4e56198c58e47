"""REST: GPUs, and one GPU up close."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import JSONResponse, Response

from api import paging
from api.deps import SINCE, UNTIL, NowDep, ScopeDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import gpu_detail, gpus
from api.resources.as_json import to_json
from api.resources.gpu_detail import EventRow, GpuDetail, HourRow, SampleRow
from api.resources.gpus import GpuRow
from api.resources.scope import Scope, scope_of
from core.clock import to_ms
from core.errors import UsageError

router = APIRouter(prefix="/gpus", tags=["gpus"])
UuidPath = Annotated[str, Path(description="UUID as the driver gives it.", max_length=100)]


def newest_scope(
    session: SessionDep,
    settings: SettingsDep,
    now: NowDep,
    since: Annotated[str, Query(description=f"{SINCE} Default: one hour.", max_length=40)] = "1h",
    until: Annotated[str | None, Query(description=UNTIL, max_length=40)] = None,
) -> Scope:
    """The newest hour: raw samples are many."""
    return scope_of(session, settings, now, since, until)


NewestScopeDep = Annotated[Scope, Depends(newest_scope, scope="function")]


@router.get("", response_model=Page[GpuRow], responses=CSV_RESPONSE)
def list_gpus(scope: ScopeDep, listing: ListingDep) -> Response:
    """Every GPU: its newest sample, its coverage over the window, its price."""
    rows = gpus.rows(scope)
    return listing.answer(rows, GpuRow, ident=("gpu_uuid",), window=scope.window)


@router.get("/{gpu_uuid}", response_model=GpuDetail)
def get_gpu(scope: ScopeDep, gpu_uuid: UuidPath) -> Response:
    """One GPU: as in the list, with its card, its state of health and how its power is measured."""
    return JSONResponse(to_json(gpu_detail.detail(scope, gpu_uuid)), headers={"Cache-Control": "no-store"})


@router.get("/{gpu_uuid}/samples", response_model=Page[SampleRow], responses=CSV_RESPONSE)
def list_samples(scope: NewestScopeDep, listing: ListingDep, gpu_uuid: UuidPath) -> Response:
    """Raw samples of one GPU by time, as long as they are kept; by default of the newest hour."""
    after_ms = None if listing.cursor is None else _after_ms(listing.cursor)
    rows = gpu_detail.samples(scope, gpu_uuid, after_ms=after_ms, limit=listing.limit + 1)
    kept = rows[: listing.limit]
    following = paging.encode([to_ms(kept[-1].sampled_at)]) if len(rows) > listing.limit else None
    return listing.page(kept, SampleRow, next_cursor=following, window=scope.window)


def _after_ms(cursor: str) -> int:
    found = paging.decode(cursor)
    if len(found) != 1 or not isinstance(found[0], int):
        raise UsageError("cursor is none of this list's: give next_cursor of the page before as it is")
    return found[0]


@router.get("/{gpu_uuid}/hours", response_model=Page[HourRow], responses=CSV_RESPONSE)
def list_hours(scope: ScopeDep, listing: ListingDep, gpu_uuid: UuidPath) -> Response:
    """Hours of one GPU by time."""
    rows = gpu_detail.gpu_hours(scope, gpu_uuid)
    return listing.answer(rows, HourRow, ident=("hour_at",), window=scope.window)


@router.get("/{gpu_uuid}/events", response_model=Page[EventRow], responses=CSV_RESPONSE)
def list_events(scope: ScopeDep, listing: ListingDep, gpu_uuid: UuidPath) -> Response:
    """What happened to one GPU, by time: XIDs, losses, calls that hang, memory errors, changed modes and drivers."""
    rows = gpu_detail.events(scope, gpu_uuid)
    return listing.answer(rows, EventRow, ident=("at", "kind", "message"), window=scope.window)
