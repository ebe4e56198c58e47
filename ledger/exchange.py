"""What a unit of a currency was worth in dollars at a time: by the rate in force, which the user gave.

No rate, no dollars: a price in such a currency is unpriced there, and is never converted at a rate of another day.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from decimal import Decimal

from core.clock import from_ms
from core.user_price import USD, ExchangeRate


@dataclass(slots=True)
class Exchange:
    """Rates by currency; each is in force from its day until the next of its currency."""

    rates: Iterable[ExchangeRate] = ()
    _by_currency: dict[str, list[ExchangeRate]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Put each currency's rates in the order of time."""
        found: dict[str, list[ExchangeRate]] = defaultdict(list)
        for rate in sorted(self.rates, key=lambda rate: rate.from_ms):
            found[rate.currency].append(rate)
        self._by_currency = dict(found)

    def rate(self, currency: str, at_ms: int) -> ExchangeRate | None:
        """The rate in force; None before the first of that currency."""
        own = self._by_currency.get(currency, [])
        index = bisect_right(own, at_ms, key=lambda rate: rate.from_ms)
        return own[index - 1] if index else None

    def usd_per_unit(self, currency: str, at_ms: int) -> Decimal | None:
        """Dollars for one unit; 1 for the dollar; None: not known."""
        if currency == USD:
            return Decimal(1)
        rate = self.rate(currency, at_ms)
        return None if rate is None else rate.usd_per_unit

    def borders(self, currencies: Collection[str]) -> set[int]:
        """When the value of any of these currencies changes."""
        return {rate.from_ms for name in currencies for rate in self._by_currency.get(name, [])}

    def missing(self, currency: str) -> str:
        """Why there is no rate at a time, and what to do."""
        own = self._by_currency.get(currency)
        if not own:
            return f"no exchange rate of {currency}: add one"
        return f"no exchange rate of {currency} before {from_ms(own[0].from_ms).date()}: add an earlier one"
