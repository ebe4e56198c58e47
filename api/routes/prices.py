"""REST: the user's prices."""

from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from api.deps import NowDep, SessionDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import prices as resource
from api.resources.as_json import to_json
from api.resources.prices import PriceView
from api.resources.scope import parse_time
from api.text import Storable
from core.user_price import Scope

router = APIRouter(prefix="/prices", tags=["prices"])


def _money(value: Any) -> Any:
    """A decimal string or a number; strict models take neither for a decimal, lax ones take ``true``."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("give a decimal string such as 2.50, or a number")  # noqa: TRY004 - pydantic's way to refuse
    return Decimal(str(value)) if isinstance(value, float) else value


Dollars = Annotated[
    Decimal,
    Field(strict=False, ge=0, le=100_000, max_digits=12, decimal_places=6, allow_inf_nan=False),
    BeforeValidator(_money),
]


class PriceBody(BaseModel):
    """A price to keep."""

    model_config = ConfigDict(extra="forbid", strict=True)

    scope_kind: str = Field(description=f"What it is for: {', '.join(Scope)}.")
    scope_value: Storable = Field("", max_length=255, description="Which GPU, host or model; empty for all.")
    usd_per_gpu_hour: Dollars = Field(
        description="Dollars for one GPU-hour, as a decimal string or a number."
    )
    billing: str = Field("on_demand", description="on_demand, reserved, spot or owned.")
    gpus_per_unit: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="GPUs that can only be released together; 1: each alone. Default: all of a host.",
    )
    valid_from: str | None = Field(
        None, max_length=40, description="In force from: a time or a day. Default: since ever."
    )
    valid_to: str | None = Field(None, max_length=40, description="In force until; default: still.")
    note: Storable = Field("", max_length=2_000, description="In your own words.")


@router.get("", response_model=Page[PriceView], responses=CSV_RESPONSE)
def list_prices(session: SessionDep, listing: ListingDep) -> Response:
    """Your prices; where none applies, the catalogue's median on-demand price stands in and is named."""
    return listing.answer(resource.rows(session), PriceView, ident=("id",), window=None)


@router.post("", response_model=PriceView, status_code=201)
def add_price(session: SessionDep, now: NowDep, body: PriceBody) -> Response:
    """Keep a price. Costs of the hours it applies to are figured anew; usage stays as it is."""
    made = resource.add(
        session,
        scope_kind=body.scope_kind,
        scope_value=body.scope_value,
        usd_per_gpu_hour=body.usd_per_gpu_hour,
        billing=body.billing,
        gpus_per_unit=body.gpus_per_unit,
        valid_from_ms=0
        if body.valid_from is None
        else parse_time(body.valid_from, back_from_ms=now, flag="valid_from"),
        valid_to_ms=None
        if body.valid_to is None
        else parse_time(body.valid_to, back_from_ms=now, flag="valid_to"),
        note=body.note,
    )
    return JSONResponse(to_json(made), 201)


@router.delete("/{id_}", status_code=204)
def remove_price(
    session: SessionDep, id_: Annotated[int, Path(ge=1, le=2**31 - 1, description="The price's id.")]
) -> Response:
    """Remove a price, as if it had never been given."""
    resource.remove(session, id_)
    return Response(status_code=204)
