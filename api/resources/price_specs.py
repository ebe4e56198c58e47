"""Prices as people give them: in a request, a row of a file, or flags of the command line; checked in one place."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from api.refusals import shown, validated
from api.resources.moments import moment
from api.resources.table_csv import read, written
from api.text import Named, Storable
from catalog.currencies import CURRENCIES
from core.clock import iso
from core.errors import UsageError
from core.evidence import Site
from core.settings import Settings
from core.user_price import BILLINGS, LARGEST, LARGEST_UPFRONT, USD, Scope, UserPrice
from ledger.owned_rate import OwnedInputs, owned_rate
from ledger.price_terms import SpotTerms
from ledger.prices import plain

SiteOf = Callable[[str | None], Site]
_AMOUNT: Final = re.compile(
    r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,4})?|[+-]?\.[0-9]{1,40}|[+-]?(nan|inf(inity)?)",
    re.IGNORECASE,
)
STRICT: Final = ConfigDict(extra="forbid", strict=True)


def decimal_of(most: Decimal, places: int) -> Callable[[Any], Any]:
    """A check of money: a decimal string or a number from 0 to ``most``; the sentence names the value."""

    def check(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
            raise ValueError(f"{shown(value)} is no amount: give a decimal string such as 2.50, or a number")  # noqa: TRY004 - pydantic's way to refuse
        text = str(value).strip()
        if isinstance(value, str) and not _AMOUNT.fullmatch(text):
            raise ValueError(f"{shown(value)} is no amount: give a decimal string such as 2.50")
        amount = Decimal(text)
        if not amount.is_finite() or not 0 <= amount <= most:
            raise ValueError(f"{value} is out of bounds: give 0 or more, at most {most:,}")
        if amount != round(amount, places):
            raise ValueError(f"{value} is too fine: give {places} decimals at most")
        return amount

    return check


Amount = Annotated[Decimal, Field(strict=False), BeforeValidator(decimal_of(LARGEST, 6))]
Upfront = Annotated[Decimal, Field(strict=False), BeforeValidator(decimal_of(LARGEST_UPFRONT, 6))]
Figure = Annotated[float, Field(allow_inf_nan=False)]


class OwnedBody(BaseModel):
    """A machine that was bought; amounts are in the price's currency. Defaults after common practice."""

    model_config = STRICT

    capex: Figure = Field(description="Purchase with its share of network, storage, installation.")
    gpu_count: int = Field(8, description="GPUs of the machine.")
    life_years: Figure = Field(4.0, description="Years it is used.")
    residual_ratio: Figure = Field(0.15, description="Worth at the end over the purchase, 0 to 1.")
    cost_of_capital_ratio: Figure = Field(0.08, description="Cost of capital a year, 0 to 1.")
    maintenance_ratio: Figure = Field(0.05, description="Maintenance a year over the purchase, 0 to 1.")
    staff_per_year: Figure = Field(18_000.0, description="Staff, an amount a year.")
    licences_per_year: Figure = Field(0.0, description="Licences, an amount a year.")
    colo_per_kw_month: Figure = Field(0.0, description="Colocation fee per kW of active draw and month.")
    colo_includes_power: bool = Field(False, description="The fee is all-in: it holds power and cooling.")
    idle_kw: Figure = Field(2.2, description="Draw of the idle machine, kW.")
    active_kw: Figure = Field(6.2, description="Draw of the machine at work, kW.")
    pue: Figure | None = Field(None, description="Power usage effectiveness; default: the site's.")
    tariff_per_kwh: Figure | None = Field(
        None, description="Electricity price; default for prices in USD: the site's."
    )
    includes_energy: bool | None = Field(
        None,
        description="Energy at idle draw is in the rate. Default: where the site does not pay its power apart, and a tariff is known.",
    )


class SpotBody(BaseModel):
    """How often a spot machine is taken away."""

    model_config = STRICT

    interruptions_per_hour: Figure = Field(description="Per running hour.")
    checkpoint_h: Figure = Field(0.0, description="Hours between checkpoints.")
    restart_h: Figure = Field(0.0, description="Hours until work goes on.")


class PriceBody(BaseModel):
    """A price to keep."""

    model_config = STRICT

    scope_kind: str = Field(description=f"What it is for: {', '.join(Scope)}.")
    scope_value: Named = Field(
        "", max_length=255, description="Which GPU, host, key=value, …; empty for all."
    )
    usd_per_gpu_hour: Amount | None = Field(
        None, description="Dollars for one GPU-hour, as a decimal string or a number."
    )
    amount_per_gpu_hour: Amount | None = Field(None, description="The same in another currency.")
    currency: str = Field(USD, max_length=10, description="ISO 4217; other than USD needs an exchange rate.")
    billing: str = Field("on_demand", description=f"{', '.join(BILLINGS)}.")
    gpus_per_unit: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="GPUs that can only be released together; 1: each alone. Default: all of a host.",
    )
    valid_from: str | None = Field(
        None,
        max_length=40,
        description="In force from: a time, or a day in the accounting time zone. Default: since ever.",
    )
    valid_to: str | None = Field(None, max_length=40, description="In force until; default: still.")
    commitment: Named | None = Field(
        None, max_length=255, description="Name of the reservation it belongs to."
    )
    committed_gpus: int | None = Field(None, ge=1, le=10_000_000, description="GPUs of the commitment.")
    upfront: Upfront | None = Field(
        None,
        description="Paid at its start for all its GPUs and hours; spread over them, on top of the amount.",
    )
    owned: OwnedBody | None = Field(None, description="Inputs of an owned machine, which give the amount.")
    spot: SpotBody | None = Field(None, description="Interruptions of a spot price, for information.")
    note: Storable = Field("", max_length=2_000, description="In your own words.")


COLUMNS: Final = tuple(PriceBody.model_fields)
"""Columns of the file; ``owned`` and ``spot`` hold JSON objects."""
REQUIRED: Final = ("scope_kind",)
_WHOLE: Final = frozenset({"gpus_per_unit", "committed_gpus"})
_NESTED: Final = frozenset({"owned", "spot"})


def parsed(given: Mapping[str, Any]) -> PriceBody:
    """A price from named values. Raises ``UsageError`` that names field and value."""
    return validated(PriceBody, given, "price")


def price_of(body: PriceBody, settings: Settings, now_ms: int, site_of: SiteOf) -> UserPrice:
    """The price that was meant.

    Args:
        site_of: tariff, PUE and who pays for power at a host, or of the site as a whole; asked for owned machines alone.

    Raises:
        UsageError: it could not be applied; says which field and what to do.
    """
    currency = currency_of(body.currency)
    inputs = _inputs(body, currency, site_of)
    zone = settings.accounting_time_zone
    from_ms = 0 if body.valid_from is None else moment(body.valid_from, zone, now_ms, "valid_from")
    to_ms = None if body.valid_to is None else moment(body.valid_to, zone, now_ms, "valid_to")
    if to_ms is not None and to_ms <= from_ms:
        start = "1970" if body.valid_from is None else body.valid_from
        raise UsageError(
            f"valid_to is {body.valid_to!r}, not after valid_from ({start}): give a later end, or none"
        )
    try:
        return UserPrice(
            id=0,
            scope_kind=body.scope_kind,
            scope_value=body.scope_value,
            amount_per_gpu_hour=_amount(body, currency, inputs),
            billing=body.billing,
            gpus_per_unit=body.gpus_per_unit,
            valid_from_ms=from_ms,
            valid_to_ms=to_ms,
            note=body.note,
            currency=currency,
            commitment=body.commitment,
            committed_gpus=body.committed_gpus,
            upfront=body.upfront,
            inputs=None if inputs is None else inputs.by_name(),
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def currency_of(text: str) -> str:
    """A currency's code. Raises ``UsageError`` for one that ISO 4217 does not know."""
    code = text.strip().upper()
    if code not in CURRENCIES:
        raise UsageError(f"currency is {text!r}: give an ISO 4217 code such as USD or EUR")
    return code


def csv_of(prices: Sequence[UserPrice]) -> str:
    """Prices as a file that ``bodies_of`` reads back exactly."""
    columns = [name for name in COLUMNS if name != "usd_per_gpu_hour"]
    return written(columns, ([_cells(price).get(name, "") for name in columns] for price in prices))


def bodies_of(text: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Rows of a file as named values for ``parsed``, with their lines. Raises ``UsageError`` for what is no such file."""
    return [(line, _values(cells)) for line, cells in read(text, COLUMNS, REQUIRED)]


def _values(cells: Mapping[str, str]) -> dict[str, Any]:
    return {name: _value(name, cell) for name, cell in cells.items()}


def _value(name: str, cell: str) -> Any:
    if name in _WHOLE and cell.strip().isdecimal():
        return int(cell)
    if name in _NESTED:
        try:
            return json.loads(cell)
        except ValueError:
            return cell  # the check says that it is no object
    return cell


def _cells(price: UserPrice) -> dict[str, str]:
    inputs = None if price.inputs is None else json.dumps(dict(price.inputs), separators=(",", ":"))
    known: dict[str, str | None] = {
        "scope_kind": price.scope_kind,
        "scope_value": price.scope_value,
        "amount_per_gpu_hour": plain(price.amount_per_gpu_hour),
        "currency": price.currency,
        "billing": price.billing,
        "gpus_per_unit": None if price.gpus_per_unit is None else str(price.gpus_per_unit),
        "valid_from": None if price.valid_from_ms <= 0 else iso(price.valid_from_ms),
        "valid_to": iso(price.valid_to_ms),
        "commitment": price.commitment,
        "committed_gpus": None if price.committed_gpus is None else str(price.committed_gpus),
        "upfront": None if price.upfront is None else plain(price.upfront),
        price.billing: inputs,
        "note": price.note,
    }
    return {name: value for name, value in known.items() if value is not None}


def _inputs(body: PriceBody, currency: str, site_of: SiteOf) -> OwnedInputs | SpotTerms | None:
    for name in sorted(_NESTED):
        if getattr(body, name) is not None and body.billing != name:
            raise UsageError(f"billing is {body.billing!r} and {name} inputs are given: use billing {name}")
    try:
        if body.owned is not None:
            host = body.scope_value if body.scope_kind == Scope.HOST else None
            return _owned(body.owned, currency, site_of(host))
        return None if body.spot is None else SpotTerms.of(body.spot.model_dump())
    except ValueError as error:
        raise UsageError(str(error)) from error


def _owned(body: OwnedBody, currency: str, site: Site) -> OwnedInputs:
    """Inputs with what is known of the site; whether energy is in the rate is decided here and kept."""
    given = {name: value for name, value in body.model_dump().items() if value is not None}
    given.setdefault("pue", site.pue)
    wanted = given.get("includes_energy") is not False
    if wanted and site.tariff_usd_per_kwh is not None and currency == USD:
        given.setdefault("tariff_per_kwh", site.tariff_usd_per_kwh)
    for name in ("includes_energy", "colo_includes_power"):
        if site.pays_for_power and given.get(name):
            raise UsageError(
                f"{name} is true and the site pays its power apart (pays_for_power): energy would count twice, "
                "turn one of them off"
            )
    may = not site.pays_for_power and not body.colo_includes_power and "tariff_per_kwh" in given
    given.setdefault("includes_energy", may)
    return OwnedInputs.of(given)


def _amount(body: PriceBody, currency: str, inputs: OwnedInputs | SpotTerms | None) -> Decimal:
    if body.usd_per_gpu_hour is not None and (body.amount_per_gpu_hour is not None or currency != USD):
        raise UsageError(
            f"usd_per_gpu_hour is {body.usd_per_gpu_hour} beside another amount or currency: give amount_per_gpu_hour alone"
        )
    given = body.amount_per_gpu_hour if body.usd_per_gpu_hour is None else body.usd_per_gpu_hour
    if isinstance(inputs, OwnedInputs):
        figured = owned_rate(inputs).amount_per_gpu_hour
        if given is not None and given != figured:
            raise UsageError(
                f"amount_per_gpu_hour is {given}, but the owned inputs give {plain(figured)}: leave one of the two out"
            )
        return figured
    if given is None:
        raise UsageError("amount_per_gpu_hour is not given: say what a GPU-hour costs, or give owned inputs")
    return given
