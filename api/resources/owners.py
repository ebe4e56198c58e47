"""Owner rules: kept, changed, handed over. Every change re-books the days it touches; usage stays as it is."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated, Any, Final

from sqlalchemy.orm import Session

from api.resources.columns import about
from api.resources.owner_specs import LABELS, SPEC_FIELDS, RuleSpec, owner_of, rule_of, spec_of, when
from api.resources.table_csv import read, written
from core.clock import from_ms
from core.errors import NotFoundError, UsageError
from core.ownership import OwnerConditions, OwnerRule
from core.settings import Settings
from ledger.owners import handed_over, matches, matches_everything, sentence, subject_of
from store.known import known_gpus
from store.queries import ledger_pending
from store.queries import owners as kept
from store.queries.host_facts import host_facts


@dataclass(frozen=True, slots=True)
class RuleView:
    """An owner rule."""

    id: Annotated[int, about("Its key.")]
    position: Annotated[int, about("Its place: the first rule that fits wins.")]
    owner: Annotated[str, about("Team and project, for people.")]
    team: Annotated[str, about("Who pays.")]
    project: Annotated[str, about("Of the team; may be empty.")]
    cost_centre: Annotated[str, about("That is charged; may be empty.")]
    user: Annotated[str | None, about("Pattern of the workload's user; null: not asked.")]
    namespace: Annotated[str | None, about("Pattern of its Kubernetes namespace.")]
    slurm_account: Annotated[str | None, about("Pattern of its Slurm account.")]
    unit: Annotated[str | None, about("Pattern of its systemd unit.")]
    image: Annotated[str | None, about("Pattern of its image.")]
    kind: Annotated[str | None, about("Pattern of its kind: process, container, pod, slurm_job …")]
    labels: Annotated[tuple[str, ...], about("NAME=PATTERN of its attributes and its name.")]
    host: Annotated[str | None, about("Pattern of the GPU's host.")]
    host_labels: Annotated[tuple[str, ...], about("NAME=PATTERN of what is said of the host.")]
    conditions: Annotated[str, about("All conditions, for people.")]
    valid_from: Annotated[datetime, about("In force from, inclusive, UTC.")]
    valid_to: Annotated[datetime | None, about("In force until, exclusive, UTC; null: still.")]
    in_force: Annotated[bool, about("It is in force now.")]
    note: Annotated[str, about("In your own words.")]
    catch_all: Annotated[bool, about("It matches everything.")]


COLUMNS: Final = tuple(field.name for field in fields(RuleView))
TOLD: Final = ("id", "position", "owner", "conditions", "in_force")
"""Columns that only tell: a rule is not made of them."""


def rows(session: Session, now_ms: int) -> list[RuleView]:
    """Every rule in its order, ended ones too."""
    return [view(rule, place, now_ms) for place, rule in enumerate(kept.listing(session), start=1)]


def view(rule: OwnerRule, position: int, now_ms: int) -> RuleView:
    """A rule at its place."""
    spec = spec_of(rule)
    same = {name: getattr(spec, name) for name in SPEC_FIELDS if name not in {"valid_from", "valid_to"}}
    return RuleView(
        id=rule.id,
        position=position,
        owner=rule.owner.name,
        conditions=sentence(rule.conditions),
        valid_from=from_ms(rule.valid_from_ms),
        valid_to=None if rule.valid_to_ms is None else from_ms(rule.valid_to_ms),
        in_force=rule.holds_at(now_ms),
        **same,
    )


def stored(session: Session, rule_id: int) -> tuple[OwnerRule, list[OwnerRule]]:
    """One rule, and all in their order.

    Raises:
        NotFoundError: there is none of that key.
    """
    rules = kept.listing(session)
    for rule in rules:
        if rule.id == rule_id:
            return rule, rules
    raise NotFoundError(f"no owner rule {rule_id}: gpuwise owners rules lists them")


def add(
    session: Session, settings: Settings, now_ms: int, spec: RuleSpec, position: int | None = None
) -> RuleView:
    """Keep a rule; ``position`` None: last.

    Raises:
        UsageError: it cannot be one; says why.
    """
    kept.lock(session)
    made = kept.insert(session, rule_of(spec, settings, now_ms), position)
    _mark(session, [made])
    return _one(session, made.id, now_ms)


def change(
    session: Session,
    settings: Settings,
    now_ms: int,
    rule_id: int,
    changes: Mapping[str, Any],
    *,
    position: int | None = None,
) -> RuleView:
    """Correct a rule for all of its time, and move it where a position is given.

    ``changes`` by field of ``RuleSpec``. To let another team pay from a day on, hand it over instead.

    Raises:
        UsageError: it cannot be so; says why. NotFoundError: there is none of that key.
    """
    kept.lock(session)
    old, _ = stored(session, rule_id)
    if changes:
        new = rule_of(replace(spec_of(old), **changes), settings, now_ms, rule_id)
        kept.change(session, new)
        _mark_difference(session, old, new)
    if position is not None:
        kept.move(session, rule_id, position)
        _mark(session, [old])
    return _one(session, rule_id, now_ms)


def hand_over(
    session: Session, settings: Settings, now_ms: int, rule_id: int, *, to: RuleSpec, on: str
) -> RuleView:
    """Let another owner have what a rule claims from a day on; until then it stays as it was.

    ``to``: who takes over; of it only team, project and cost centre are read.

    Raises:
        UsageError: the rule ended before that day. NotFoundError: there is none of that key.
    """
    kept.lock(session)
    old, _ = stored(session, rule_id)
    return _handed_over(session, old, to, when(on, settings, now_ms, "on"), now_ms)


def rename(
    session: Session,
    settings: Settings,
    now_ms: int,
    team: str,
    on: str,
    *,
    to_team: str | None = None,
    to_cost_centre: str | None = None,
) -> list[RuleView]:
    """Rename a team, or move it to another cost centre, from a day on: in all of its rules that hold then or later.

    Raises:
        UsageError: neither is given. NotFoundError: no rule of that team holds then or later.
    """
    if to_team is None and to_cost_centre is None:
        raise UsageError(f"nothing to change of team {team}: give its new name, its new cost centre, or both")
    at_ms = when(on, settings, now_ms, "on")
    kept.lock(session)
    concerned = [
        rule
        for rule in kept.listing(session)
        if rule.owner.team == team and (rule.valid_to_ms is None or rule.valid_to_ms > at_ms)
    ]
    if not concerned:
        raise NotFoundError(f"no rule of team {team} holds on {on} or later: gpuwise owners rules lists them")
    made = []
    for rule in concerned:
        spec = RuleSpec(
            team=rule.owner.team if to_team is None else to_team,
            project=rule.owner.project,
            cost_centre=rule.owner.cost_centre if to_cost_centre is None else to_cost_centre,
        )
        made.append(_handed_over(session, rule, spec, at_ms, now_ms))
    return made


def remove(session: Session, rule_id: int) -> None:
    """Remove a rule, as if it had never been; to let it end, give it ``valid_to``.

    Raises:
        NotFoundError: there is none of that key.
    """
    kept.lock(session)
    old, _ = stored(session, rule_id)
    kept.remove(session, rule_id)
    _mark(session, [old])


def import_rules(
    session: Session,
    settings: Settings,
    now_ms: int,
    specs: Sequence[RuleSpec],
    *,
    replace_all: bool = False,
) -> list[RuleView]:
    """Keep many rules in their order after those there are, or in their stead: all or none.

    Raises:
        UsageError: one of them cannot be a rule; says which. There are none, and they were to replace others.
    """
    if replace_all and not specs:
        raise UsageError(
            "no rules are given to replace those there are: remove rules one by one to have none"
        )
    rules = []
    for number, spec in enumerate(specs, start=1):
        try:
            rules.append(rule_of(spec, settings, now_ms))
        except UsageError as error:
            raise UsageError(f"rule {number} of {len(specs)}: {error}; none was kept") from error
    kept.lock(session)
    if replace_all:
        _mark(session, kept.listing(session))
        kept.remove_all(session)
    made = {kept.insert(session, rule).id for rule in rules}
    _mark(session, rules)
    return [one for one in rows(session, now_ms) if one.id in made]


def csv_of(rules: Iterable[Mapping[str, Any]]) -> str:
    """Rules (as JSON has them) as a file that ``specs_of`` reads back exactly."""
    return written(COLUMNS, ([_cell(rule[name]) for name in COLUMNS] for rule in rules))


def specs_of(text: str) -> list[RuleSpec]:
    """Rules of a file as ``csv_of`` writes it; what only tells is passed over.

    Raises:
        UsageError: no such file, or a cell that cannot be read; names the line.
    """
    return [_spec_from(cells, line) for line, cells in read(text, (*SPEC_FIELDS, *TOLD), ("team",))]


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return "" if value is None else str(value)


def _spec_from(cells: Mapping[str, str], line: int) -> RuleSpec:
    given: dict[str, Any] = {}
    for name, cell in cells.items():
        text = cell.strip()
        if name in TOLD or not text:
            continue
        if name in LABELS:
            given[name] = _labels(name, text, line)
        elif name == "catch_all":
            given[name] = _truth(text, line)
        else:
            given[name] = text
    return RuleSpec(**{"team": "", **given})


def _labels(name: str, text: str, line: int) -> tuple[str, ...]:
    """A JSON array, as an export writes it, or ``NAME=VALUE;NAME=VALUE``."""
    if not text.startswith("["):
        return tuple(text.split(";"))
    try:
        return tuple(str(one) for one in json.loads(text))
    except ValueError as error:
        raise UsageError(f"line {line}: {name} is {text[:40]!r}: use NAME=VALUE;NAME=VALUE") from error


def _truth(text: str, line: int) -> bool:
    if text.lower() not in {"true", "false"}:
        raise UsageError(f"line {line}: catch_all is {text!r}: use true or false")
    return text.lower() == "true"


def _handed_over(session: Session, old: OwnerRule, to: RuleSpec, at_ms: int, now_ms: int) -> RuleView:
    try:
        ended, successor = handed_over(old, owner_of(to), at_ms)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if ended is None:
        made = kept.change(session, successor)
    else:
        kept.change(session, ended)
        places = [rule.id for rule in kept.listing(session)]
        made = kept.insert(session, successor, places.index(old.id) + 2)
    _mark(session, [made])
    return _one(session, made.id, now_ms)


def _one(session: Session, rule_id: int, now_ms: int) -> RuleView:
    return next(one for one in rows(session, now_ms) if one.id == rule_id)


def _mark_difference(session: Session, old: OwnerRule, new: OwnerRule) -> None:
    """Only when it begins or ends may have changed: then nothing in between has."""
    if replace(old, valid_to_ms=new.valid_to_ms, note=new.note) != new:
        _mark(session, [old, new])
    elif old.valid_to_ms != new.valid_to_ms:
        ends = [end for end in (old.valid_to_ms, new.valid_to_ms) if end is not None]
        later = max(ends) if len(ends) == 2 else None
        _mark(session, [replace(new, valid_from_ms=min(ends), valid_to_ms=later)])


def _mark(session: Session, rules: Iterable[OwnerRule]) -> None:
    """Mark what the rules may claim: the days they hold, of the GPUs on hosts they ask for."""
    for rule in rules:
        uuids = _gpus_on(session, rule.conditions)
        if uuids is None or uuids:
            ledger_pending.mark(session, rule.valid_from_ms, rule.valid_to_ms, uuids)


def _gpus_on(session: Session, conditions: OwnerConditions) -> list[str] | None:
    """GPUs on hosts that a rule asks for; None: it asks for none."""
    asked = OwnerConditions(host=conditions.host, host_labels=conditions.host_labels)
    if matches_everything(asked):
        return None
    facts = host_facts(session)
    return [
        gpu.identity.gpu_uuid
        for gpu in known_gpus(session.connection())
        if (host := gpu.identity.host) is not None and matches(asked, subject_of(None, host, facts.get(host)))
    ]
