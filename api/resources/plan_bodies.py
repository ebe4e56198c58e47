"""Inputs of rent-or-buy and of the mix, said once: the body of a request, and the flags of the command line."""

from dataclasses import fields
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from api.refusals import shown
from api.resources.plan_measured import Wanted
from core.settings import Settings


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
DEFAULTS: Final = {field.name: field.default for field in fields(Settings)}


def _set(name: str) -> str:
    """What is taken where an input is left out, for its description."""
    return f"Default: setting {name} [{DEFAULTS[name]:,.15g}]."


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
        None,
        description="Purchase of the node, with network, storage, installation. Default: setting own_capex_usd, if any.",
    )
    capex_gpus_usd: Dollars | None = Field(None, description="Of the purchase, the GPUs.")
    capex_chassis_usd: Dollars | None = Field(None, description="Of the purchase, the rest of the server.")
    capex_network_usd: Dollars | None = Field(None, description="Of the purchase, its share of the network.")
    capex_storage_usd: Dollars | None = Field(None, description="Of the purchase, its share of storage.")
    capex_installation_usd: Dollars | None = Field(None, description="Of the purchase, installation.")
    gpu_count: int | None = Field(None, description=f"GPUs of the node. {_set('own_gpu_count')}")
    life_years: Figure | None = Field(None, description=f"Years in use. {_set('own_life_years')}")
    residual_ratio: Figure | None = Field(
        None, description=f"Resale value over purchase, 0 to 1. {_set('own_residual_ratio')}"
    )
    cost_of_capital_ratio: Figure | None = Field(
        None, description=f"Cost of capital a year, 0 to 1. {_set('own_cost_of_capital_ratio')}"
    )
    maintenance_ratio: Figure | None = Field(
        None, description=f"Share of the purchase a year. {_set('own_maintenance_ratio')}"
    )
    staff_usd_per_year: Dollars | None = Field(
        None, description=f"Staff, a year. {_set('own_staff_usd_per_year')}"
    )
    licences_usd_per_year: Dollars | None = Field(None, description="Licences, a year. Default: 0.")
    colo_usd_per_kw_month: Dollars | None = Field(
        None, description="Colocation fee per kW of active draw and month. Default: 0."
    )
    colo_includes_power: bool | None = Field(
        None, description="The colo fee is all-in: no energy is added. Default: it is for space."
    )
    pue: Figure | None = Field(
        None,
        description=f"Power usage effectiveness, 1 to 3. Default: the site's, else setting pue [{DEFAULTS['pue']:g}].",
    )
    tariff_usd_per_kwh: Dollars | None = Field(
        None, description="Electricity price. Default: the site's, now."
    )
    idle_kw: Figure | None = Field(
        None, description="The node's draw while nobody wants it. Default: measured."
    )
    active_kw: Figure | None = Field(
        None, description="The node's draw while it is wanted. Default: measured."
    )
    own_opex_usd_per_hour: Dollars | None = Field(
        None,
        description="All running cost of owning in one figure, instead of maintenance, staff, licences, colo and energy.",
    )
    availability_ratio: Figure | None = Field(
        None, description="Share of time in which an owned node is up; the rest is rented. Default: 1."
    )
    rent_usd_per_gpu_hour: Dollars | None = Field(
        None, description="Rent of one GPU, on demand. Default: the price in force here."
    )
    rent_usd_per_hour: Dollars | None = Field(None, description="Rent of the whole node, instead.")


class RentOrBuyBody(OwnedBody):
    """Inputs by the names of the command line; what is left out comes from settings, prices and measurement."""

    utilisation: Figure | None = Field(
        None, description="Share of hours the machine is wanted. Default: measured."
    )
    utilisation_p25: Figure | None = Field(None, description="Lower quartile of the use. Default: measured.")
    utilisation_p75: Figure | None = Field(None, description="Upper quartile of the use. Default: measured.")


class MixBody(OwnedBody):
    """Inputs by the names of the command line; a way without a price is left out, and said."""

    commit_usd_per_gpu_hour: Dollars | None = Field(
        None, description="A GPU committed to for long, for every clock hour, used or not."
    )
    reserve_usd_per_gpu_hour: Dollars | None = Field(
        None, description="A GPU reserved for a shorter term, for every clock hour, used or not."
    )
    spot_usd_per_gpu_hour: Dollars | None = Field(
        None, description="Spot, as listed. Default: none goes to spot."
    )
    interruptions_per_hour: Figure | None = Field(
        None, description="How often a spot machine is taken away in a running hour. Default: 0."
    )
    checkpoint_h: Figure | None = Field(
        None, description="Hours between checkpoints of work on spot. Default: 0."
    )
    restart_h: Figure | None = Field(None, description="Hours until interrupted work goes on. Default: 0.")
    restartable_ratio: Figure | None = Field(
        None, description="Share of the demand that may be interrupted. Default: 0, nothing goes to spot."
    )
