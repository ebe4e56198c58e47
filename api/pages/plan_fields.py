"""Fields of the calculators' forms: their text, their unit, where their value is from, and what is wrong with it.

A calculator reckons with what its fields say and with nothing else: measured figures are rounded into the fields first.
So an address that holds every field gives the same result for everybody, whatever is measured later.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Final
from urllib.parse import urlencode

from api.pages.view import Address

MOST_LETTERS: Final = 40
DIGITS: Final = 6
PERCENT_DIGITS: Final = 4


class Kind(Enum):
    """What a field holds."""

    MONEY = "money"
    NUMBER = "number"
    WHOLE = "whole"
    PERCENT = "percent"
    """A ratio; people write percent, and the parameter says so in its name."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One input: its name as over REST, its name for people, its unit, what it holds. ``help``: what it means."""

    name: str
    label: str
    unit: str
    kind: Kind = Kind.NUMBER
    help: str = ""

    @property
    def parameter(self) -> str:
        """Its name in the address."""
        return f"{self.name.removesuffix('_ratio')}_percent" if self.kind is Kind.PERCENT else self.name


@dataclass(frozen=True, slots=True)
class Field:
    """One input of a form.

    Attributes:
        text: what the field says; empty: nothing is known and nothing was given.
        source: where that is from. error: what is wrong with it. reset: the address without it; None: nothing to reset.
    """

    spec: Spec
    text: str
    source: str
    error: str = ""
    reset: str | None = None


@dataclass(frozen=True, slots=True)
class Default:
    """What a field starts from: a value or None, and where it is from."""

    value: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Filled:
    """All fields of a form with their values by input; a field with an error has none."""

    fields: tuple[Field, ...]
    values: Mapping[str, Any]

    @property
    def wrong(self) -> bool:
        """Some field cannot be read: then there is no result."""
        return any(one.error for one in self.fields)

    def pairs(self) -> list[tuple[str, str]]:
        """Every field as a parameter: what a link to the result holds."""
        return [(one.spec.parameter, one.text) for one in self.fields if one.text]


def fill(
    address: Address,
    specs: Sequence[Spec],
    defaults: Mapping[str, Default],
    check: Callable[[str, float], str],
) -> Filled:
    """Fields from the address, and from what is known where it says nothing.

    Args:
        defaults: by input; what is absent is not known. check: input and value → what is wrong with it, empty if nothing.
    """
    fields, values = [], {}
    for spec in specs:
        default = defaults.get(spec.name, Default(None, ""))
        known = text_of(spec, default.value)
        typed = address.get(spec.parameter).strip()
        text = typed or known
        try:
            value = value_of(spec, text)
            error = "" if value is None else check(spec.name, value)
        except ValueError as problem:
            value, error = None, str(problem)
        is_own = bool(typed) and typed != known
        source = default.source
        if is_own:
            source = f"yours; otherwise {known}{_unit(spec)} ({default.source})" if known else "yours"
        reset = address.href(**{spec.parameter: None}) if is_own else None
        fields.append(Field(spec, text, source, error, reset))
        if value is not None and not error:
            values[spec.name] = value
    return Filled(tuple(fields), values)


def with_errors(filled: Filled, errors: Mapping[str, str]) -> Filled:
    """The same with what is wrong with several fields together, beside the one it names."""
    if not errors:
        return filled
    return Filled(
        tuple(
            Field(one.spec, one.text, one.source, one.error or errors.get(one.spec.name, ""), one.reset)
            for one in filled.fields
        ),
        filled.values,
    )


def text_of(spec: Spec, value: float | None) -> str:
    """A value as it stands in a field: plain digits, no separators."""
    if value is None:
        return ""
    if spec.kind is Kind.WHOLE:
        return str(int(value))
    given = Decimal(str(value)) * (100 if spec.kind is Kind.PERCENT else 1)
    digits = PERCENT_DIGITS if spec.kind is Kind.PERCENT else DIGITS
    return f"{Decimal(f'{given:.{digits}g}').normalize():f}"


def value_of(spec: Spec, text: str) -> float | int | None:
    """The value of a text; None for an empty one.

    Raises:
        ValueError: it is no number; says what to write.
    """
    plain = text.strip().replace(",", "").replace("\u00a0", "").removeprefix("$").removesuffix("%").strip()
    if not plain:
        return None
    try:
        found = Decimal(plain) if len(plain) <= MOST_LETTERS else None
    except InvalidOperation:
        found = None
    if found is None or not found.is_finite() or abs(found) > Decimal("1e15"):
        raise ValueError(f"no number: write {EXAMPLES[spec.kind]}")
    if spec.kind is Kind.WHOLE:
        if found != int(found):
            raise ValueError("a whole number is needed")
        return int(found)
    return float(found / 100 if spec.kind is Kind.PERCENT else found)


def link(path: str, *parts: Sequence[tuple[str, str]]) -> str:
    """An address that holds all of it."""
    pairs = [pair for part in parts for pair in part if pair[1]]
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _unit(spec: Spec) -> str:
    return f" {spec.unit}" if spec.unit else ""


EXAMPLES: Final = {
    Kind.MONEY: "dollars such as 2.50",
    Kind.NUMBER: "digits such as 4.5",
    Kind.WHOLE: "digits such as 8",
    Kind.PERCENT: "percent such as 61.5",
}
