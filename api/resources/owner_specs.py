"""Owner rules as people write them, checked: text in, rules out, and back."""

from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any, Final

from api.resources.moments import moment
from core.clock import iso
from core.errors import UsageError
from core.ownership import Owner, OwnerConditions, OwnerRule
from core.settings import Settings
from ledger.owners import KINDS, matches_everything

TEXTS: Final = ("user", "namespace", "slurm_account", "unit", "image", "kind", "host")
LABELS: Final = ("labels", "host_labels")
LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """An owner rule as it is given.

    Attributes:
        team, project, cost_centre: who pays.
        user … host: patterns; None: not asked. labels, host_labels: ``NAME=PATTERN`` each.
        valid_from, valid_to: a time or a day (in the accounting time zone); None: since ever, and still.
        catch_all: it is meant to match everything.
    """

    team: str
    project: str = ""
    cost_centre: str = ""
    user: str | None = None
    namespace: str | None = None
    slurm_account: str | None = None
    unit: str | None = None
    image: str | None = None
    kind: str | None = None
    labels: tuple[str, ...] = ()
    host: str | None = None
    host_labels: tuple[str, ...] = ()
    valid_from: str | None = None
    valid_to: str | None = None
    note: str = ""
    catch_all: bool = False


SPEC_FIELDS: Final = tuple(field.name for field in fields(RuleSpec))


def rule_of(spec: RuleSpec, settings: Settings, now_ms: int, id_: int = 0) -> OwnerRule:
    """The rule that was meant.

    Raises:
        UsageError: it cannot be one; says which field and what to do.
    """
    conditions = OwnerConditions(
        **{name: _pattern(name, getattr(spec, name)) for name in TEXTS},
        labels=_pairs("labels", spec.labels),
        host_labels=_pairs("host_labels", spec.host_labels),
    )
    _can_match(conditions)
    if matches_everything(conditions) and not spec.catch_all:
        raise UsageError(
            f"the rule for {spec.team or 'no team'} matches everything: give a condition that narrows it (user, namespace, label, "
            "host …), or say catch-all when it is to own whatever no earlier rule claims"
        )
    from_ms = 0 if spec.valid_from is None else when(spec.valid_from, settings, now_ms, "valid_from")
    until_ms = None if spec.valid_to is None else when(spec.valid_to, settings, now_ms, "valid_to")
    if until_ms is not None and until_ms <= from_ms:
        raise UsageError(f"valid_to is {spec.valid_to!r}, not after valid_from: give a later time")
    return OwnerRule(id_, owner_of(spec), conditions, from_ms, until_ms, spec.note.strip())


def owner_of(spec: RuleSpec) -> Owner:
    """Who pays.

    Raises:
        UsageError: no team, or a name that is none.
    """
    names = {name: getattr(spec, name).strip() for name in ("team", "project", "cost_centre")}
    for name, text in names.items():
        if len(text) > LONGEST or not text.isprintable():
            raise UsageError(f"{name} is {text[:40]!r}: use up to {LONGEST} printable characters")
    if not names["team"]:
        raise UsageError("team is empty: say who pays")
    return Owner(**names)


def spec_of(rule: OwnerRule) -> RuleSpec:
    """A stored rule as it could have been given."""
    conditions = rule.conditions
    labels: dict[str, Any] = {
        name: tuple(f"{key}={pattern}" for key, pattern in getattr(conditions, name)) for name in LABELS
    }
    return RuleSpec(
        team=rule.owner.team,
        project=rule.owner.project,
        cost_centre=rule.owner.cost_centre,
        **{name: getattr(conditions, name) for name in TEXTS},
        **labels,
        valid_from=iso(rule.valid_from_ms),
        valid_to=iso(rule.valid_to_ms),
        note=rule.note,
        catch_all=matches_everything(conditions),
    )


def when(text: str, settings: Settings, now_ms: int, flag: str) -> int:
    """A point in time; a day begins at midnight of the accounting time zone, as days of the ledger do.

    Raises:
        UsageError: neither time, day nor age, or a year out of bounds; names the flag.
    """
    return moment(text, settings.accounting_time_zone, now_ms, flag)


def _pattern(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    found = text.strip()
    if not found or len(found) > LONGEST or not found.isprintable():
        raise UsageError(
            f"{name} is {text[:40]!r}: give a name of up to {LONGEST} characters, * stands for anything, or leave it out"
        )
    return found


def _pairs(name: str, texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for text in texts:
        key, mark, pattern = (part.strip() for part in text.partition("="))
        if not mark or not key or not pattern or len(text) > LONGEST or not text.isprintable():
            raise UsageError(f"{name} is {text[:40]!r}: use NAME=VALUE, e.g. namespace=ml-*")
        if key in found:
            raise UsageError(f"{name} gives {key} twice: every condition must hold, so give it once")
        found[key] = pattern
    return tuple(sorted(found.items()))


def _can_match(conditions: OwnerConditions) -> None:
    """A kind that nothing has would make a rule that never claims anything."""
    if conditions.kind is None:
        return
    if not any(fnmatchcase(kind, conditions.kind) for kind in KINDS):
        raise UsageError(f"kind is {conditions.kind!r}: use one of {', '.join(KINDS)}")
