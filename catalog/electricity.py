"""What businesses pay for electricity: coarse defaults by country and continent, to be replaced by the site's own tariff.

USD per kWh. Source: ``catalog/data/electricity_prices.csv``; public summaries named row by row, most of low confidence.
Never used silently: a site without a tariff of its own has no energy cost.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

from catalog.loader import Cells, packaged, read_rows

FILE: Final = "electricity_prices.csv"
COLUMNS: Final = (
    "area_code",
    "name",
    "price_per_kwh",
    "currency",
    "usd_per_kwh",
    "period",
    "customer_class",
    "source",
    "confidence",
)


@dataclass(frozen=True, slots=True)
class Tariff:
    """Price of a kWh in an area.

    Attributes:
        area_code: ``DEU``, ``EUU``, ``EUROPE``, ``WLD``.
        usd_per_kwh: dollars; price_per_kwh: in ``currency``, as published.
        period: what it is of: ``2024``, ``2025-Q2``.
    """

    area_code: str
    name: str
    usd_per_kwh: float
    price_per_kwh: float
    currency: str
    period: str
    customer_class: str
    source: str
    confidence: str


def _parse(cells: Cells) -> Tariff:
    return Tariff(
        area_code=cells.text("area_code"),
        name=cells.text("name"),
        usd_per_kwh=cells.number("usd_per_kwh", low=0.001, high=10.0),
        price_per_kwh=cells.number("price_per_kwh", low=0.001),
        currency=cells.text("currency"),
        period=cells.text("period"),
        customer_class=cells.text("customer_class"),
        source=cells.text("source"),
        confidence=cells.choice("confidence", ("high", "medium", "low")),
    )


@cache
def tariffs() -> tuple[Tariff, ...]:
    """All rows, in the file's order."""
    return read_rows(packaged(FILE), COLUMNS, _parse, key=lambda tariff: tariff.area_code)


def resolve(area_code: str) -> Tariff | None:
    """The tariff of an area, case ignored; None when it is not in the table."""
    wanted = area_code.strip().casefold()
    return next((tariff for tariff in tariffs() if tariff.area_code.casefold() == wanted), None)
