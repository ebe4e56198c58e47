"""A site's thresholds as the rules' own classes: a bad name or value is refused at start, by its key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from advisor.model import Limits, Rule
from advisor.rules import RULES
from core.errors import SettingsError
from core.rule_settings import Exclusion, RuleSettings, Selector


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
    try:
        return type(base).model_validate({**base.model_dump(), **values})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            names = ", ".join(type(base).model_fields)
            raise SettingsError(
                f"setting {place}.{key}: there is no such threshold: use {names or 'none'}"
            ) from error
        raise SettingsError(f"setting {place}.{key} is {first['input']!r}: {first['msg']}") from error
