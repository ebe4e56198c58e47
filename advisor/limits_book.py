"""A site's thresholds as the rules' own classes: a bad name or value is refused at start, by its key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from annotated_types import Ge, Gt, Le, Lt
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from advisor.model import Limits, Rule
from advisor.rules import RULES
from core.errors import SettingsError
from core.rule_settings import Exclusion, RuleSettings, Selector


@dataclass(frozen=True, slots=True)
class Threshold:
    """One threshold of a rule.

    Attributes:
        name: as it is set. default: None where the rule then has none. whole: no fractions.
        bounds: ``> 0, ≤ 1``; empty where the type says all.
        meaning: the sentence of the rule's own code, with where the figure comes from.
    """

    name: str
    default: float | None
    whole: bool
    bounds: str
    meaning: str

    @property
    def allowed(self) -> str:
        """What may be given, for people: ``a whole number ≥ 1, ≤ 30``."""
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} {self.bounds}".strip()


@dataclass(frozen=True, slots=True)
class ScopedLimits:
    """Thresholds of one rule for a part of the fleet."""

    rule: Rule
    limits: Limits
    selectors: tuple[Selector, ...]


@dataclass(frozen=True, slots=True)
class LimitsBook:
    """Thresholds in force: of the fleet by rule, of parts of it (the last that fits wins), and what is left alone."""

    fleet: Mapping[str, Limits]
    scopes: tuple[ScopedLimits, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()


def thresholds_of(limits: Limits) -> tuple[Threshold, ...]:
    """Every threshold of a rule; of a pair the first shares the sentence below it."""
    found: list[Threshold] = []
    meaning = ""
    for name, field in reversed(type(limits).model_fields.items()):
        meaning = field.description or meaning
        whole = field.annotation is int
        found.append(Threshold(name, field.default, whole, _bounds(field), " ".join(meaning.split())))
    return tuple(found[::-1])


def _bounds(field: FieldInfo) -> str:
    signs: list[str] = []
    for bound in field.metadata:
        if isinstance(bound, Gt):
            signs.append(f"> {bound.gt}")
        elif isinstance(bound, Ge):
            signs.append(f"≥ {bound.ge}")
        elif isinstance(bound, Lt):
            signs.append(f"< {bound.lt}")
        elif isinstance(bound, Le):
            signs.append(f"≤ {bound.le}")
    return ", ".join(signs)


def limits_book(settings: RuleSettings, rules: Sequence[Rule] = RULES) -> LimitsBook:
    """Check what a site says about rules.

    Raises:
        SettingsError: no such rule or threshold, or a value out of its bounds; names the key.
    """
    known = {rule.id: rule for rule in rules}
    fleet = {
        rule_id: _limits(_rule(known, rule_id, f"[rules.{rule_id}]").limits, values, f"rules.{rule_id}")
        for rule_id, values in settings.fleet.items()
    }
    scopes = []
    for one in settings.scoped:
        rule = _rule(known, one.rule_id, one.place)
        base = fleet.get(rule.id, rule.limits)
        scopes.append(ScopedLimits(rule, _limits(base, one.values, one.place), one.selectors))
    for exclusion in settings.exclusions:
        if exclusion.rule_id is not None:
            _rule(known, exclusion.rule_id, exclusion.place)
    return LimitsBook(fleet, tuple(scopes), settings.exclusions)


def _rule(known: Mapping[str, Rule], rule_id: str, place: str) -> Rule:
    rule = known.get(rule_id)
    if rule is None:
        raise SettingsError(f"{place}: there is no rule {rule_id!r}: the rules are {', '.join(known)}")
    return rule


def _limits(base: Limits, values: Mapping[str, Any], place: str) -> Limits:
    known = {one.name: one for one in thresholds_of(base)}
    for key, value in values.items():
        if key not in known:
            raise SettingsError(
                f"setting {place}.{key}: there is no such threshold: use {', '.join(known) or 'none'}"
            )
        if isinstance(value, bool) or (isinstance(value, float) and not isfinite(value)):
            raise SettingsError(_refusal(place, known[key], value))
    try:
        return type(base).model_validate({**base.model_dump(), **values})
    except ValidationError as error:
        first = error.errors()[0]
        raise SettingsError(_refusal(place, known[str(first["loc"][0])], first["input"])) from error


def _refusal(place: str, threshold: Threshold, value: object) -> str:
    """Key, what it got, bound and what to do."""
    default = "none" if threshold.default is None else f"{threshold.default:g}"
    return (
        f"setting {place}.{threshold.name} is {value!r}: give {threshold.allowed}, "
        f"or leave it out for the default ({default})"
    )
