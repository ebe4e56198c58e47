"""What a site says about rules: thresholds, thresholds of a part of the fleet, and what to leave alone until when.

In ``gpuwise.toml``::

    [rules.small-batch]                # thresholds for the fleet
    min_small_ratio = 0.3

    [[rules.scope]]                    # for a part of it; every selector must hold, the last table that fits wins
    rule = "small-batch"
    host = "dev-*"
    min_small_ratio = 0.6

    [[exclusion]]                      # listed as excluded until the end of that day (UTC), then judged again
    gpu = "GPU-1234*"
    until = 2026-12-04
    reason = "hot spare until Friday"
    rule = "empty-gpu"                 # left out: every rule
    since = 2026-11-30                 # left out: at once

Selectors: ``host``, ``gpu``, ``engine``, ``owner`` (the team, or ``team / project``, that by the owner rules pays for the GPU's own time
or for a workload on it), ``user`` (of a workload on it) and ``label`` (``namespace=ml``: an attribute of one); ``*`` stands for anything. Which thresholds a rule has, and their bounds, the advisor knows: it checks
the values here against its own classes at start.

The same can be kept in the database, without access to this file: ``gpuwise thresholds``, ``gpuwise exclusions``, the page
``/settings/rules``, REST. What the database says comes after what the file says, key by key: see ``exclusions.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any, Final

from core.errors import SettingsError

SELECTORS: Final = ("host", "gpu", "engine", "owner", "user", "label")
TABLES: Final = frozenset({"rules", "exclusion"})
"""Top-level tables of the file that are not flat settings."""
FILE: Final = "gpuwise.toml"


class Origin(StrEnum):
    """Where a value comes from."""

    DEFAULT = "default"
    FILE = "file"
    DATABASE = "database"


@dataclass(frozen=True, slots=True)
class Selector:
    """One condition: ``kind`` of ``SELECTORS``, and a pattern with ``*``."""

    kind: str
    pattern: str

    def __str__(self) -> str:
        """For people."""
        return f"{self.kind} {self.pattern}"


@dataclass(frozen=True, slots=True)
class ScopedThresholds:
    """Thresholds of one rule for a part of the fleet; ``place`` names the table for errors."""

    rule_id: str
    selectors: tuple[Selector, ...]
    values: Mapping[str, Any]
    place: str

    @property
    def part(self) -> tuple[str, frozenset[Selector]]:
        """Which rule, and which part of the fleet, in whatever order that is said."""
        return (self.rule_id, frozenset(self.selectors))


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A part of the fleet to leave alone; ``rule_id`` None: by every rule; ``since`` None: ever. ``who`` said so."""

    selectors: tuple[Selector, ...]
    rule_id: str | None
    until: datetime
    reason: str
    place: str
    since: datetime | None = None
    who: str | None = FILE

    def holds_at(self, now: datetime) -> bool:
        """It has begun, and has not ended."""
        return (self.since is None or self.since <= now) and now < self.until

    @property
    def sentence(self) -> str:
        """For people."""
        return f"Excluded until {self.until - timedelta(seconds=1):%Y-%m-%d}: {self.reason}."


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """Everything a site says about rules; ``fleet`` are values by rule and threshold, not yet checked."""

    fleet: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    scoped: tuple[ScopedThresholds, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()

    def then(self, later: "RuleSettings") -> "RuleSettings":
        """These, and after them ``later``, which wins key by key.

        Of thresholds for the same part of the fleet the later ones keep what they do not say themselves; they move to the end,
        because the last part that fits wins.
        """
        fleet = {rule: dict(values) for rule, values in self.fleet.items()}
        for rule, values in later.fleet.items():
            fleet[rule] = {**fleet.get(rule, {}), **values}
        scoped = list(self.scoped)
        for one in later.scoped:
            same = [old for old in scoped if old.part == one.part]
            scoped = [old for old in scoped if old.part != one.part]
            kept = same[-1].values if same else {}
            scoped.append(replace(one, values={**kept, **one.values}))
        return RuleSettings(fleet, tuple(scoped), (*self.exclusions, *later.exclusions))


def parse(tables: Mapping[str, Any], place: str) -> RuleSettings:
    """The tables of one file.

    Args:
        tables: ``rules`` and ``exclusion`` as TOML gives them; either may be missing. place: the file, for errors.

    Raises:
        SettingsError: not of the shape above; names table and key.
    """
    rules = _table(tables.get("rules", {}), f"{place}: [rules]")
    scoped = _array(rules.get("scope", []), f"{place}: [[rules.scope]]")
    fleet = {
        rule: _table(values, f"{place}: [rules.{rule}]") for rule, values in rules.items() if rule != "scope"
    }
    excluded = _array(tables.get("exclusion", []), f"{place}: [[exclusion]]")
    return RuleSettings(
        fleet,
        tuple(_scoped(one, f"{place}: [[rules.scope]] {at}") for at, one in enumerate(scoped, start=1)),
        tuple(_exclusion(one, f"{place}: [[exclusion]] {at}") for at, one in enumerate(excluded, start=1)),
    )


def _scoped(raw: Mapping[str, Any], place: str) -> ScopedThresholds:
    rule = raw.get("rule")
    if not isinstance(rule, str) or not rule:
        raise SettingsError(f'{place}: rule is missing: name the rule it is for, e.g. rule = "small-batch"')
    values = {key: value for key, value in raw.items() if key != "rule" and key not in SELECTORS}
    if not values:
        raise SettingsError(f"{place}: it sets no threshold: give one, or leave the table out")
    return ScopedThresholds(rule, selectors_of(raw, place), values, place)


def _exclusion(raw: Mapping[str, Any], place: str) -> Exclusion:
    for key in raw:
        if key not in {*SELECTORS, "rule", "since", "until", "reason"}:
            raise SettingsError(
                f"{place}: unknown key {key!r}: use {', '.join(SELECTORS)}, rule, since, until, reason"
            )
    rule, reason = raw.get("rule"), raw.get("reason")
    if rule is not None and not isinstance(rule, str):
        raise SettingsError(f'{place}: rule is {rule!r}: name one, e.g. "empty-gpu", or leave it out')
    if not isinstance(reason, str) or not reason.strip():
        raise SettingsError(f"{place}: reason is missing: say why it is left alone")
    since = None if raw.get("since") is None else moment_of("since", raw["since"], place)
    until = until_of(raw.get("until"), place)
    if since is not None and since >= until:
        raise SettingsError(f"{place}: since is not before until: give an earlier since, or leave it out")
    return Exclusion(selectors_of(raw, place), rule, until, reason.strip(" ."), place, since)


def selectors_of(raw: Mapping[str, Any], place: str) -> tuple[Selector, ...]:
    """The selectors among named values, in a fixed order; at least one.

    Raises:
        SettingsError: none is given, or one is no pattern; names place and key.
    """
    found = []
    for kind in SELECTORS:
        pattern = raw.get(kind)
        if pattern is None:
            continue
        if not isinstance(pattern, str) or not pattern:
            raise SettingsError(f"{place}: {kind} is {pattern!r}: give a name, * stands for anything")
        if kind == "label" and "=" not in pattern:
            raise SettingsError(f"{place}: label is {pattern!r}: use NAME=VALUE, e.g. namespace=ml")
        found.append(Selector(kind, pattern))
    if not found:
        raise SettingsError(f"{place}: it names no part of the fleet: give one of {', '.join(SELECTORS)}")
    return tuple(found)


def until_of(raw: object, place: str) -> datetime:
    """End of a day that is named, or a time. Raises ``SettingsError``: missing, or neither."""
    if raw is None:
        raise SettingsError(f"{place}: until is missing: an exclusion ends some day, e.g. until = 2026-12-04")
    at = moment_of("until", raw, place)
    return at + timedelta(days=1) if _is_day(raw) else at


def moment_of(key: str, raw: object, place: str) -> datetime:
    """Start of a day that is named, or a time. Raises ``SettingsError``: neither; names place and key."""
    value = raw
    if isinstance(raw, str):
        try:
            value = date.fromisoformat(raw) if _is_day(raw) else datetime.fromisoformat(raw)
        except ValueError as error:
            raise SettingsError(f"{place}: {key} is {raw!r}: give a day such as 2026-12-04") from error
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise SettingsError(f"{place}: {key} is {raw}, which names no time zone: append Z")
        return value.astimezone(UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    raise SettingsError(f"{place}: {key} is {raw!r}: give a day such as 2026-12-04")


def _is_day(raw: object) -> bool:
    if isinstance(raw, str):
        return len(raw) == len("2026-12-04")
    return isinstance(raw, date) and not isinstance(raw, datetime)


def _table(raw: object, place: str) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping):
        raise SettingsError(f"{place} is {raw!r}: it must be a table of names and values")
    return raw


def _array(raw: object, place: str) -> list[Mapping[str, Any]]:
    if not isinstance(raw, list) or not all(isinstance(one, Mapping) for one in raw):
        raise SettingsError(f"{place} is {raw!r}: write it with double brackets, one table each")
    return raw
