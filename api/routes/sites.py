"""REST: the user's site profiles, and the energy terms of hosts."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.deps import NowDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import sites as resource
from api.resources.as_json import to_json
from api.resources.owner_specs import when
from api.resources.sites import SiteBody, SiteView, TermsView

router = APIRouter(prefix="/sites", tags=["sites"])

Id = Annotated[int, Path(ge=1, le=2**31 - 1, description="The profile's id.")]


class SiteEndBody(BaseModel):
    """When a profile ends."""

    model_config = ConfigDict(extra="forbid", strict=True)

    at: str = Field(max_length=40, description="A time, or a day of the accounting time zone; exclusive.")


@router.get("", response_model=Page[SiteView], responses=CSV_RESPONSE)
def list_sites(session: SessionDep, listing: ListingDep) -> Response:
    """Your site profiles; what none says is taken from the settings."""
    return listing.answer(resource.rows(session), SiteView, ident=("id",), window=None)


@router.get("/terms", response_model=Page[TermsView], responses=CSV_RESPONSE)
def list_terms(
    *,
    session: SessionDep,
    settings: SettingsDep,
    now: NowDep,
    listing: ListingDep,
    host: Annotated[str | None, Query(max_length=255, description="One host; default: all.")] = None,
    at: Annotated[str | None, Query(max_length=40, description="A time or day; default: now.")] = None,
) -> Response:
    """What holds for each host in one hour: tariff, PUE, host share, carbon, and where each is from."""
    at_ms = now if at is None else when(at, settings, now, "at")
    return listing.answer(
        resource.terms(session, settings, at_ms, host), TermsView, ident=("host",), window=None
    )


@router.post("", response_model=SiteView, status_code=201)
def add_site(session: SessionDep, settings: SettingsDep, now: NowDep, body: SiteBody) -> Response:
    """Keep a site profile. Energy of the hours it applies to is priced anew; usage stays as it is."""
    return JSONResponse(to_json(resource.add(session, settings, body, now)), 201)


@router.post("/{id_}/end", response_model=SiteView)
def end_site(session: SessionDep, settings: SettingsDep, now: NowDep, id_: Id, body: SiteEndBody) -> Response:
    """Let a site profile end; what it said of the time before stays."""
    return JSONResponse(to_json(resource.end(session, settings, id_, body.at, now)))


@router.delete("/{id_}", status_code=204)
def remove_site(session: SessionDep, id_: Id) -> Response:
    """Remove a site profile, as if it had never been given."""
    resource.remove(session, id_)
    return Response(status_code=204)
