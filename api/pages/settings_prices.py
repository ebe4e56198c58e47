"""Settings › Prices: what a GPU-hour costs now and since when, where the list price is old, and forms to change that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from api import formats
from api.pages.form_routes import Fields, FormRoutes
from api.pages.forms import NO_FORM, FileFormDep, FormState, given, ticked, whole_number
from api.pages.frame import Frame, build_frame
from api.pages.view import View, ViewDep
from api.resources import effective_prices, exchange_rates
from api.resources import prices as resource
from api.resources.effective_prices import EffectivePriceRow
from api.resources.exchange_rates import RateView
from api.resources.price_specs import bodies_of, parsed
from api.resources.prices import ImportView, PriceView
from api.templating import render
from core.clock import to_ms
from core.errors import UsageError
from core.user_price import Scope
from store.known import known_gpus
from store.queries import host_facts

router = APIRouter(include_in_schema=False)
PAGE: Final = "/settings/prices"
TEMPLATE: Final = "pages/settings_prices.html"

SCOPES: Final = {
    Scope.MODEL: "GPU model",
    Scope.ALL: "everything",
    Scope.HOST: "host",
    Scope.CLUSTER: "cluster",
    Scope.LABEL: "label (key=value)",
    Scope.INSTANCE_TYPE: "instance type",
    Scope.GPU: "GPU (UUID)",
}
BILLINGS: Final = {
    "on_demand": "on demand",
    "reserved": "reserved",
    "committed": "committed",
    "spot": "spot",
    "owned": "owned",
}
TEXTS: Final = (
    *("scope_kind", "scope_value", "amount_per_gpu_hour", "currency", "billing"),
    *("valid_from", "valid_to", "commitment", "upfront", "note"),
)
WHOLE: Final = ("gpus_per_unit", "committed_gpus")
OWNED: Final = (
    *("capex", "life_years", "residual_ratio", "cost_of_capital_ratio", "maintenance_ratio"),
    *("staff_per_year", "colo_per_kw_month"),
)
MOST_HOSTS: Final = 4
MOST_KNOWN: Final = 300


@dataclass(frozen=True, slots=True)
class NowLine:
    """GPUs of one model with one price now."""

    row: EffectivePriceRow
    gpus: int
    hosts: str
    age: str


@dataclass(frozen=True, slots=True)
class PriceLine:
    """A price as people read it."""

    row: PriceView
    what: str
    billing: str
    amount: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class Preview:
    """What a file would do; ``text``: the file, to be sent again with the word to keep it."""

    made: ImportView
    text: str
    lines: tuple[PriceLine, ...]
    supersede: bool


@dataclass(frozen=True, slots=True)
class PricesPage:
    """Everything the page prints."""

    frame: Frame
    headline: str
    now: tuple[NowLine, ...]
    prices: tuple[PriceLine, ...]
    rates: tuple[RateView, ...]
    known: tuple[str, ...]
    form: FormState
    preview: Preview | None
    scopes: tuple[tuple[str, str], ...] = tuple((kind.value, words) for kind, words in SCOPES.items())
    billings: tuple[tuple[str, str], ...] = tuple(BILLINGS.items())


@dataclass(frozen=True, slots=True)
class Read:
    """What the page is made of."""

    effective: Sequence[EffectivePriceRow]
    prices: Sequence[PriceView]
    rates: Sequence[RateView]
    known: Sequence[str] = field(default_factory=tuple)


def page_of(
    frame: Frame, read: Read, *, form: FormState = NO_FORM, preview: Preview | None = None
) -> PricesPage:
    """The page from what was read and typed; pure."""
    lines = [price_line(row, frame.now_ms) for row in read.prices]
    return PricesPage(
        frame=frame,
        headline=headline(read.effective),
        now=now_lines(read.effective),
        prices=tuple(sorted(lines, key=lambda line: line.is_over)),
        rates=tuple(read.rates),
        known=tuple(read.known),
        form=form,
        preview=preview,
    )


def headline(rows: Sequence[EffectivePriceRow]) -> str:
    """What is priced by what, in a sentence."""
    if not rows:
        return "No GPU is known yet, so nothing needs a price"
    count = effective_prices.counts(list(rows))
    gpus = f"{formats.figure(len(rows))} GPU{'s' if len(rows) != 1 else ''}"
    own = sum(row.price_id is not None for row in rows)
    parts = []
    if count["unpriced_count"]:
        parts.append(f"{formats.figure(count['unpriced_count'])} of {gpus} have no price")
    if count["stale_count"]:
        of = "" if parts else f" of {gpus}"
        oldest = max(row.price_age_days or 0 for row in rows if row.stale)
        parts.append(
            f"{formats.figure(count['stale_count'])}{of} go by a list price that is {formats.figure(oldest)} days old"
        )
    if parts:
        return "; ".join(parts)
    if own == len(rows):
        return f"All {gpus} go by your own prices"
    return f"{formats.figure(own) if own else 'None'} of {gpus} {'goes' if own == 1 else 'go'} by your own prices, the others by list prices"


def now_lines(rows: Sequence[EffectivePriceRow]) -> tuple[NowLine, ...]:
    """GPUs of one model and price together; what needs a price first, then what costs most."""
    groups: dict[tuple[Any, ...], list[EffectivePriceRow]] = {}
    for row in rows:
        key = (row.model, row.usd_per_gpu_hour, row.price_basis, row.billing, row.price_id, row.why_unpriced)
        groups.setdefault(key, []).append(row)
    lines = []
    for of in groups.values():
        first = of[0]
        hosts = list(dict.fromkeys(row.host for row in of if row.host))
        more = f" and {len(hosts) - MOST_HOSTS} more" if len(hosts) > MOST_HOSTS else ""
        age = "" if first.price_age_days is None else f"{formats.figure(first.price_age_days)} days"
        lines.append(NowLine(first, len(of), ", ".join(hosts[:MOST_HOSTS]) + more, age))
    order = [line for line in lines if line.row.usd_per_gpu_hour is None]
    priced = [line for line in lines if line.row.usd_per_gpu_hour is not None]
    priced.sort(key=lambda line: (not line.row.stale, -(line.row.usd_per_gpu_hour or 0) * line.gpus))
    return (*order, *priced)


def price_line(row: PriceView, now_ms: int) -> PriceLine:
    """A price as people read it."""
    kind = SCOPES[Scope(row.scope_kind)]
    what = kind if row.scope_kind == Scope.ALL else f"{kind.partition(' (')[0]} {row.scope_value}"
    amount = f"{row.amount_per_gpu_hour.normalize():f} {row.currency}"
    return PriceLine(
        row, what, BILLINGS[row.billing], amount, row.valid_to is not None and to_ms(row.valid_to) <= now_ms
    )


def read_page(view: View) -> Read:
    """What the page is made of."""
    scope = view.scope
    session = scope.session
    known = {
        name
        for gpu in known_gpus(session.connection())
        for name in (gpu.identity.model, gpu.identity.host)
        if name
    }
    for facts in host_facts.host_facts(session).values():
        known |= {name for name in (facts.cluster, facts.instance_type) if name}
        known |= {f"{name}={value}" for name, value in facts.labels}
    return Read(
        effective_prices.rows(session, scope.settings, scope.now_ms),
        resource.rows(session, scope.now_ms),
        exchange_rates.rows(session),
        sorted(known)[:MOST_KNOWN],
    )


def build_prices(view: View, form: FormState = NO_FORM, preview: Preview | None = None) -> PricesPage:
    """The page; an address may fill in the form: ``?model=…`` or ``?host=…``."""
    kind = next((kind for kind in ("model", "host") if view.address.get(kind)), "")
    if form is NO_FORM and kind:
        typed = {"scope_kind": kind, "scope_value": view.address.get(kind)}
        form = FormState("add", {"currency": "USD", **typed})
    frame = build_frame(view, active="settings", title="Prices", window_text="")
    return page_of(frame, read_page(view), form=form, preview=preview)


def price_given(fields: Mapping[str, str]) -> dict[str, Any]:
    """The price that a form asks for, by the names of REST. Raises ``UsageError``."""
    values: dict[str, Any] = {"scope_kind": "", **given(fields, TEXTS)}
    if values["scope_kind"] == Scope.ALL:
        values.pop("scope_value", None)
    values |= {name: number for name in WHOLE if (number := whole_number(fields, name, "8")) is not None}
    owned = {name: _number(name, text) for name, text in given(fields, OWNED).items()}
    if owned:
        count = whole_number(fields, "gpu_count", "8")
        values["owned"] = owned if count is None else owned | {"gpu_count": count}
        values["billing"] = "owned"
    return values


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"{name} is {text[:40]!r}: give a number such as 0.15") from error


def _file_text(fields: Mapping[str, str]) -> str:
    text = fields.get("file", "").strip("\r\n") or fields.get("csv", "").strip("\r\n")
    if not text:
        raise UsageError("csv is empty: choose a file, or paste its lines")
    return text


FORMS: Final = FormRoutes(router, PAGE, lambda view, form: render(TEMPLATE, build_prices(view, form)))


@router.get(PAGE, response_class=HTMLResponse)
def prices_page(view: ViewDep) -> str:
    """The page as HTML."""
    return render(TEMPLATE, build_prices(view))


@FORMS.post("add", form="add", said="added")
def add_price(view: View, fields: Fields) -> None:
    """Keep a price."""
    scope = view.scope
    body = parsed(price_given(fields))
    resource.add(scope.session, scope.settings, scope.now_ms, body, supersede=ticked(fields, "supersede"))


@FORMS.post_row("{id_}/end", form="end-{id_}", said="ended")
def end_price(view: View, id_: int, fields: Fields) -> None:
    """Let a price end."""
    scope = view.scope
    at = fields.get("valid_to", "").strip()
    resource.end(scope.session, scope.settings, scope.now_ms, id_, at)


@FORMS.post_row("{id_}/remove", form="end-{id_}", said="removed")
def remove_price(view: View, id_: int, _fields: Fields) -> None:
    """Remove a price, as if it had never been given."""
    resource.remove(view.scope.session, id_)


@router.post(f"{PAGE}/import")
def import_prices(view: ViewDep, fields: FileFormDep) -> Response:
    """Say what a file would do; with the button ``keep``, keep it: all of it or nothing."""
    scope, session = view.scope, view.scope.session
    supersede = ticked(fields, "supersede")

    def act() -> ImportView:
        rows = bodies_of(_file_text(fields))
        return resource.add_all(session, scope.settings, scope.now_ms, rows, supersede=supersede)

    if "keep" in fields:
        return FORMS.answer(view, "import", fields, act, "added")
    try:
        made = act()
        text = _file_text(fields)
    except UsageError as error:
        kept = {"csv": fields.get("file", "") or fields.get("csv", ""), "supersede": "1" if supersede else ""}
        return FORMS.refused(view, "import", kept, error)
    session.rollback()  # a look keeps nothing
    lines = tuple(price_line(row, scope.now_ms) for row in made.prices)
    return HTMLResponse(render(TEMPLATE, build_prices(view, preview=Preview(made, text, lines, supersede))))


@FORMS.post("rates/add", form="rate", said="added")
def add_rate(view: View, fields: Fields) -> None:
    """Keep an exchange rate."""
    body = exchange_rates.parsed(given(fields, exchange_rates.COLUMNS))
    exchange_rates.add(view.scope.session, body, replace_=ticked(fields, "replace"))


@FORMS.post_row("rates/{id_}/remove", form="rate", said="removed")
def remove_rate(view: View, id_: int, _fields: Fields) -> None:
    """Remove an exchange rate that no price starts with."""
    exchange_rates.remove(view.scope.session, id_)
