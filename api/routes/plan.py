"""REST: the calculators. They change nothing; POST only carries the inputs."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from api.deps import ScopeDep
from api.resources.as_json import to_json
from api.resources.plan import RentOrBuyRow, rent_or_buy

router = APIRouter(prefix="/plan", tags=["plan"])


def _figure(value: Any) -> Any:
    """Money as a decimal string or a number, as prices take it; the calculator reckons in floats."""
    if not isinstance(value, str):
        return value
    try:
        return float(Decimal(value))
    except InvalidOperation as error:
        raise ValueError("give a decimal string such as 2.50, or a number") from error


Dollars = Annotated[
    float,
    Field(allow_inf_nan=False),
    BeforeValidator(_figure, json_schema_input_type=float | str),
]


class RentOrBuyBody(BaseModel):
    """Inputs by the names of the command line; what is left out comes from settings, prices and measurement."""

    model_config = ConfigDict(extra="forbid", strict=True)

    capex_usd: Dollars | None = Field(
        None, description="Purchase of the node, with network, storage, installation."
    )
    gpu_count: int | None = Field(None, description="GPUs of the node.")
    life_years: float | None = Field(None, description="Years in use.")
    residual_ratio: float | None = Field(None, description="Resale value over purchase.")
    cost_of_capital_ratio: float | None = Field(None, description="Yearly cost of capital.")
    maintenance_ratio: float | None = Field(None, description="Share of the purchase a year.")
    staff_usd_per_year: Dollars | None = Field(None, description="Staff.")
    licences_usd_per_year: Dollars | None = Field(None, description="Licences.")
    colo_usd_per_kw_month: Dollars | None = Field(None, description="Space, on the active draw.")
    colo_includes_power: bool | None = Field(None, description="The colo fee is all-in: no energy is added.")
    pue: float | None = Field(None, description="Power usage effectiveness.")
    tariff_usd_per_kwh: Dollars | None = Field(None, description="Electricity price.")
    idle_kw: float | None = Field(None, description="The node's draw when idle.")
    active_kw: float | None = Field(None, description="The node's draw at work.")
    own_opex_usd_per_hour: Dollars | None = Field(
        None, description="All running cost of owning in one figure."
    )
    rent_usd_per_gpu_hour: Dollars | None = Field(None, description="Rent of one GPU.")
    rent_usd_per_hour: Dollars | None = Field(None, description="Rent of the whole node.")
    utilisation: float | None = Field(
        None, description="Share of hours the machine is wanted. Default: measured."
    )
    utilisation_p25: float | None = Field(None, description="Lower quartile of the use.")
    utilisation_p75: float | None = Field(None, description="Upper quartile of the use.")
    gpu_model: str | None = Field(None, description="Measure and price only this model.", max_length=200)
    host: str | None = Field(None, description="Measure and price only this host.", max_length=255)


@router.post("/rent-or-buy", response_model=RentOrBuyRow)
def post_rent_or_buy(scope: ScopeDep, body: RentOrBuyBody) -> Response:
    """Rent or buy: payback, break-even use, ranges and everything assumed."""
    given = body.model_dump(exclude_none=True)
    gpu_model, host = given.pop("gpu_model", None), given.pop("host", None)
    return JSONResponse(to_json(rent_or_buy(scope, given, gpu_model=gpu_model, host=host)))
