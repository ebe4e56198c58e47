"""Thresholds of the rules: the value in force of each, its bounds, what it means, and who said so."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.orm import Session

from advisor.limits_book import Threshold, limits_book, thresholds_of
from advisor.model import Rule, Source
from advisor.rules import RULES
from api.refusals import shown, validated
from api.resources.columns import about
from api.resources.rule_settings import (
    InForce,
    PartBody,
    as_mapping,
    in_force,
    part_words,
    rule_of,
    settings_of,
)
from api.text import Named, Storable
from core.errors import NotFoundError, UsageError
from core.rule_settings import Origin, Selector
from core.settings import Settings
from store.queries import rule_settings as kept
from store.queries.rule_settings import KeptThresholds


class ThresholdsBody(PartBody):
    """Values of one rule, for the fleet or for a part of it; what was said of that part before stays where it is not named."""

    rule_id: Named = Field(max_length=60, description="Which rule, such as small-batch.")
    values: dict[str, float | int | None] = Field(
        min_length=1, max_length=50, description="By threshold; null where the rule may go without it."
    )
    note: Storable | None = Field(default=None, max_length=2_000, description="Why, in your own words.")
    who: Named | None = Field(default=None, max_length=200, description="Who you are; kept with it.")


class EndThresholdsBody(BaseModel):
    """What goes with an end."""

    model_config = ConfigDict(extra="forbid", strict=True)

    names: list[Named] = Field(
        default_factory=list, max_length=50, description="Only these thresholds; default: all of that key."
    )
    who: Named | None = Field(default=None, max_length=200, description="Who you are; kept with it.")


@dataclass(frozen=True, slots=True)
class ThresholdView:
    """One threshold of one rule, for the fleet or a part of it."""

    rule_id: Annotated[str, about("Which rule.")]
    rule_title: Annotated[str, about("What that rule asks people to do.")]
    name: Annotated[str, about("The threshold, with its unit.")]
    part: Annotated[str, about("For which part of the fleet, for people: the fleet, or host dev-*.")]
    selectors: Annotated[Mapping[str, str], about("The same as patterns by kind; empty: the fleet.")]
    value: Annotated[float | None, about("In force; null: the rule goes without.")]
    default: Annotated[float | None, about("Of the rule itself; null: none.")]
    allowed: Annotated[str, about("What may be given.")]
    meaning: Annotated[str, about("What it decides, and where the default is from.")]
    origin: Annotated[Origin, about("Where the value comes from: default, file (gpuwise.toml), database.")]
    id: Annotated[int | None, about("Key of what people keep: to end it; null: not kept here.")]
    note: Annotated[str | None, about("Why, in the words of who set it; null: not kept here.")]
    who: Annotated[str | None, about("Who set it; null: not told, or not kept here.")]
    set_at: Annotated[datetime | None, about("When, UTC; null: not kept here.")]
    refused: Annotated[
        str | None, about("Why the rules no longer take it, so that it is not in force; null: it is.")
    ]
    sources: Annotated[Sequence[Source], about("What the rule's thresholds and physics rest on.")] = field(
        default_factory=tuple
    )


def parsed(given: Mapping[str, Any]) -> ThresholdsBody:
    """Values from named ones. Raises ``UsageError`` that names field and value."""
    return validated(ThresholdsBody, given, "thresholds")


def ending(given: Mapping[str, Any]) -> EndThresholdsBody:
    """What to end, from named values. Raises ``UsageError`` that names field and value."""
    return validated(EndThresholdsBody, given, "thresholds")


def value_of(name: str, text: str) -> float | int | None:
    """A value as somebody typed it; ``none`` where a rule may go without. Raises ``UsageError`` for what is no number."""
    word = text.strip()
    if word.lower() == "none":
        return None
    try:
        value = float(word)
    except ValueError as error:
        raise UsageError(f"{name} is {shown(text)}: give a number such as 0.3, or none") from error
    return int(value) if value.is_integer() else value


def value_text(value: float | None) -> str:
    """A value as people type it: the other way round of ``value_of``."""
    if value is None:
        return "none"
    return str(int(value)) if value == int(value) else repr(value)


def rows(
    session: Session,
    settings: Settings,
    now_ms: int,
    rule_id: str | None = None,
    *,
    only_set: bool = False,
) -> list[ThresholdView]:
    """Every threshold as it is for the fleet, then those of parts of it, rule by rule.

    Args:
        session: where. settings: the file's. now_ms: when.
        rule_id: of this rule alone. only_set: leave out defaults.

    Raises:
        UsageError: there is no such rule.
    """
    rules = RULES if rule_id is None else (rule_of(rule_id),)
    holds = in_force(session, settings, now_ms)
    given = kept.thresholds(session)
    found = [row for rule in rules for row in _of_rule(rule, settings, holds, given)]
    names = {rule.id for rule in RULES}
    if rule_id is None:
        found += [row for one in given if one.rule_id not in names for row in _refused(one, {}, holds)]
    return [row for row in found if not only_set or row.origin is not Origin.DEFAULT]


def _of_rule(
    rule: Rule, settings: Settings, holds: InForce, given: Sequence[KeptThresholds]
) -> Iterator[ThresholdView]:
    known = {one.name: one for one in thresholds_of(rule.limits)}
    own = [one for one in given if one.rule_id == rule.id]
    fitting = [one for one in own if one.id not in holds.refused_thresholds]
    of_fleet = {name: one for one in fitting if not one.selectors for name in one.values}
    values = holds.rules.fleet.get(rule.id, {})
    in_file = settings.rules.fleet.get(rule.id, {})
    for threshold in known.values():
        row = of_fleet.get(threshold.name)
        origin = (
            Origin.DATABASE
            if row is not None
            else Origin.FILE
            if threshold.name in in_file
            else Origin.DEFAULT
        )
        value = values.get(threshold.name, threshold.default)
        yield _view(rule, threshold, (), value, origin=origin, row=row)
    for scope in holds.rules.scoped:
        if scope.rule_id != rule.id:
            continue
        by_name = {
            name: one for one in fitting if frozenset(one.selectors) == scope.part[1] for name in one.values
        }
        for name, value in scope.values.items():
            row = by_name.get(name)
            origin = Origin.FILE if row is None else Origin.DATABASE
            yield _view(rule, known[name], scope.selectors, value, origin=origin, row=row)
    for one in own:
        if one.id in holds.refused_thresholds:
            yield from _refused(one, known, holds, rule)


def _refused(
    one: KeptThresholds, known: Mapping[str, Threshold], holds: InForce, rule: Rule | None = None
) -> Iterator[ThresholdView]:
    """What was kept under an older gpuwise, and fits the rules no more."""
    for name, value in one.values.items():
        threshold = known.get(name) or Threshold(
            name, None, False, "", "There is no such threshold any more."
        )
        why = holds.refused_thresholds.get(one.id)
        view = _view(rule, threshold, one.selectors, value, origin=Origin.DATABASE, row=one, refused=why)
        yield view if rule is not None else replace(view, rule_id=one.rule_id)


def _view(
    rule: Rule | None,
    threshold: Threshold,
    selectors: Sequence[Selector],
    value: Any,
    *,
    origin: Origin,
    row: KeptThresholds | None,
    refused: str | None = None,
) -> ThresholdView:
    return ThresholdView(
        rule_id="" if rule is None else rule.id,
        rule_title="" if rule is None else rule.title,
        name=threshold.name,
        part=part_words(selectors),
        selectors=as_mapping(selectors),
        value=_number(threshold, value),
        default=threshold.default,
        allowed=threshold.allowed,
        meaning=threshold.meaning,
        origin=origin,
        id=None if row is None else row.id,
        note=None if row is None else row.note,
        who=None if row is None else row.who,
        set_at=None if row is None else row.created_at,
        refused=refused,
        sources=() if rule is None else rule.sources,
    )


def _number(threshold: Threshold, value: Any) -> float | None:
    """A value that the rules took, as what it is: a file may say 1 for 1.0, or write it as text."""
    return None if value is None else int(value) if threshold.whole else float(value)


def set_(session: Session, settings: Settings, body: ThresholdsBody, now_ms: int) -> list[ThresholdView]:
    """Keep values, beside those of the same rule and part that are not named; nothing is kept when one is refused.

    Raises:
        UsageError: no such rule or threshold, or a value out of its bounds: key, bound and what to do.
    """
    rule = rule_of(body.rule_id)
    selectors = body.selectors("thresholds")
    before = _same(session, rule.id, selectors)
    values: dict[str, Any] = {}
    for given in (*(one.values for one in before), body.values):
        values |= given
    limits_book(settings_of(rule.id, selectors, values, f"thresholds of {rule.id}"))
    known = {one.name: one for one in thresholds_of(rule.limits)}
    values = {name: _number(known[name], value) for name, value in values.items()}
    for one in before:
        kept.end_thresholds(session, one.id, now_ms, body.who)
    note = body.note if body.note is not None else before[-1].note if before else ""
    row = kept.add_thresholds(
        session,
        rule_id=rule.id,
        selectors=selectors,
        values=values,
        note=note.strip(),
        who=body.who,
        now_ms=now_ms,
    )
    return _of_key(session, settings, now_ms, rule.id, row.id)


def end(
    session: Session, settings: Settings, id_: int, body: EndThresholdsBody, now_ms: int
) -> list[ThresholdView]:
    """End what is kept under a key, or some of it; the file's values or the defaults hold again. Returns what stays of it.

    Raises:
        NotFoundError: nothing of that key is in force. UsageError: it has no threshold of that name.
    """
    row = next((one for one in kept.thresholds(session) if one.id == id_), None)
    if row is None:
        raise NotFoundError(f"no thresholds {id_} in force: thresholds lists them")
    unknown = [name for name in body.names if name not in row.values]
    if unknown:
        raise UsageError(
            f"thresholds {id_} do not set {unknown[0]!r}: they set {', '.join(row.values)}; give one of these"
        )
    kept.end_thresholds(session, id_, now_ms, body.who)
    left = {name: value for name, value in row.values.items() if body.names and name not in body.names}
    if not left:
        return []
    made = kept.add_thresholds(
        session,
        rule_id=row.rule_id,
        selectors=row.selectors,
        values=left,
        note=row.note,
        who=row.who,
        now_ms=now_ms,
    )
    return _of_key(session, settings, now_ms, row.rule_id, made.id)


def _same(session: Session, rule_id: str, selectors: Sequence[Selector]) -> list[KeptThresholds]:
    """What is kept of the same rule and part: one, or several where people set it at the same moment."""
    part = frozenset(selectors)
    return [
        one for one in kept.thresholds(session) if one.rule_id == rule_id and frozenset(one.selectors) == part
    ]


def _of_key(session: Session, settings: Settings, now_ms: int, rule_id: str, id_: int) -> list[ThresholdView]:
    return [row for row in rows(session, settings, now_ms, rule_id) if row.id == id_]
