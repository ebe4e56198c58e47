"""Settings of the rules: what they leave alone until when, the figures they go by, and forms to change both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from advisor.model import Rule, Source
from advisor.rules import RULES
from api import formats
from api.pages.form_routes import Fields, FormRoutes
from api.pages.forms import NO_FORM, FormDep, FormState
from api.pages.frame import Frame, build_frame
from api.pages.view import View, ViewDep
from api.resources import exclusions, thresholds
from api.resources.exclusion_cover import Coverage
from api.resources.exclusions import LONGEST, ExclusionView, State
from api.resources.thresholds import ThresholdView
from api.templating import render
from core.clock import from_ms, to_ms
from core.errors import UsageError
from core.rule_settings import SELECTORS, Origin
from core.settings import Settings
from store.queries import fleet, owners

router = APIRouter(include_in_schema=False)

PAGE: Final = "/settings/rules"
TEMPLATE: Final = "pages/settings_rules.html"
KINDS: Final = {
    "host": "Host",
    "gpu": "GPU (UUID)",
    "engine": "Engine",
    "owner": "Owner",
    "user": "User",
    "label": "Label (name=value)",
}
"""Selectors for people, in the order in which they are offered."""
EXCLUSION: Final = "exclusion"
THRESHOLD: Final = "threshold"
"""Its forms: leave a part alone, set a threshold."""
FIELDS: Final = frozenset({"until", "since", "reason", "who", "value", "pattern0", "pattern1"})
"""Fields beside which a refusal is shown."""
MOST_KNOWN: Final = 200
"""Names offered while typing, of each kind."""
MOST_PAST: Final = 50
MOST_LISTED: Final = 8
ORIGINS: Final = {Origin.DEFAULT: "default", Origin.FILE: "gpuwise.toml", Origin.DATABASE: "set here"}


@dataclass(frozen=True, slots=True)
class ExclusionLine:
    """One exclusion as people read it."""

    row: ExclusionView
    last_day: str
    left: str
    given: str


@dataclass(frozen=True, slots=True)
class ThresholdLine:
    """One threshold as people read it."""

    row: ThresholdView
    value: str
    default: str
    origin: str


@dataclass(frozen=True, slots=True)
class Part:
    """Thresholds that are set for one part of the fleet."""

    name: str
    lines: tuple[ThresholdLine, ...]


@dataclass(frozen=True, slots=True)
class RuleBlock:
    """One rule with its thresholds; ``open``: it is the one that was asked for, with a form below it."""

    id: str
    title: str
    lines: tuple[ThresholdLine, ...]
    changed: int
    sources: tuple[Source, ...]
    open: bool

    @property
    def settable(self) -> tuple[tuple[str, str], ...]:
        """Thresholds that a form may change."""
        rows = [line.row for line in self.lines if not line.row.selectors and not line.row.refused]
        return tuple((row.name, row.name) for row in rows)


@dataclass(frozen=True, slots=True)
class RulesPage:
    """Everything the page prints.

    Attributes:
        known: names to offer while typing, with what each is. covers: answer to "what would it cover"; None: not asked.
        form: the one that came back, of ``EXCLUSION`` or ``THRESHOLD``. first_day, last_day: bounds of an exclusion's last day.
    """

    frame: Frame
    headline: str
    live: tuple[ExclusionLine, ...]
    past: tuple[ExclusionLine, ...]
    form: FormState
    covers: Coverage | None
    parts: tuple[Part, ...]
    rules: tuple[RuleBlock, ...]
    known: tuple[tuple[str, str], ...]
    first_day: str
    last_day: str
    most_listed: int = MOST_LISTED
    kinds: tuple[tuple[str, str], ...] = tuple(KINDS.items())

    @property
    def judges(self) -> tuple[tuple[str, str], ...]:
        """Rules that something may be kept from."""
        return (("", "every rule"), *((rule.id, rule.id) for rule in self.rules))


@dataclass(frozen=True, slots=True)
class Read:
    """What the page is made of."""

    exclusions: Sequence[ExclusionView]
    thresholds: Sequence[ThresholdView]
    known: Sequence[tuple[str, str]] = ()


def page_of(
    frame: Frame,
    read: Read,
    *,
    rule_id: str = "",
    form: FormState = NO_FORM,
    covers: Coverage | None = None,
) -> RulesPage:
    """The page from what was read and typed; the rule of a threshold that was refused is open."""
    now = from_ms(frame.now_ms)
    rule_id = form.value(THRESHOLD, "rule_id", rule_id)
    lines = [exclusion_line(row, now) for row in read.exclusions]
    live = tuple(line for line in lines if line.row.state in exclusions.LIVE)
    past = tuple(line for line in reversed(lines) if line.row.state not in exclusions.LIVE)
    every = [threshold_line(row) for row in read.thresholds]
    set_ = [line for line in every if line.row.origin is not Origin.DEFAULT]
    return RulesPage(
        frame=frame,
        headline=headline([line.row for line in live], len(set_)),
        live=live,
        past=past[:MOST_PAST],
        form=form,
        covers=covers,
        parts=parts_of(set_),
        rules=tuple(block_of(rule, every, is_open=rule.id == rule_id) for rule in RULES),
        known=tuple(read.known),
        first_day=now.date().isoformat(),
        last_day=(now + LONGEST).date().isoformat(),
    )


def block_of(rule: Rule, every: Sequence[ThresholdLine], *, is_open: bool) -> RuleBlock:
    """One rule with its thresholds."""
    lines = tuple(line for line in every if line.row.rule_id == rule.id)
    changed = sum(line.row.origin is not Origin.DEFAULT for line in lines)
    return RuleBlock(rule.id, rule.title, lines, changed, rule.sources, is_open)


def headline(live: Sequence[ExclusionView], changed: int) -> str:
    """What is in force, in one sentence."""
    now = sum(row.state is State.IN_FORCE for row in live)
    later = sum(row.state is State.TO_COME for row in live)
    alone = f"{now} exclusion{'' if now == 1 else 's'} in force" if now else "Nothing is left alone"
    if later:
        alone += f", {later} to come"
    if not changed:
        return f"{alone}; every threshold is at its default"
    return f"{alone}; {changed} threshold{' is' if changed == 1 else 's are'} set"


def exclusion_line(row: ExclusionView, now: datetime) -> ExclusionLine:
    """An exclusion with its end in words."""
    until, at = to_ms(row.until), to_ms(now)
    if row.state is State.TO_COME and row.since is not None:
        left = f"begins in {formats.duration((to_ms(row.since) - at) / 1000)}"
    elif row.state is State.ENDED and row.ended_at is not None:
        who = f" by {row.ended_by}" if row.ended_by else ""
        left = f"ended {formats.day_year(to_ms(row.ended_at))}{who}"
    elif until <= at:
        left = "over"
    else:
        left = f"{formats.duration((until - at) / 1000)} left"
    given = "" if row.set_at is None else formats.day_year(to_ms(row.set_at))
    return ExclusionLine(row, exclusions.last_day(row.until), left, given)


def threshold_line(row: ThresholdView) -> ThresholdLine:
    """A threshold with its figures as people type them."""
    value, default = thresholds.value_text(row.value), thresholds.value_text(row.default)
    return ThresholdLine(row, value, default, ORIGINS[row.origin])


def parts_of(lines: Sequence[ThresholdLine]) -> tuple[Part, ...]:
    """Thresholds that are set, by the part of the fleet; the whole fleet first."""
    names = sorted({line.row.part for line in lines}, key=lambda name: (name != "the fleet", name))
    return tuple(Part(name, tuple(line for line in lines if line.row.part == name)) for name in names)


def read_page(session: Session, settings: Settings, now_ms: int) -> Read:
    """What the page is made of."""
    hosts = sorted({host.host for host in fleet.hosts(session) if host.host is not None})
    engines = [engine.identity.engine for engine in fleet.engines(session)]
    teams = sorted({rule.owner.team for rule in owners.listing(session)})
    known = [
        (name, kind)
        for kind, names in (("host", hosts), ("engine", engines), ("owner", teams))
        for name in names[:MOST_KNOWN]
    ]
    return Read(
        exclusions.rows(session, settings, now_ms, past=True),
        thresholds.rows(session, settings, now_ms),
        known,
    )


def build_rules(view: View, form: FormState = NO_FORM, covers: Coverage | None = None) -> RulesPage:
    """The page as it stands; an address may fill in the form: ``?host=node-07``."""
    rule_id = view.address.get("rule")
    filled = {kind: view.address.get(kind) for kind in KINDS if view.address.get(kind)}
    if form is NO_FORM and filled:
        values = {"rule_id": rule_id, "kind1": "user"}
        for at, (kind, pattern) in enumerate(list(filled.items())[:2]):
            values |= {f"kind{at}": kind, f"pattern{at}": pattern}
        form = FormState(EXCLUSION, values)
    scope = view.scope
    return page_of(
        build_frame(view, active="settings", title="Rules", window_text=""),
        read_page(scope.session, scope.settings, scope.now_ms),
        rule_id=rule_id,
        form=form,
        covers=covers,
    )


def part_of(fields: Mapping[str, str]) -> dict[str, str]:
    """Selectors of a form: pairs of a kind and a pattern. Raises ``UsageError`` for a kind that there is not."""
    found: dict[str, str] = {}
    for at in ("0", "1"):
        kind, pattern = fields.get(f"kind{at}", ""), fields.get(f"pattern{at}", "").strip()
        if not pattern:
            continue
        if kind not in SELECTORS:
            raise UsageError(f"kind{at} is {kind!r}: use {', '.join(SELECTORS)}")
        if kind in found:
            raise UsageError(
                f"pattern{at} names a second {kind}: both must hold, so give one; * stands for anything"
            )
        found[kind] = pattern
    return found


def errors_of(error: str, fields: Mapping[str, str]) -> dict[str, str]:
    """A refusal by the field that it speaks of; the empty key: of the whole form."""
    return {field_of(error, fields): error}


def field_of(error: str, fields: Mapping[str, str]) -> str:
    """The field that a refusal speaks of; "" where it speaks of the form."""
    if error.startswith("setting "):
        return "value"
    if "names no part" in error:
        return "pattern0"
    said = error.removeprefix("exclusion: ").removeprefix("thresholds: ")
    first = said.replace(":", " ").split(" ")[0]
    kinds = {fields.get(f"kind{at}", ""): f"pattern{at}" for at in ("1", "0")}
    return kinds.get(first, first if first in FIELDS else "")


def exclusion_given(fields: Mapping[str, str]) -> exclusions.ExclusionBody:
    """The exclusion that a form asks for. Raises ``UsageError``."""
    names = ("rule_id", "since", "until", "reason", "who")
    given = {name: fields[name].strip() for name in names if fields.get(name, "").strip()}
    return exclusions.parsed({**part_of(fields), **given})


def threshold_given(fields: Mapping[str, str]) -> thresholds.ThresholdsBody:
    """The threshold that a form asks for. Raises ``UsageError``."""
    name = fields.get("name", "")
    value = fields.get("value", "")
    if not value.strip():
        raise UsageError("value is missing: give a number, or none where the rule may go without")
    given = {name: fields[name].strip() for name in ("note", "who") if fields.get(name, "").strip()}
    values = {name: thresholds.value_of("value", value)}
    return thresholds.parsed(
        {**part_of(fields), **given, "rule_id": fields.get("rule_id", ""), "values": values}
    )


FORMS: Final = FormRoutes(
    router, PAGE, lambda view, form: render(TEMPLATE, build_rules(view, form)), errors=errors_of
)


@router.get(PAGE, response_class=HTMLResponse)
def rules_page(view: ViewDep) -> str:
    """The page as HTML."""
    return render(TEMPLATE, build_rules(view))


@router.post(f"{PAGE}/exclusions")
def add_exclusion(view: ViewDep, fields: FormDep) -> Response:
    """Leave a part of the fleet alone; or, with the button ``look``, say what that would cover."""
    scope = view.scope
    if "look" not in fields:

        def act() -> None:
            exclusions.add(scope.session, scope.settings, exclusion_given(fields), scope.now_ms)

        return FORMS.answer(view, EXCLUSION, fields, act, "left-alone")
    try:
        covers = exclusions.look(scope.session, scope.settings, exclusion_given(fields), scope.now_ms)
    except UsageError as error:
        return FORMS.refused(view, EXCLUSION, fields, error)
    return HTMLResponse(render(TEMPLATE, build_rules(view, FormState(EXCLUSION, fields), covers)))


@FORMS.post_row("exclusions/{id_}/end", form="list", said="heard-again")
def end_exclusion(view: View, id_: int, _fields: Fields) -> None:
    """End an exclusion before its time."""
    exclusions.end(view.scope.session, id_, view.scope.now_ms, None)


@FORMS.post("thresholds", form=THRESHOLD, said="threshold-set")
def set_threshold(view: View, fields: Fields) -> None:
    """Set one threshold."""
    scope = view.scope
    thresholds.set_(scope.session, scope.settings, threshold_given(fields), scope.now_ms)


@FORMS.post_row("thresholds/{id_}/end", form="list", said="threshold-ended")
def end_threshold(view: View, id_: int, fields: Fields) -> None:
    """Give one threshold back to the file, or to its default."""
    scope, name = view.scope, fields.get("name", "")
    body = thresholds.ending({"names": [name] if name else []})
    thresholds.end(scope.session, scope.settings, id_, body, scope.now_ms)
