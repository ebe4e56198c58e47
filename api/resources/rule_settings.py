"""What a site says about rules, as it holds now: its file first, then what people keep in the database."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.orm import Session

from advisor.limits_book import limits_book
from advisor.model import Rule
from advisor.rules import RULES
from api.text import Named
from core.clock import from_ms
from core.errors import SettingsError, UsageError
from core.rule_settings import SELECTORS, Exclusion, RuleSettings, ScopedThresholds, Selector, selectors_of
from core.settings import Settings
from store.queries import rule_settings as kept
from store.queries.rule_settings import KeptExclusion

log = logging.getLogger(__name__)

Pattern = Annotated[Named | None, Field(min_length=1, max_length=255)]


class PartBody(BaseModel):
    """A part of the fleet: every selector that is given must hold; ``*`` stands for anything."""

    model_config = ConfigDict(extra="forbid", strict=True)

    host: Pattern = Field(default=None, description="Host of the GPU, such as dev-*.")
    gpu: Pattern = Field(default=None, description="UUID of the GPU.")
    engine: Pattern = Field(default=None, description="Name of an engine on it.")
    owner: Pattern = Field(
        default=None, description="Team, or team / project, that pays for it or a workload on it."
    )
    user: Pattern = Field(default=None, description="User of a workload on it.")
    label: Pattern = Field(default=None, description="NAME=VALUE of a workload on it, such as namespace=ml.")

    def selectors(self, place: str) -> tuple[Selector, ...]:
        """What is given, in a fixed order; none: the fleet. Raises ``SettingsError`` that names place and key."""
        given = {kind: getattr(self, kind) for kind in SELECTORS if getattr(self, kind) is not None}
        return selectors_of(given, place) if given else ()


@dataclass(frozen=True, slots=True)
class InForce:
    """What holds. ``refused``: why kept thresholds, or exclusions, fit the rules no longer, by their keys."""

    rules: RuleSettings
    refused_thresholds: Mapping[int, str]
    refused_exclusions: Mapping[int, str]


def in_force(session: Session, settings: Settings, now_ms: int) -> InForce:
    """The file, then the database, which wins key by key.

    What is kept may name a rule or a threshold that a newer gpuwise has no more: that is left out and said, so that it
    silences no rule.
    """
    merged = settings.rules
    bad: tuple[dict[int, str], dict[int, str]] = ({}, {})
    given = [
        (one.id, bad[0], settings_of(one.rule_id, one.selectors, one.values, f"thresholds {one.id}"))
        for one in kept.thresholds(session)
    ]
    given += [
        (one.id, bad[1], RuleSettings(exclusions=(exclusion_of(one),)))
        for one in kept.exclusions(session, after=from_ms(now_ms))
    ]
    for id_, refused, more in given:
        try:
            limits_book(more)
        except SettingsError as error:
            refused[id_] = str(error)
            log.warning(
                "kept setting of a rule does not fit any more and is left out", extra={"reason": str(error)}
            )
        else:
            merged = merged.then(more)
    return InForce(merged, *bad)


def with_kept(session: Session, settings: Settings, now_ms: int) -> Settings:
    """The settings, with what people keep in the database about rules."""
    return replace(settings, rules=in_force(session, settings, now_ms).rules)


def settings_of(
    rule_id: str, selectors: Sequence[Selector], values: Mapping[str, Any], place: str
) -> RuleSettings:
    """Values of one rule as a file would say them; ``place`` for errors."""
    if not selectors:
        return RuleSettings(fleet={rule_id: values})
    return RuleSettings(scoped=(ScopedThresholds(rule_id, tuple(selectors), values, place),))


def exclusion_of(one: KeptExclusion) -> Exclusion:
    """A kept exclusion as a file would say it."""
    return Exclusion(
        one.selectors, one.rule_id, one.until_at, one.reason, f"exclusion {one.id}", one.from_at, one.who
    )


def rule_of(rule_id: str) -> Rule:
    """The rule of that name. Raises ``UsageError`` that names the ones there are."""
    for rule in RULES:
        if rule.id == rule_id:
            return rule
    raise UsageError(
        f"rule_id is {rule_id!r}, and there is no such rule: give one of {', '.join(rule.id for rule in RULES)}"
    )


def part_words(selectors: Sequence[Selector]) -> str:
    """A part of the fleet for people."""
    return ", ".join(str(one) for one in selectors) or "the fleet"


def as_mapping(selectors: Sequence[Selector]) -> dict[str, str]:
    """A part of the fleet for JSON."""
    return {one.kind: one.pattern for one in selectors}
