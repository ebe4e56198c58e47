"""REST: GPUs, and one GPU up close."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import JSONResponse, Response

from api import paging
from api.asked import Several, only
from api.deps import SINCE, UNTIL, NowDep, ScopeDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import gpu_detail, gpus
from api.resources.as_json import to_json
from api.resources.fleet_rows import ALL, FleetFilters, gpu_rows
from api.resources.gpu_detail import EventRow, GpuDetail, HourRow, SampleRow
from api.resources.gpus import GpuRow
from api.resources.scope import Scope, scope_of
from core.activity import Activity
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


def fleet_filters(  # noqa: PLR0917 - one parameter a filter
    host: Annotated[Several, only("GPUs in these hosts")] = None,
    model: Annotated[Several, only("GPUs of these models")] = None,
    owner: Annotated[
        Several, only("GPUs of which these teams paid for most of the time; unowned: nobody did")
    ] = None,
    label: Annotated[Several, only("GPUs in hosts with one of these labels (name=value)")] = None,
    engine: Annotated[Several, only("GPUs with these LLM engines or served models")] = None,
    activity: Annotated[
        list[Activity | Literal["silent"]] | None,
        only("GPUs that do this now; silent: no sample while others have some"),
    ] = None,
    find: Annotated[
        str,
        Query(description="Only GPUs with this in UUID, host, model, team, label or engine.", max_length=300),
    ] = "",
) -> FleetFilters:
    """Filters of the page /fleet; several values of one are alternatives, different ones conditions."""
    texts = {"host": host, "model": model, "owner": owner, "label": label, "engine": engine}
    given = {name: tuple(one for one in values or () if one) for name, values in texts.items()}
    return FleetFilters(**given, activity=tuple(str(one) for one in activity or ()), find=find.strip())


FleetFiltersDep = Annotated[FleetFilters, Depends(fleet_filters)]


@router.get("", response_model=Page[GpuRow], responses=CSV_RESPONSE)
def list_gpus(scope: ScopeDep, listing: ListingDep, filters: FleetFiltersDep) -> Response:
    """Every GPU: its newest sample, its coverage over the window, its price. With a filter, cards of the window that fit it."""
    rows = gpus.rows(scope)
    if filters != ALL:
        fitting = {one.now.gpu_uuid for one in gpu_rows(scope, filters)}
        rows = [row for row in rows if row.gpu_uuid in fitting]
    return listing.answer(rows, GpuRow, ident=("gpu_uuid",), window=scope.window)


@router.get("/{gpu_uuid:path}/samples", response_model=Page[SampleRow], responses=CSV_RESPONSE)
def list_samples(scope: NewestScopeDep, listing: ListingDep, gpu_uuid: UuidPath) -> Response:
    """Raw samples of one GPU by time, as long as they are kept; by default of the newest hour."""
    after = None if listing.cursor is None else after_ms(listing.cursor)
    rows = gpu_detail.samples(scope, gpu_uuid, after_ms=after, limit=listing.limit + 1)
    kept = rows[: listing.limit]
    following = paging.encode([to_ms(kept[-1].sampled_at)]) if len(rows) > listing.limit else None
    return listing.page(kept, SampleRow, next_cursor=following, window=scope.window)


def after_ms(cursor: str) -> int:
    """Start of the last sample of the page before. Raises ``UsageError`` for a cursor of another list."""
    found = paging.decode(cursor)
    if len(found) != 1 or not isinstance(found[0], int):
        raise UsageError("cursor is none of this list's: give next_cursor of the page before as it is")
    return found[0]


@router.get("/{gpu_uuid:path}/hours", response_model=Page[HourRow], responses=CSV_RESPONSE)
def list_hours(scope: ScopeDep, listing: ListingDep, gpu_uuid: UuidPath) -> Response:
    """Hours of one GPU by time."""
    rows = gpu_detail.gpu_hours(scope, gpu_uuid)
    return listing.answer(rows, HourRow, ident=("hour_at",), window=scope.window)


@router.get("/{gpu_uuid:path}/events", response_model=Page[EventRow], responses=CSV_RESPONSE)
def list_events(scope: ScopeDep, listing: ListingDep, gpu_uuid: UuidPath) -> Response:
    """What happened to one GPU, by time: XIDs, losses, calls that hang, memory errors, changed modes and drivers."""
    rows = gpu_detail.events(scope, gpu_uuid)
    return listing.answer(rows, EventRow, ident=("at", "kind", "message"), window=scope.window)


@router.get("/{gpu_uuid:path}", response_model=GpuDetail)
def get_gpu(scope: ScopeDep, gpu_uuid: UuidPath) -> Response:
    """One GPU: as in the list, with its card, its state of health and how its power is measured."""
    return JSONResponse(to_json(gpu_detail.detail(scope, gpu_uuid)), headers={"Cache-Control": "no-store"})
