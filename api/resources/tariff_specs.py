"""Tariffs as people give them: in a request, a CSV or TOML file, or flags of the command line; checked in one place.

A day begins at midnight of the tariff's time zone; of a flat one without, of the accounting time zone. A CSV has a line for each period, lines of one name and one
start are one tariff; a TOML file has ``[[tariff]]`` tables with ``[[tariff.period]]`` in them.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from api.refusals import validated
from api.resources.moments import moment
from api.resources.price_specs import decimal_of
from api.resources.table_csv import read, written
from api.text import Named, Storable
from core.clock import iso
from core.errors import UsageError
from core.settings import Settings
from core.user_tariff import DECIMALS, HIGHEST_USD_PER_KWH, Period, Tariff
from ledger.tariff import parse_weekdays, weekdays_text

STRICT: Final = ConfigDict(extra="forbid", strict=True)
USD: Final = "USD"
MOST_PERIODS: Final = 168
_HOUR: Final = re.compile(r"(\d{1,2})(:00)?")


def _hour(value: Any) -> Any:
    """``22`` and ``22:00`` as a number."""
    if isinstance(value, str):
        found = _HOUR.fullmatch(value.strip())
        if found is None:
            raise ValueError(f"{value!r} is no whole hour: give one such as 22")
        return int(found[1])
    return value


def _words(value: Any) -> Any:
    """A list of weekdays as the text of it."""
    return ",".join(str(day) for day in value) if isinstance(value, list) else value


Price = Annotated[Decimal, Field(strict=False), BeforeValidator(decimal_of(HIGHEST_USD_PER_KWH, DECIMALS))]
Hour = Annotated[int, BeforeValidator(_hour)]


class PeriodBody(BaseModel):
    """A price for some hours of some weekdays."""

    model_config = STRICT

    weekdays: Annotated[str, BeforeValidator(_words)] = Field(
        max_length=100, description="all, mon-fri, sat,sun, …: on the local clock."
    )
    from_hour: Hour = Field(description="0 to 23, inclusive.")
    to_hour: Hour = Field(
        description="1 to 24, exclusive; not after from_hour: on the next day, which counts as part of the day it begins on."
    )
    usd_per_kwh: Price = Field(description="Dollars per kWh, as a decimal string or a number.")


class TariffBody(BaseModel):
    """A tariff to keep: one price, or periods."""

    model_config = STRICT

    name: Named = Field(max_length=255, description="What site profiles call it.")
    time_zone: Storable | None = Field(
        None, max_length=100, description="Of the local clock, such as Europe/Berlin; needed with periods."
    )
    usd_per_kwh: Price | None = Field(
        None, description="Dollars per kWh at all hours, as a decimal string or a number."
    )
    periods: list[PeriodBody] = Field(
        [], max_length=MOST_PERIODS, description="Prices by weekday and hour: each hour of the week once."
    )
    currency: str = Field(USD, max_length=10, description="USD: convert other prices as your contract does.")
    valid_from: str | None = Field(
        None,
        max_length=40,
        description="In force from: a time, or a day of its time zone. Default: since ever.",
    )
    valid_to: str | None = Field(None, max_length=40, description="In force until; default: still.")
    note: Storable = Field("", max_length=2_000, description="In your own words.")


def parsed(given: Mapping[str, Any]) -> TariffBody:
    """A tariff from named values. Raises ``UsageError`` that names field and value."""
    return validated(TariffBody, given, "tariff")


def tariff_of(body: TariffBody, settings: Settings, now_ms: int) -> Tariff:
    """The tariff that was meant. Raises ``UsageError`` where it could not be applied: which field, and what to do."""
    if body.currency.strip().upper() != USD:
        raise UsageError(
            f"tariff {body.name!r}: currency is {body.currency!r}: give dollars per kWh, converted as your contract does"
        )
    zone = body.time_zone or settings.accounting_time_zone
    try:
        return Tariff(
            id=0,
            name=body.name,
            time_zone=body.time_zone,
            usd_per_kwh=body.usd_per_kwh,
            periods=tuple(
                Period(parse_weekdays(one.weekdays), one.from_hour, one.to_hour, one.usd_per_kwh)
                for one in body.periods
            ),
            valid_from_ms=0
            if body.valid_from is None
            else moment(body.valid_from, zone, now_ms, "valid_from"),
            valid_to_ms=None if body.valid_to is None else moment(body.valid_to, zone, now_ms, "valid_to"),
            note=body.note,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


CSV_COLUMNS: Final = (
    "name",
    "time_zone",
    "weekdays",
    "from_hour",
    "to_hour",
    "usd_per_kwh",
    "currency",
    "valid_from",
    "valid_to",
    "note",
)
CSV_REQUIRED: Final = ("name", "usd_per_kwh")
_OF_PERIOD: Final = ("weekdays", "from_hour", "to_hour")


def bodies_of(text: str, *, is_toml: bool) -> list[tuple[str, dict[str, Any]]]:
    """Tariffs of a file as named values for ``parsed``, with where each stands. Raises ``UsageError`` for no such file."""
    return _of_toml(text) if is_toml else _of_csv(text)


def _of_csv(text: str) -> list[tuple[str, dict[str, Any]]]:
    found: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}
    for line, cells in read(text, CSV_COLUMNS, CSV_REQUIRED):
        key = (cells.get("name", ""), cells.get("valid_from", ""))
        own = {name: cell for name, cell in cells.items() if name not in {*_OF_PERIOD, "usd_per_kwh"}}
        priced = {name: cells[name] for name in (*_OF_PERIOD, "usd_per_kwh") if name in cells}
        where, body = found.setdefault(key, (f"line {line}", {**own, "periods": []}))
        if {name: value for name, value in body.items() if name not in {"periods", "usd_per_kwh"}} != own:
            raise UsageError(
                f"line {line} is of the tariff of {where} and differs from it: give all its cells again"
            )
        if priced.keys() & {*_OF_PERIOD}:
            body["periods"].append(priced)
        elif "usd_per_kwh" in body:
            raise UsageError(f"line {line} gives tariff {key[0]!r} a second price: name weekdays and hours")
        elif "usd_per_kwh" in cells:
            body["usd_per_kwh"] = cells["usd_per_kwh"]
    return list(found.values())


def _of_toml(text: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        tables = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the file is no TOML ({error}): correct that line") from error
    given = tables.pop("tariff", [])
    if tables or not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise UsageError("the file has other things than [[tariff]] tables: give those alone")
    return [(f"tariff {number}", _of_table(table)) for number, table in enumerate(given, 1)]


def _of_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """``period`` is what a request calls ``periods``; days and times of TOML are texts there."""
    values = {name: value.isoformat() if isinstance(value, date) else value for name, value in table.items()}
    if "period" in values:
        values["periods"] = values.pop("period")
    return values


def csv_of(tariffs: Sequence[Tariff]) -> str:
    """Tariffs as a CSV that ``bodies_of`` reads back exactly."""
    rows = []
    for tariff in tariffs:
        start, end = _start(tariff), iso(tariff.valid_to_ms) or ""
        periods: list[tuple[str, str, str, Decimal | None]] = [
            (weekdays_text(one.weekdays), str(one.from_hour), str(one.to_hour), one.usd_per_kwh)
            for one in tariff.periods
        ] or [("", "", "", tariff.usd_per_kwh)]
        rows += [
            (
                tariff.name,
                tariff.time_zone or "",
                days,
                first,
                last,
                format(price, "f"),
                USD,
                start,
                end,
                tariff.note,
            )
            for days, first, last, price in periods
            if price is not None
        ]
    return written(CSV_COLUMNS, rows)


def toml_of(tariffs: Sequence[Tariff]) -> str:
    """Tariffs as a TOML file that ``bodies_of`` reads back exactly."""
    lines = []
    for tariff in tariffs:
        own = {
            "name": tariff.name,
            "time_zone": tariff.time_zone,
            "usd_per_kwh": None if tariff.usd_per_kwh is None else format(tariff.usd_per_kwh, "f"),
            "valid_from": _start(tariff),
            "valid_to": iso(tariff.valid_to_ms),
            "note": tariff.note,
        }
        lines += ["[[tariff]]", *(f"{name} = {_quoted(value)}" for name, value in own.items() if value)]
        for one in tariff.periods:
            lines += [
                "[[tariff.period]]",
                f"weekdays = {_quoted(weekdays_text(one.weekdays))}",
                f"from_hour = {one.from_hour}",
                f"to_hour = {one.to_hour}",
                f"usd_per_kwh = {_quoted(format(one.usd_per_kwh, 'f'))}",
            ]
        lines.append("")
    return "\n".join(lines)


def _start(tariff: Tariff) -> str:
    return "" if tariff.valid_from_ms <= 0 else iso(tariff.valid_from_ms) or ""


def _quoted(text: str) -> str:
    """A basic string of TOML: JSON's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
