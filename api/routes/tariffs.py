"""REST: the user's tariffs."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.deps import NowDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import tariffs as resource
from api.resources.as_json import to_json
from api.resources.tariff_specs import TariffBody
from api.resources.tariffs import TariffView

router = APIRouter(prefix="/tariffs", tags=["tariffs"])
MOST: int = 1_000

Id = Annotated[int, Path(ge=1, le=2**31 - 1, description="The tariff's id.")]


class TariffsBody(BaseModel):
    """Tariffs to keep, all or none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tariffs: list[TariffBody] = Field(max_length=MOST, description="One that is there already stays.")


class TariffEndBody(BaseModel):
    """When something ends."""

    model_config = ConfigDict(extra="forbid", strict=True)

    at: str = Field(max_length=40, description="A time, or a day of the tariff's time zone; exclusive.")


@router.get("", response_model=Page[TariffView], responses=CSV_RESPONSE)
def list_tariffs(session: SessionDep, listing: ListingDep) -> Response:
    """Your tariffs, by name and start; a site profile says for which hosts one holds."""
    return listing.answer(resource.rows(session), TariffView, ident=("id",), window=None)


@router.post("", response_model=TariffView, status_code=201)
def add_tariff(session: SessionDep, settings: SettingsDep, now: NowDep, body: TariffBody) -> Response:
    """Keep a tariff. Energy of the hours it applies to is priced anew; usage stays as it is."""
    return JSONResponse(to_json(resource.add(session, settings, body, now)), 201)


@router.post("/import", response_model=list[TariffView])
def import_tariffs(session: SessionDep, settings: SettingsDep, now: NowDep, body: TariffsBody) -> Response:
    """Keep many tariffs, all or none, and list all there are then."""
    given = [(f"tariff {number}", one) for number, one in enumerate(body.tariffs, 1)]
    return JSONResponse(to_json(resource.add_all(session, settings, given, now)))


@router.post("/{id_}/end", response_model=TariffView)
def end_tariff(
    session: SessionDep, settings: SettingsDep, now: NowDep, id_: Id, body: TariffEndBody
) -> Response:
    """Let a tariff end; what it priced before stays priced."""
    return JSONResponse(to_json(resource.end(session, settings, id_, body.at, now)))


@router.delete("/{id_}", status_code=204)
def remove_tariff(session: SessionDep, id_: Id) -> Response:
    """Remove a tariff, as if it had never been given."""
    resource.remove(session, id_)
    return Response(status_code=204)
