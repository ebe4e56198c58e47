"""Size a model as a page: which GPUs serve it, how many, how fast, at what price; the cheapest that keeps the promise first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from api import formats
from api.overview_parts import Tile
from api.pages.frame import Frame, build_frame
from api.pages.plan_fields import link
from api.pages.plan_form import TABS
from api.pages.plan_size_charts import curve_chart, curve_title
from api.pages.plan_size_form import MOST_CONFIG, PATH, SizeForm, Start, compact, form_of, model_names
from api.pages.plan_size_lines import SizeLine, best_of, headline, line_of, tiles
from api.pages.sorting import Column, SortLink, sort_rows
from api.pages.view import Address, View, ViewDep
from api.resources.engines import with_servings
from api.resources.plan_size import SizeAnswer, SizeRow, answer, model_prices
from api.resources.plan_size_curve import RateCurve, rate_curve
from api.templating import render
from catalog import llm_models
from core.errors import UsageError
from store.queries import fleet

router = APIRouter(include_in_schema=False)

FIRST_MODEL: Final = "llama-3.1-8b"
"""Sized where nothing is asked and no engine runs a model that is known."""
MOST_ENGINES: Final = 6
MOST_BODY: Final = 400_000
"""Bytes of a pasted configuration, as a form sends it."""
SHOWN: Final = 15


@dataclass(frozen=True, slots=True)
class EngineLink:
    """An engine that runs here, and the address that sizes its model for its load."""

    name: str
    text: str
    href: str
    running_p95: float | None


@dataclass(frozen=True, slots=True)
class SizePage:
    """Everything the page prints.

    Attributes:
        lines: GPU models that run it. more: how many of them are not shown. cannot: those that do not, with the reason.
        curve_title, curve: rate by batch of the best one; points: the same as a table.
    """

    frame: Frame
    tabs: tuple[tuple[str, str], ...]
    path: str
    headline: str
    lede: str
    form: SizeForm
    models: tuple[str, ...]
    engines: tuple[EngineLink, ...]
    result: bool
    tiles: tuple[Tile, ...] = ()
    lines: tuple[SizeLine, ...] = ()
    more: tuple[SizeLine, ...] = ()
    cannot: tuple[SizeRow, ...] = ()
    sort: dict[str, SortLink] | None = None
    curve_title: str = ""
    curve: Markup | None = None
    points: tuple[tuple[float, float, float, float], ...] = ()
    assumed: tuple[str, ...] = ()


COLUMNS: Final = {
    "best": Column("GPU model, best first", lambda pair: pair[0], down=False),
    "gpus": Column("GPUs", lambda pair: pair[1].gpus_needed, down=False),
    "tokens": Column("Tokens/s", lambda pair: pair[1].tokens_per_s),
    "itl": Column("Between tokens", lambda pair: pair[1].itl_s, down=False),
    "hour": Column("An hour", lambda pair: pair[1].usd_per_hour, down=False),
    "token": Column("1M tokens", lambda pair: pair[1].usd_per_million_tokens, down=False),
}


def page_of(  # noqa: PLR0917 - the parts of a page
    frame: Frame,
    form: SizeForm,
    found: SizeAnswer | None,
    curve: RateCurve | None,
    address: Address,
    engines: Sequence[EngineLink] = (),
) -> SizePage:
    """Lay out the page; pure. ``found`` None: something asked is wrong."""
    names = model_names()
    if found is None:
        said = "There is no answer yet"
        return SizePage(
            frame,
            TABS,
            PATH,
            said,
            form.wrong or "A field below says what is wrong with it.",
            form,
            names,
            tuple(engines),
            result=False,
        )
    running = [row for row in found.items if row.gpus_needed is not None and row.tokens_per_s is not None]
    best = best_of(running)
    ranked, sort = sort_rows(address, list(enumerate(running)), COLUMNS, "best")
    lines = tuple(line_of(row, found, best=row is best) for _, row in ranked)
    said, lede = headline(found, running, best)
    return SizePage(
        frame=frame,
        tabs=TABS,
        path=PATH,
        headline=said,
        lede=lede,
        form=form,
        models=names,
        engines=tuple(engines),
        result=True,
        tiles=() if best is None else tiles(best, found),
        lines=lines[:SHOWN],
        more=lines[SHOWN:],
        cannot=tuple(row for row in found.items if row.gpus_needed is None or row.tokens_per_s is None),
        sort=sort,
        curve_title="" if curve is None or best is None else curve_title(curve, best),
        curve=None if curve is None or best is None else curve_chart(curve, best, found),
        points=() if curve is None else curve.points[::6],
        assumed=found.asked.assumed,
    )


def build_size(view: View, config: str = "") -> SizePage:
    """The page as the address asks for it."""
    scope, address = view.scope, view.address
    engines = _engines(view) if not address.get("model") and not config else ()
    start = Start(FIRST_MODEL, "an example", None, "assumed")
    if engines:
        link_, served = engines[0]
        name = link_.name if len(link_.name) <= 40 else f"{link_.name[:39]}…"
        start = Start(served, f"served here by {name}", link_.running_p95, f"measured at {name}, p95")
    form = form_of(address, config, start, scope.settings.base_url)
    found = curve = None
    if form.asked is not None:
        keys = [spec.gpu_key for spec in form.asked.specs]
        found = answer(form.asked, model_prices(scope.session, scope.settings, scope.now_ms, keys))
        best = best_of([row for row in found.items if row.tokens_per_s is not None])
        curve = None if best is None else rate_curve(form.asked, best)
    frame = build_frame(view, active="plan", title="Size a model", window_text="")
    return page_of(frame, form, found, curve, address, [one for one, _ in engines])


def _engines(view: View) -> list[tuple[EngineLink, str]]:
    """Engines here whose model is known, the busiest load they had with them."""
    scope = view.scope
    known = [
        (one, spec)
        for one in fleet.engines(scope.session)
        if (spec := llm_models.resolve(one.identity.model)) is not None
    ][:MOST_ENGINES]
    if not known:
        return []
    names = [one.identity.engine for one, _ in known]
    rows = {row.engine: row for row, _ in with_servings(scope, names, known=[one for one, _ in known])}
    found = []
    for one, spec in known:
        row = rows.get(one.identity.engine)
        p95 = (
            None if row is None or row.running_p95 is None or row.running_p95 < 1 else round(row.running_p95)
        )
        load = [] if p95 is None else [("concurrency", str(p95))]
        text = spec.model_key if p95 is None else f"{spec.model_key}, {formats.figure(p95)} at once (p95)"
        href = link(PATH, [("model", spec.model_key)], load)
        found.append((EngineLink(one.identity.engine, text, href, p95), spec.model_key))
    return found


@router.get(PATH, response_class=HTMLResponse)
def size_page(view: ViewDep, config: Annotated[str, Query(max_length=MOST_CONFIG)] = "") -> str:
    """The page as HTML."""
    return render("pages/plan_size.html", build_size(view, config))


@router.post(f"{PATH}/config")
async def paste(request: Request) -> Response:
    """A pasted config.json becomes an address that holds what counts of it."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY:
            raise UsageError("config is too long: paste the config.json alone")
    try:
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=40))
    except ValueError as error:
        raise UsageError("the form cannot be read: use the page's own button") from error
    kept = [(name, value) for name, value in fields.items() if name not in {"config", "model"}]
    return RedirectResponse(link(PATH, [("config", compact(fields.get("config", "")))], kept), 303)
