"""What the answer of rent-or-buy rests on: each assumption moved alone, three cases, the curve of cost by use. Pure.

Ranges are those of cost-model 2 where it has one (rent −30 %/+20 %, life 3–6 years, residual 10–20 %, maintenance 5–12 %,
PUE 1.1–1.6); an offer, a tariff and a measured draw are moved by the share that is said beside them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from ledger.rent_or_buy import LIFE_YEARS, RENT_FACTORS, RentOrBuyResult, evaluate
from ledger.rent_or_buy_inputs import CAPEX_PARTS, RentOrBuyInputs

CURVE_STEPS: Final = 50
TRIAL_USD: Final = 100_000.0
"""Owning costs linearly more with its purchase: two prices tell the line."""
Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Swing:
    """One assumption alone at both ends of its range.

    Attributes:
        name: of the input. low, high: values tried.
        saves_at_low, saves_at_high: USD a year that owning saves there; negative: it costs more.
        turns: owning pays at one end and not at the other.
    """

    name: str
    low: float
    high: float
    saves_at_low: float
    saves_at_high: float

    @property
    def turns(self) -> bool:
        """The answer is another one at one of the ends."""
        return (self.saves_at_low > 0) != (self.saves_at_high > 0)

    @property
    def span(self) -> float:
        """How far it moves the answer."""
        return abs(self.saves_at_high - self.saves_at_low)


@dataclass(frozen=True, slots=True)
class Case:
    """Several assumptions together: against owning, as they are, for owning."""

    name: str
    inputs: RentOrBuyInputs
    result: RentOrBuyResult
    saves_usd_per_year: float | None


@dataclass(frozen=True, slots=True)
class UsePoint:
    """Cost of an owned GPU-hour at one use, and over lives of 3 to 5 years; USD."""

    use: float
    own: float
    low: float
    high: float


def saves_usd_per_year(inputs: RentOrBuyInputs) -> float | None:
    """What owning saves a year against renting the same hours; None without an input of it."""
    machine, rent, use = inputs.machine(), inputs.rent_per_gpu_hour, inputs.utilisation
    if machine is None or rent is None or use is None:
        return None
    return machine.rent_usd_per_year(rent, use) - machine.own_usd_per_year(rent, use)


def swings(inputs: RentOrBuyInputs) -> tuple[Swing, ...]:
    """Assumptions by how far each alone moves the answer; those that do not are left out."""
    if saves_usd_per_year(inputs) is None:
        return ()
    found = []
    for name, (low, high) in _ends(inputs):
        at = [saves_usd_per_year(_moved(inputs, name, value)) for value in (low, high)]
        if at[0] is None or at[1] is None:
            continue
        one = Swing(name, low, high, at[0], at[1])
        if one.span >= 1:
            found.append(one)
    return tuple(sorted(found, key=lambda one: (-one.span, one.name)))


def cases(inputs: RentOrBuyInputs) -> tuple[Case, ...]:
    """Against owning, as assumed, for owning: the corners of rent, life and use that ``ranges`` spans."""
    rent, use = inputs.rent_per_gpu_hour, inputs.utilisation
    if rent is None or use is None or inputs.machine() is None:
        return ()
    low_use, high_use = _use_ends(inputs)
    corners = (
        ("against owning", RENT_FACTORS[0], min(LIFE_YEARS[0], inputs.life_years), low_use),
        ("as assumed", 1.0, inputs.life_years, use),
        ("for owning", RENT_FACTORS[-1], max(LIFE_YEARS[-1], inputs.life_years), high_use),
    )
    found = []
    for name, factor, life, wanted in corners:
        each = replace(
            inputs,
            life_years=life,
            rent_usd_per_gpu_hour=rent * factor,
            rent_usd_per_hour=None,
            utilisation=wanted,
            utilisation_p25=None,
            utilisation_p75=None,
        )
        found.append(Case(name, each, evaluate(each), saves_usd_per_year(each)))
    return tuple(found)


def by_use(inputs: RentOrBuyInputs) -> tuple[UsePoint, ...]:
    """Cost of an owned GPU-hour from little use to full use; nothing without a purchase price."""
    lives = sorted({*LIFE_YEARS, inputs.life_years})
    machines = [replace(inputs, life_years=life).machine() for life in lives]
    middle = inputs.machine()
    if middle is None:
        return ()
    found = []
    for step in range(1, CURVE_STEPS + 1):
        use = step / CURVE_STEPS
        costs = [
            cost for one in machines if one is not None and (cost := one.own_usd_per_gpu_h(use)) is not None
        ]
        own = middle.own_usd_per_gpu_h(use)
        if own is not None:
            found.append(UsePoint(use, own, min(costs), max(costs)))
    return tuple(found)


def dearest_purchase_usd(inputs: RentOrBuyInputs) -> float | None:
    """The purchase price at which owning costs as much as renting at this use; None: at none, or an input is missing."""
    whole: dict[str, Any] = dict.fromkeys(CAPEX_PARTS)
    bare = replace(inputs, **whole)
    first, second = (
        saves_usd_per_year(replace(bare, capex_usd=trial)) for trial in (TRIAL_USD, 2 * TRIAL_USD)
    )
    if first is None or second is None or second >= first:
        return None
    found = TRIAL_USD + first / (first - second) * TRIAL_USD
    return found if found >= 1 else None


def _moved(inputs: RentOrBuyInputs, name: str, value: float) -> RentOrBuyInputs:
    if name == "rent_usd_per_gpu_hour":
        return replace(inputs, rent_usd_per_gpu_hour=value, rent_usd_per_hour=None)
    if name == "utilisation":
        return replace(inputs, utilisation=value, utilisation_p25=None, utilisation_p75=None)
    if name == "capex_usd":
        purchase = inputs.purchase_usd or value
        given = {part: getattr(inputs, part) for part in CAPEX_PARTS}
        scaled: dict[str, Any] = {
            part: None if usd is None else usd * value / purchase for part, usd in given.items()
        }
        return replace(inputs, capex_usd=value, **scaled)
    moved: dict[str, Any] = {name: value}
    return replace(inputs, **moved)


def _ends(inputs: RentOrBuyInputs) -> Iterator[tuple[str, Ends]]:
    rent, purchase = inputs.rent_per_gpu_hour, inputs.purchase_usd
    if rent is not None:
        yield "rent_usd_per_gpu_hour", (rent * RENT_FACTORS[0], rent * RENT_FACTORS[-1])
    yield "utilisation", _use_ends(inputs)
    if purchase is not None:
        yield "capex_usd", (0.9 * purchase, 1.1 * purchase)
    for name, between in RANGES.items():
        value = getattr(inputs, name)
        if value is not None:
            yield name, between(value)


def _use_ends(inputs: RentOrBuyInputs) -> Ends:
    """The measured quartiles; without them ten points either way."""
    use = inputs.utilisation or 0.0
    low, high = inputs.utilisation_p25, inputs.utilisation_p75
    if low is None or high is None:
        return max(0.01, use - 0.1), min(1.0, use + 0.1)
    return max(0.01, min(low, use)), max(high, use)


def _within(low: float, high: float) -> Callable[[float], Ends]:
    return lambda value: (min(low, value), max(high, value))


def _times(low: float, high: float) -> Callable[[float], Ends]:
    return lambda value: (low * value, high * value)


RANGES: Final[dict[str, Callable[[float], Ends]]] = {
    "life_years": _within(3.0, 6.0),
    "residual_ratio": _within(0.10, 0.20),
    "cost_of_capital_ratio": _within(0.05, 0.12),
    "maintenance_ratio": _within(0.05, 0.12),
    "staff_usd_per_year": _times(0.5, 1.5),
    "pue": _within(1.1, 1.6),
    "tariff_usd_per_kwh": _times(0.7, 1.3),
    "availability_ratio": _within(0.95, 1.0),
}
"""Input → the ends between which it is moved alone."""
