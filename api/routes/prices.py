"""REST: the user's prices, and which one is in force."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.deps import NowDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import effective_prices
from api.resources import prices as resource
from api.resources.as_json import to_json
from api.resources.effective_prices import EffectivePriceRow
from api.resources.price_specs import COLUMNS, PriceBody, bodies_of, csv_of
from api.resources.prices import ImportView, PriceView
from api.uploads import UploadDep, described
from store.queries import prices as kept

router = APIRouter(prefix="/prices", tags=["prices"])

IdPath = Annotated[int, Path(ge=1, le=2**31 - 1, description="The price's id.")]
SupersedeQuery = Annotated[
    bool, Query(description="End an older price for the same thing where the new one starts.")
]


class EndBody(BaseModel):
    """When a price ends."""

    model_config = ConfigDict(extra="forbid", strict=True)

    valid_to: str = Field(
        max_length=40, description="In force until: a time, or a day in the accounting time zone."
    )


class EffectivePage(Page[EffectivePriceRow]):
    """A page of GPUs with the price in force."""

    priced_count: int = Field(description="GPUs with a price.")
    unpriced_count: int = Field(description="GPUs without one: they have no cost, which is not a cost of 0.")
    stale_count: int = Field(description="GPUs priced by an old entry of the catalogue.")


@router.get("", response_model=Page[PriceView], responses=CSV_RESPONSE)
def list_prices(session: SessionDep, now: NowDep, listing: ListingDep) -> Response:
    """Your prices; where none applies, the catalogue's median on-demand price stands in and is named."""
    return listing.answer(resource.rows(session, now), PriceView, ident=("id",), window=None)


@router.get("/effective", response_model=EffectivePage, responses=CSV_RESPONSE)
def list_effective_prices(
    session: SessionDep, settings: SettingsDep, now: NowDep, listing: ListingDep
) -> Response:
    """Every GPU with the price in force now, where it is from and how old it is; unpriced ones are counted."""
    rows = effective_prices.rows(session, settings, now)
    return listing.answer(
        rows, EffectivePriceRow, ident=("gpu_uuid",), window=None, more=effective_prices.counts(rows)
    )


@router.get("/export", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
def export_prices(session: SessionDep) -> Response:
    """Your prices as the CSV that import reads back exactly."""
    headers = {"Content-Disposition": 'attachment; filename="gpuwise-prices.csv"'}
    return Response(csv_of(kept.listing(session)), media_type="text/csv; charset=utf-8", headers=headers)


@router.post("", response_model=PriceView, status_code=201)
def add_price(
    session: SessionDep,
    settings: SettingsDep,
    now: NowDep,
    body: PriceBody,
    *,
    supersede: SupersedeQuery = False,
) -> Response:
    """Keep a price. Costs of the hours it applies to are figured anew; usage stays as it is."""
    return JSONResponse(to_json(resource.add(session, settings, now, body, supersede=supersede)), 201)


@router.post(
    "/import", response_model=ImportView, status_code=201, openapi_extra=described("prices", COLUMNS)
)
def import_prices(
    session: SessionDep,
    settings: SettingsDep,
    now: NowDep,
    upload: UploadDep,
    *,
    supersede: SupersedeQuery = False,
) -> Response:
    """Keep many prices: all or none; every bad row is named. Those that are there, just so, are left alone."""
    given, unit = upload.rows("prices", bodies_of)
    made = resource.add_all(session, settings, now, given, supersede=supersede, unit=unit)
    return JSONResponse(to_json(made), 201)


@router.patch("/{id_}", response_model=PriceView)
def end_price(
    session: SessionDep, settings: SettingsDep, now: NowDep, id_: IdPath, body: EndBody
) -> Response:
    """Let a price end; what it priced before stays priced."""
    return JSONResponse(to_json(resource.end(session, settings, now, id_, body.valid_to)))


@router.delete("/{id_}", status_code=204)
def remove_price(session: SessionDep, id_: IdPath) -> Response:
    """Remove a price, as if it had never been given."""
    resource.remove(session, id_)
    return Response(status_code=204)
