"""Settings › Tariffs and sites: what electricity costs at which hour, which terms hold for which host, and forms for both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts_week import week_grid
from api.pages.form_routes import Fields, FormRoutes
from api.pages.forms import NO_FORM, FormState, given, ticked
from api.pages.frame import Frame, build_frame
from api.pages.view import View, ViewDep
from api.resources import sites, tariff_specs
from api.resources import tariffs as resource
from api.resources.sites import SiteView, TermsView
from api.resources.tariffs import TariffView
from api.templating import render
from core.clock import to_ms
from core.errors import UsageError
from core.user_site import Scope
from core.user_tariff import Tariff
from store.queries import host_facts
from store.queries import tariffs as kept

router = APIRouter(include_in_schema=False)
PAGE: Final = "/settings/tariffs"
TEMPLATE: Final = "pages/settings_tariffs.html"

SCOPES: Final = {Scope.ALL: "everything", Scope.CLUSTER: "cluster", Scope.HOST: "host"}
TARIFF: Final = ("name", "time_zone", "usd_per_kwh", "valid_from", "valid_to", "note")
PERIOD: Final = ("weekdays", "from_hour", "to_hour", "usd_per_kwh")
PERIODS: Final = 5
"""Rows offered; a tariff with more comes by command line or REST."""
SITE_TEXTS: Final = (
    *("name", "scope_kind", "scope_value", "tariff", "grid_code", "valid_from", "valid_to", "note"),
)
SITE_NUMBERS: Final = ("pue", "host_share_ratio", "host_rest_ratio", "carbon_g_per_kwh")
PAYS: Final = {
    "": "as the broader profile",
    "yes": "yes, energy is added to cost",
    "no": "no, it is in the price",
}
MOST_HOSTS: Final = 4
MOST_KNOWN: Final = 300


@dataclass(frozen=True, slots=True)
class TariffLine:
    """A tariff as people read it; ``sites``: profiles that name it."""

    row: TariffView
    said: str
    grid: Markup | None
    sites: tuple[str, ...]
    is_over: bool


@dataclass(frozen=True, slots=True)
class TermsLine:
    """Hosts for which the same holds now."""

    row: TermsView
    hosts: str
    count: int


@dataclass(frozen=True, slots=True)
class SiteLine:
    """A site profile as people read it."""

    row: SiteView
    what: str
    says: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class TariffsPage:
    """Everything the page prints."""

    frame: Frame
    headline: str
    terms: tuple[TermsLine, ...]
    tariffs: tuple[TariffLine, ...]
    sites: tuple[SiteLine, ...]
    known: tuple[str, ...]
    zone: str
    form: FormState
    scopes: tuple[tuple[str, str], ...] = tuple((kind.value, words) for kind, words in SCOPES.items())
    pays: tuple[tuple[str, str], ...] = tuple(PAYS.items())
    periods: int = PERIODS

    @property
    def tariff_names(self) -> tuple[tuple[str, str], ...]:
        """Tariffs that a site may name."""
        names = dict.fromkeys(line.row.name for line in self.tariffs)
        return (("", "as the broader profile"), *((name, name) for name in names))


@dataclass(frozen=True, slots=True)
class Read:
    """What the page is made of; ``kept``: the tariffs with their weeks."""

    tariffs: Sequence[TariffView]
    kept: Sequence[Tariff]
    sites: Sequence[SiteView]
    terms: Sequence[TermsView]
    known: Sequence[str] = ()


def page_of(frame: Frame, read: Read, *, form: FormState = NO_FORM) -> TariffsPage:
    """The page from what was read and typed; pure."""
    weeks = {tariff.id: tariff for tariff in read.kept}
    users: dict[str, list[str]] = {}
    for site in read.sites:
        if site.tariff is not None and not _is_over(site, frame.now_ms):
            users.setdefault(site.tariff, []).append(site.name)
    tariffs = [
        tariff_line(row, weeks.get(row.id), users.get(row.name, ()), frame.now_ms) for row in read.tariffs
    ]
    places = [SiteLine(row, what_of(row), says(row), _is_over(row, frame.now_ms)) for row in read.sites]
    return TariffsPage(
        frame=frame,
        headline=headline(read.terms),
        terms=terms_lines(read.terms),
        tariffs=tuple(sorted(tariffs, key=lambda line: line.is_over)),
        sites=tuple(sorted(places, key=lambda line: line.is_over)),
        known=tuple(read.known),
        zone=frame.days_zone,
        form=form,
    )


def headline(terms: Sequence[TermsView]) -> str:
    """What a kilowatt-hour costs now, in a sentence."""
    hosts = [row for row in terms if row.host is not None]
    priced = [row for row in terms if row.usd_per_kwh is not None]
    if not priced:
        return "Electricity has no price yet: energy is counted in kilowatt-hours alone"
    prices = sorted({row.usd_per_kwh for row in priced if row.usd_per_kwh is not None})
    said = f"${prices[0].normalize():f}"
    if len(prices) > 1:
        said += f" to ${prices[-1].normalize():f}"
    text = f"A kilowatt-hour costs {said} at this hour"
    left = len(terms) - len(priced)
    if left and hosts:
        text += f"; {formats.figure(left)} of {formats.figure(len(hosts))} hosts have no tariff"
    return text


def terms_lines(terms: Sequence[TermsView]) -> tuple[TermsLine, ...]:
    """Hosts for which the same holds, together; the most hosts first."""
    groups: dict[tuple[Any, ...], list[TermsView]] = {}
    for row in terms:
        key = (
            *(row.site, row.usd_per_kwh, row.tariff, row.pue, row.host_share_ratio, row.host_share_method),
            *(row.carbon_g_per_kwh, row.carbon_code, row.carbon_year, row.pays_for_power),
            tuple(sorted(row.origins.items())),
        )
        groups.setdefault(key, []).append(row)
    lines = []
    for of in groups.values():
        names = [row.host for row in of if row.host is not None]
        more = f" and {len(names) - MOST_HOSTS} more" if len(names) > MOST_HOSTS else ""
        lines.append(TermsLine(of[0], ", ".join(names[:MOST_HOSTS]) + more, len(names)))
    return tuple(sorted(lines, key=lambda line: -line.count))


def tariff_line(row: TariffView, tariff: Tariff | None, users: Sequence[str], now_ms: int) -> TariffLine:
    """A tariff as people read it, with its week as a picture."""
    low, high = (f"${price.normalize():f}" for price in (row.lowest_usd_per_kwh, row.highest_usd_per_kwh))
    said = f"{low} a kWh at all hours" if row.kind == "flat" else f"{low} to {high} a kWh by time of use"
    grid = None
    if tariff is not None and tariff.week:
        dear = sum(price == row.highest_usd_per_kwh for price in tariff.week)
        grid = week_grid(
            tariff.week,
            label=f"{row.name}: {said}; the highest price holds in {dear} of 168 hours of a week, as a table below",
        )
    return TariffLine(row, said, grid, tuple(users), _is_over(row, now_ms))


def what_of(row: SiteView) -> str:
    """What a profile is for."""
    kind = SCOPES[Scope(row.scope_kind)]
    return kind if row.scope_kind == Scope.ALL else f"{kind} {row.scope_value}"


def says(row: SiteView) -> str:
    """What a profile says, in a sentence; what it leaves out is not in it."""
    parts = []
    if row.tariff is not None:
        parts.append(f"tariff {row.tariff}")
    if row.pue is not None:
        parts.append(f"PUE {row.pue:g}")
    if row.host_share_measured:
        parts.append("host share measured")
    if row.host_share_ratio is not None:
        parts.append(f"host share {formats.percent(row.host_share_ratio)}")
    if row.host_rest_ratio is not None:
        parts.append(f"rest of the host {formats.percent(row.host_rest_ratio)}")
    if row.carbon_g_per_kwh is not None:
        parts.append(f"{row.carbon_g_per_kwh:g} gCO2e per kWh")
    elif row.grid_code is not None:
        parts.append(f"grid {row.grid_code}")
    if row.pays_for_power is not None:
        parts.append("pays for power apart" if row.pays_for_power else "power is in the price")
    return ", ".join(parts) or "nothing"


def _is_over(row: TariffView | SiteView, now_ms: int) -> bool:
    return row.valid_to is not None and to_ms(row.valid_to) <= now_ms


def build_tariffs(view: View, form: FormState = NO_FORM) -> TariffsPage:
    """The page as it stands."""
    scope, session = view.scope, view.scope.session
    facts = host_facts.host_facts(session)
    known = {*facts, *(one.cluster for one in facts.values() if one.cluster)}
    read = Read(
        resource.rows(session),
        kept.listing(session),
        sites.rows(session),
        sites.terms(session, scope.settings, scope.now_ms),
        sorted(known)[:MOST_KNOWN],
    )
    frame = build_frame(view, active="settings", title="Tariffs and sites", window_text="")
    return page_of(frame, read, form=form)


def tariff_given(fields: Mapping[str, str]) -> dict[str, Any]:
    """The tariff that a form asks for, by the names of REST."""
    values: dict[str, Any] = {"name": "", **given(fields, TARIFF)}
    periods = []
    for at in range(PERIODS):
        typed = given(fields, [f"{name}{at}" for name in PERIOD])
        if typed:
            periods.append({name: typed[f"{name}{at}"] for name in PERIOD if f"{name}{at}" in typed})
    if periods:
        values["periods"] = periods
    return values


def site_given(fields: Mapping[str, str]) -> dict[str, Any]:
    """The profile that a form asks for, by the names of REST. Raises ``UsageError``."""
    values: dict[str, Any] = {"name": "", **given(fields, SITE_TEXTS)}
    if values.get("scope_kind") == Scope.ALL:
        values.pop("scope_value", None)
    for name, text in given(fields, SITE_NUMBERS).items():
        try:
            values[name] = float(text)
        except ValueError as error:
            raise UsageError(f"{name} is {text[:40]!r}: give a number such as 1.25") from error
    values["host_share_measured"] = ticked(fields, "host_share_measured")
    pays = fields.get("pays_for_power", "")
    return values | ({"pays_for_power": pays == "yes"} if pays else {})


FORMS: Final = FormRoutes(router, PAGE, lambda view, form: render(TEMPLATE, build_tariffs(view, form)))


@router.get(PAGE, response_class=HTMLResponse)
def tariffs_page(view: ViewDep) -> str:
    """The page as HTML."""
    return render(TEMPLATE, build_tariffs(view))


@FORMS.post("add", form="tariff", said="added")
def add_tariff(view: View, fields: Fields) -> None:
    """Keep a tariff."""
    scope = view.scope
    body = tariff_specs.parsed(tariff_given(fields))
    resource.add(scope.session, scope.settings, body, scope.now_ms)


@FORMS.post_row("{id_}/end", form="t{id_}", said="ended")
def end_tariff(view: View, id_: int, fields: Fields) -> None:
    """Let a tariff end."""
    scope = view.scope
    resource.end(scope.session, scope.settings, id_, _at(fields), scope.now_ms)


@FORMS.post_row("{id_}/remove", form="t{id_}", said="removed")
def remove_tariff(view: View, id_: int, _fields: Fields) -> None:
    """Remove a tariff, as if it had never been given."""
    resource.remove(view.scope.session, id_)


@FORMS.post("sites/add", form="site", said="added")
def add_site(view: View, fields: Fields) -> None:
    """Keep a site profile."""
    scope = view.scope
    body = sites.parsed(site_given(fields))
    sites.add(scope.session, scope.settings, body, scope.now_ms)


@FORMS.post_row("sites/{id_}/end", form="s{id_}", said="ended")
def end_site(view: View, id_: int, fields: Fields) -> None:
    """Let a site profile end."""
    scope = view.scope
    sites.end(scope.session, scope.settings, id_, _at(fields), scope.now_ms)


@FORMS.post_row("sites/{id_}/remove", form="s{id_}", said="removed")
def remove_site(view: View, id_: int, _fields: Fields) -> None:
    """Remove a site profile, as if it had never been given."""
    sites.remove(view.scope.session, id_)


def _at(fields: Fields) -> str:
    return fields.get("at", "").strip()
