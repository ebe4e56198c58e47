"""Inputs of rent-or-buy and of the mix, said once: the body of a request, and the flags of the command line."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from api.refusals import shown
from api.resources.plan_measured import Wanted


def _figure(value: Any) -> Any:
    """Money as a decimal string or a number, as prices take it; the calculator reckons in floats."""
    if not isinstance(value, str):
        return value
    try:
        return float(Decimal(value))
    except InvalidOperation as error:
        raise ValueError(
            f"{shown(value)} is no amount: give a decimal string such as 2.50, or a number"
        ) from error


def _wanted(value: Any) -> Any:
    return Wanted(value) if isinstance(value, str) and value in set(Wanted) else value


Dollars = Annotated[
    float,
    Field(allow_inf_nan=False),
    BeforeValidator(_figure, json_schema_input_type=float | str),
]
Figure = Annotated[float, Field(allow_inf_nan=False)]


class OwnedBody(BaseModel):
    """A node to own, and what is measured; what is left out comes from settings, prices and measurement."""

    model_config = ConfigDict(extra="forbid", strict=True)

    gpu_model: str | None = Field(None, description="Measure and price only this model.", max_length=200)
    host: str | None = Field(None, description="Measure and price only this host.", max_length=255)
    wanted: Annotated[Wanted, BeforeValidator(_wanted)] = Field(
        Wanted.ALLOCATED,
        description="A GPU is wanted while a workload holds it (allocated), or while work runs on it (active).",
    )
    assume_measured: bool = Field(
        default=False, description="Take what was measured for the years to come, even below four weeks."
    )
    capex_usd: Dollars | None = Field(
        None, description="Purchase of the node, with network, storage, installation."
    )
    capex_gpus_usd: Dollars | None = Field(None, description="Of the purchase, the GPUs.")
    capex_chassis_usd: Dollars | None = Field(None, description="Of the purchase, the rest of the server.")
    capex_network_usd: Dollars | None = Field(None, description="Of the purchase, its share of the network.")
    capex_storage_usd: Dollars | None = Field(None, description="Of the purchase, its share of storage.")
    capex_installation_usd: Dollars | None = Field(None, description="Of the purchase, installation.")
    gpu_count: int | None = Field(None, description="GPUs of the node.")
    life_years: Figure | None = Field(None, description="Years in use.")
    residual_ratio: Figure | None = Field(None, description="Resale value over purchase.")
    cost_of_capital_ratio: Figure | None = Field(None, description="Yearly cost of capital.")
    maintenance_ratio: Figure | None = Field(None, description="Share of the purchase a year.")
    staff_usd_per_year: Dollars | None = Field(None, description="Staff.")
    licences_usd_per_year: Dollars | None = Field(None, description="Licences.")
    colo_usd_per_kw_month: Dollars | None = Field(None, description="Space, on the active draw.")
    colo_includes_power: bool | None = Field(None, description="The colo fee is all-in: no energy is added.")
    pue: Figure | None = Field(None, description="Power usage effectiveness.")
    tariff_usd_per_kwh: Dollars | None = Field(None, description="Electricity price.")
    idle_kw: Figure | None = Field(
        None, description="The node's draw while nobody wants it. Default: measured."
    )
    active_kw: Figure | None = Field(
        None, description="The node's draw while it is wanted. Default: measured."
    )
    own_opex_usd_per_hour: Dollars | None = Field(
        None, description="All running cost of owning in one figure."
    )
    availability_ratio: Figure | None = Field(
        None, description="Share of time in which an owned node is up; the rest is rented."
    )
    rent_usd_per_gpu_hour: Dollars | None = Field(None, description="Rent of one GPU, on demand.")
    rent_usd_per_hour: Dollars | None = Field(None, description="Rent of the whole node.")


class RentOrBuyBody(OwnedBody):
    """Inputs by the names of the command line; what is left out comes from settings, prices and measurement."""

    utilisation: Figure | None = Field(
        None, description="Share of hours the machine is wanted. Default: measured."
    )
    utilisation_p25: Figure | None = Field(None, description="Lower quartile of the use.")
    utilisation_p75: Figure | None = Field(None, description="Upper quartile of the use.")


class MixBody(OwnedBody):
    """Inputs by the names of the command line; a way without a price is left out, and said."""

    commit_usd_per_gpu_hour: Dollars | None = Field(
        None, description="A GPU committed to for long, for every clock hour, used or not."
    )
    reserve_usd_per_gpu_hour: Dollars | None = Field(
        None, description="A GPU reserved for a shorter term, for every clock hour, used or not."
    )
    spot_usd_per_gpu_hour: Dollars | None = Field(None, description="Spot, as listed.")
    interruptions_per_hour: Figure | None = Field(
        None, description="How often a spot machine is taken away in a running hour."
    )
    checkpoint_h: Figure | None = Field(None, description="Hours between checkpoints of work on spot.")
    restart_h: Figure | None = Field(None, description="Hours until interrupted work goes on.")
    restartable_ratio: Figure | None = Field(
        None, description="Share of the demand that may be interrupted. Default: 0, nothing goes to spot."
    )
