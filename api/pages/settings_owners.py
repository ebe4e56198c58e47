"""Settings › Owners and hosts: whose GPU time is, rule by rule, what nobody owns, what is said of hosts, and forms for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from api import formats
from api.pages.form_routes import Fields, FormRoutes
from api.pages.forms import NO_FORM, FormDep, FormState, given, ticked, whole_number
from api.pages.frame import Frame, build_frame
from api.pages.view import Address, View, ViewDep
from api.resources import host_facts, owner_claims, owners, unowned
from api.resources.host_facts import HostSays
from api.resources.owner_claims import DryRun
from api.resources.owner_specs import TEXTS, RuleSpec, rule_of
from api.resources.owners import RuleView
from api.resources.unowned import UnownedRow
from api.templating import render
from api.words import WORKLOAD
from core.errors import UsageError
from core.ownership import HostFacts
from store.queries import host_facts as kept_facts

router = APIRouter(include_in_schema=False)
PAGE: Final = "/settings/owners"
TEMPLATE: Final = "pages/settings_owners.html"

OWNER: Final = ("team", "project", "cost_centre")
LABELS: Final = ("labels", "host_labels")
RULE: Final = (*OWNER, *TEXTS, *LABELS, "valid_from", "valid_to", "note")
FACTS: Final = ("cluster", "instance_type", "region")
FILLS: Final = ("user", "namespace", "kind", "host")
"""Conditions that an address may fill in: ``?user=ann``."""
MOST_UNOWNED: Final = 12
MOST_CLAIMS: Final = 8
MOST_HOSTS: Final = 6
MOST_KNOWN: Final = 300


@dataclass(frozen=True, slots=True)
class UnownedLine:
    """Unowned time as people read it; ``href``: the form with its conditions filled in."""

    row: UnownedRow
    what: str
    href: str


@dataclass(frozen=True, slots=True)
class FactsLine:
    """Hosts of which the same is said."""

    hosts: str
    count: int
    facts: HostFacts


@dataclass(frozen=True, slots=True)
class OwnersPage:
    """Everything the page prints. ``dry``: answer to "what would it claim"; None: not asked."""

    frame: Frame
    headline: str
    rules: tuple[RuleView, ...]
    unowned: tuple[UnownedLine, ...]
    unowned_more: int
    hosts: tuple[FactsLine, ...]
    teams: tuple[str, ...]
    known: tuple[str, ...]
    form: FormState
    dry: DryRun | None
    dry_said: str
    kinds: tuple[tuple[str, str], ...] = (("", "any"), *WORKLOAD.items())
    most_claims: int = MOST_CLAIMS


@dataclass(frozen=True, slots=True)
class Read:
    """What the page is made of."""

    rules: Sequence[RuleView]
    unowned: Sequence[UnownedRow]
    facts: Sequence[HostFacts]
    known: Sequence[str] = ()


def page_of(frame: Frame, read: Read, *, form: FormState = NO_FORM, dry: DryRun | None = None) -> OwnersPage:
    """The page from what was read and typed; pure."""
    lines = [UnownedLine(row, unowned_what(row), unowned_href(row)) for row in read.unowned]
    return OwnersPage(
        frame=frame,
        headline=headline(read.rules, read.unowned),
        rules=tuple(read.rules),
        unowned=tuple(lines[:MOST_UNOWNED]),
        unowned_more=max(0, len(lines) - MOST_UNOWNED),
        hosts=facts_lines(read.facts),
        teams=tuple(sorted({rule.team for rule in read.rules})),
        known=tuple(read.known),
        form=form,
        dry=dry,
        dry_said="" if dry is None else dry_said(dry).replace(formats.NBSP, " "),
    )


def headline(rules: Sequence[RuleView], left: Sequence[UnownedRow]) -> str:
    """How much nobody owns, in a sentence."""
    named = rules_said(rules)
    known = [row.cost_usd for row in left if row.cost_usd is not None]
    if known:
        return f"{named}; {formats.money(sum(known))} of the last 30 days is nobody’s"
    hours = sum(row.gpu_h for row in left)
    if hours:
        return f"{named}; {formats.gpu_hours(hours)} of the last 30 days are nobody’s"
    return f"{named}; everything is owned" if any(rule.in_force for rule in rules) else named


def rules_said(rules: Sequence[RuleView]) -> str:
    """How many rules hold for how many teams."""
    now = [rule for rule in rules if rule.in_force]
    teams = len({rule.team for rule in now})
    count = f"{len(now)} rule{'s' if len(now) != 1 else ''}"
    return (
        f"{count} for {teams} team{'s' if teams != 1 else ''}"
        if now
        else "No rule says yet whose GPU time is"
    )


def unowned_what(row: UnownedRow) -> str:
    """What unowned time is of."""
    if row.kind is None:
        return "GPUs by themselves: idle, gaps, held by something unseen"
    kind = WORKLOAD.get(row.kind, row.kind.replace("_", " "))
    parts = [f"{kind[:1].upper()}{kind[1:]}{'es' if kind.endswith('s') else 's'}"]
    if row.user:
        parts.append(f"of {row.user}")
    if row.namespace:
        parts.append(f"in {row.namespace}")
    return " ".join(parts)


def unowned_href(row: UnownedRow) -> str:
    """The page with a rule for it typed in: as little as tells it apart."""
    if row.kind is None:
        return "#add"  # by host, and which one only its reader knows
    narrow = {"user": row.user, "namespace": row.namespace}
    told = {name: value for name, value in narrow.items() if value} or {"kind": row.kind}
    return f"{Address(PAGE).href(**told)}#add"


def facts_lines(facts: Sequence[HostFacts]) -> tuple[FactsLine, ...]:
    """Hosts of which the same is said, together; those of which nothing is said first."""
    groups: dict[tuple[Any, ...], list[HostFacts]] = {}
    for one in facts:
        groups.setdefault((one.cluster, one.instance_type, one.region, one.labels), []).append(one)
    lines = []
    for key, of in groups.items():
        names = sorted(one.host for one in of)
        more = f" and {len(names) - MOST_HOSTS} more" if len(names) > MOST_HOSTS else ""
        lines.append(
            (
                key != (None, None, None, ()),
                FactsLine(", ".join(names[:MOST_HOSTS]) + more, len(names), of[0]),
            )
        )
    return tuple(line for _, line in sorted(lines, key=lambda pair: (pair[0], -pair[1].count, pair[1].hosts)))


def dry_said(dry: DryRun) -> str:
    """What a rule would do, in a sentence."""
    days = formats.duration((dry.window.to_ms - dry.window.from_ms) / 1000)
    if not dry.claimed_gpu_h:
        kept = sum(claim.gpu_h for claim in dry.kept_by_others)
        if kept:
            return f"It would book nothing of the last {days}: earlier rules have the {formats.gpu_hours(kept)} that it fits"
        return f"It would book nothing: it fits no GPU time of the last {days}"
    cost = "" if dry.claimed_usd is None else f", {formats.money(dry.claimed_usd)} at today’s prices,"
    return (
        f"It would book {formats.gpu_hours(dry.claimed_gpu_h)}{cost} of the last {days} to {dry.rule.owner}"
    )


def build_owners(view: View, form: FormState = NO_FORM, dry: DryRun | None = None) -> OwnersPage:
    """The page; an address may fill in the form: ``?user=ann``."""
    scope, session = view.scope, view.scope.session
    filled = {name: view.address.get(name) for name in FILLS if view.address.get(name)}
    if form is NO_FORM and filled:
        form = FormState("add", filled)
    facts = kept_facts.host_facts(session)
    rules = owners.rows(session, scope.now_ms)
    left = unowned.rows(scope)
    names = {name for row in left for name in (row.user, row.namespace) if name}
    read = Read(rules, left, tuple(facts.values()), sorted({*facts, *names})[:MOST_KNOWN])
    frame = build_frame(view, active="settings", title="Owners and hosts", window_text="")
    return page_of(frame, read, form=form, dry=dry)


def rule_given(fields: Mapping[str, str]) -> RuleSpec:
    """The rule that a form asks for. Raises ``UsageError``."""
    typed: dict[str, Any] = {"team": "", **given(fields, RULE)}
    for name in LABELS:
        if name in typed:
            typed[name] = pairs_of(typed[name])
    return RuleSpec(**typed, catch_all=ticked(fields, "catch_all"))


def pairs_of(text: str) -> tuple[str, ...]:
    """``NAME=VALUE`` pairs of one field, with semicolons or commas between them."""
    return tuple(part.strip() for part in text.replace(";", ",").split(",") if part.strip())


def facts_given(fields: Mapping[str, str]) -> HostSays:
    """What a form says of hosts; a pair without a value removes."""
    typed = given(fields, ("host", *FACTS, "more"))
    said: dict[str, str | None] = {name: typed[name] for name in FACTS if name in typed}
    for pair in pairs_of(typed.get("more", "")):
        name, mark, value = (part.strip() for part in pair.partition("="))
        if not mark:
            raise UsageError(f"more is {pair[:40]!r}: give NAME=VALUE, or NAME= to remove it")
        said[name] = value or None
    if "host" not in typed:
        raise UsageError("host is empty: name one, * stands for anything")
    if not said:
        raise UsageError("more is empty: say something of the hosts")
    return HostSays(typed["host"], said)


FORMS: Final = FormRoutes(router, PAGE, lambda view, form: render(TEMPLATE, build_owners(view, form)))


@router.get(PAGE, response_class=HTMLResponse)
def owners_page(view: ViewDep) -> str:
    """The page as HTML."""
    return render(TEMPLATE, build_owners(view))


@router.post(f"{PAGE}/add")
def add_rule(view: ViewDep, fields: FormDep) -> Response:
    """Keep a rule; or, with the button ``look``, say what it would claim."""
    scope = view.scope
    if "look" not in fields:

        def act() -> None:
            place = whole_number(fields, "position", "1")
            owners.add(scope.session, scope.settings, scope.now_ms, rule_given(fields), place)

        return FORMS.answer(view, "add", fields, act, "added")
    try:
        place = whole_number(fields, "position", "1")
        rule = rule_of(rule_given(fields), scope.settings, scope.now_ms)
        dry = owner_claims.dry_run(scope, rule, place)
    except UsageError as error:
        return FORMS.refused(view, "add", fields, error)
    return HTMLResponse(render(TEMPLATE, build_owners(view, FormState("add", fields), dry)))


@FORMS.post_row("{id_}/move", form="r{id_}", said="saved")
def move_rule(view: View, id_: int, fields: Fields) -> None:
    """Ask a rule earlier or later."""
    scope = view.scope
    place = whole_number(fields, "position", "1")
    owners.change(scope.session, scope.settings, scope.now_ms, id_, {}, position=place or 1)


@FORMS.post_row("{id_}/hand-over", form="r{id_}", said="saved")
def hand_over_rule(view: View, id_: int, fields: Fields) -> None:
    """Let another owner have what a rule claims from a day on."""
    scope = view.scope
    typed = given(fields, (*OWNER, "on"))
    on = typed.pop("on", "")
    to = RuleSpec(typed.get("team", ""), typed.get("project", ""), typed.get("cost_centre", ""))
    owners.hand_over(scope.session, scope.settings, scope.now_ms, id_, to=to, on=on)


@FORMS.post_row("{id_}/end", form="r{id_}", said="ended")
def end_rule(view: View, id_: int, fields: Fields) -> None:
    """Let a rule end."""
    scope = view.scope
    until = fields.get("valid_to", "").strip()
    owners.change(scope.session, scope.settings, scope.now_ms, id_, {"valid_to": until})


@FORMS.post_row("{id_}/remove", form="r{id_}", said="removed")
def remove_rule(view: View, id_: int, _fields: Fields) -> None:
    """Remove a rule, as if it had never been."""
    owners.remove(view.scope.session, id_)


@FORMS.post("rename", form="rename", said="saved")
def rename_team(view: View, fields: Fields) -> None:
    """Rename a team, or move it to another cost centre, from a day on."""
    scope = view.scope
    typed = given(fields, ("old_team", "to_team", "to_cost_centre", "on"))
    owners.rename(
        scope.session,
        scope.settings,
        scope.now_ms,
        typed.get("old_team", ""),
        typed.get("on", ""),
        to_team=typed.get("to_team"),
        to_cost_centre=typed.get("to_cost_centre"),
    )


@FORMS.post("hosts", form="hosts", said="saved")
def say_of_hosts(view: View, fields: Fields) -> None:
    """Say what hosts are."""
    host_facts.say(view.scope.session, [facts_given(fields)])
