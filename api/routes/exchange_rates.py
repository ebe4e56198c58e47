"""REST: exchange rates of the currencies that prices are in."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse, Response

from api.deps import SessionDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import exchange_rates as resource
from api.resources.as_json import to_json
from api.resources.exchange_rates import COLUMNS, RateBody, RateImportView, RateView, bodies_of
from api.uploads import UploadDep, described

router = APIRouter(prefix="/exchange-rates", tags=["prices"])

ReplaceQuery = Annotated[
    bool, Query(description="Put it in the place of a rate of the same currency and day.")
]


@router.get("", response_model=Page[RateView], responses=CSV_RESPONSE)
def list_rates(session: SessionDep, listing: ListingDep) -> Response:
    """Your exchange rates, by currency and day; as CSV with all columns but id they can be imported again."""
    return listing.answer(resource.rows(session), RateView, ident=("id",), window=None)


@router.post("", response_model=RateView, status_code=201)
def add_rate(session: SessionDep, body: RateBody, *, replace: ReplaceQuery = False) -> Response:
    """Keep a rate. Hours priced in its currency are figured anew from its day to the next rate's."""
    return JSONResponse(to_json(resource.add(session, body, replace_=replace)), 201)


@router.post(
    "/import", response_model=RateImportView, status_code=201, openapi_extra=described("rates", COLUMNS)
)
def import_rates(session: SessionDep, upload: UploadDep, *, replace: ReplaceQuery = False) -> Response:
    """Keep many rates: all or none; every bad row is named. Those that are there, just so, are left alone."""
    given, unit = upload.rows("rates", bodies_of)
    return JSONResponse(to_json(resource.add_all(session, given, replace_=replace, unit=unit)), 201)


@router.delete("/{id_}", status_code=204)
def remove_rate(
    session: SessionDep, id_: Annotated[int, Path(ge=1, le=2**31 - 1, description="The rate's id.")]
) -> Response:
    """Remove a rate; refused while a price starts with it."""
    resource.remove(session, id_)
    return Response(status_code=204)
