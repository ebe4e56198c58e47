"""Size a model as a page: which GPUs serve it, how many, how fast, at what price; the cheapest that keeps the promise first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from api import formats
from api.charts_bars import Part, parts_bar
from api.charts_curves import Curve, Mark, curves
from api.charts_scatter import Upright
from api.pages.frame import Frame, build_frame
from api.pages.plan_fields import link
from api.pages.plan_form import TABS
from api.pages.plan_rent_or_buy import Tile
from api.pages.plan_size_form import MOST_CONFIG, PATH, SizeForm, Start, compact, form_of, model_names
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
BOUND: Final = {"memory": "memory", "slo": "the promise", "compute": "arithmetic"}


@dataclass(frozen=True, slots=True)
class EngineLink:
    """An engine that runs here, and the address that sizes its model for its load."""

    name: str
    text: str
    href: str
    running_p95: float | None


@dataclass(frozen=True, slots=True)
class SizeLine:
    """One GPU model, for people."""

    row: SizeRow
    bar: Markup
    memory: str
    split: str
    tokens: str
    itl: str
    late: bool
    price: str
    token_price: str
    best: bool


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
    "best": Column("GPU model", lambda pair: pair[0], down=False),
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


def best_of(running: Sequence[SizeRow]) -> SizeRow | None:
    """The first that keeps the promise, priced before unpriced; rows come so. None where none keeps it."""
    return next((row for row in running if row.slo_met is not False), None)


def headline(found: SizeAnswer, running: Sequence[SizeRow], best: SizeRow | None) -> tuple[str, str]:
    """The best choice as a sentence."""
    asked = found.asked
    if not running:
        why = found.items[0].why_not if found.items else ""
        return f"None of these GPU models runs {asked.model}", why or ""
    if best is None:
        promises = [
            f"{value:g} ms {what}"
            for value, what in (
                (asked.itl_slo_ms, "between tokens"),
                (asked.ttft_slo_ms, "to the first token"),
            )
            if value is not None
        ]
        return (
            f"No GPU model keeps {' and '.join(promises)} for {asked.model}",
            f"{running[0].gpu_key}: {running[0].why_not or ''}",
        )
    count = f"{best.gpus_needed} × " if best.gpus_needed != 1 else "One "
    verb = "serve" if best.gpus_needed != 1 else "serves"
    if best.usd_per_hour is None:
        return f"{count}{best.gpu_key} {verb} {asked.model}; nobody's price for it is known", ""
    per = f"{formats.money(best.usd_per_hour)} an hour"
    if asked.sort == "token":
        per = f"{formats.money(best.usd_per_million_tokens)} a million tokens"
    return (
        f"{count}{best.gpu_key} {verb} {asked.model} for {per}",
        f"The cheapest of {len(running)} GPU models that run it, at {best.price_basis or 'its price'}.",
    )


def tiles(best: SizeRow, found: SizeAnswer) -> tuple[Tile, ...]:
    """The best choice in figures."""
    spread, money = best.tokens_per_s_range, best.usd_per_million_tokens_range
    gpus = best.gpus_needed_range or {}
    slow = gpus.get("p90")
    itl, slo = best.itl_s_range, found.asked.itl_slo_ms
    return (
        Tile(
            "GPUs",
            formats.figure(best.gpus_needed),
            f"{split_of(best)}; {counts(gpus.get('p10'), slow)}",
        ),
        Tile(
            "Tokens a second",
            formats.short(best.tokens_per_s),
            "as asked"
            if spread is None or spread.p10 == spread.p90
            else f"{formats.short(spread.p10)} to {formats.short(spread.p90)}",
        ),
        Tile(
            "Between tokens",
            formats.milliseconds(best.itl_s),
            f"{formats.milliseconds(itl.p10)} to {formats.milliseconds(itl.p90)}"
            + (f", promised {slo:g} ms" if slo else "")
            if itl
            else "",
        ),
        Tile("To the first token", formats.milliseconds(best.ttft_s), "without a queue, ±50 %"),
        Tile("An hour", formats.money(best.usd_per_hour), in_units(best)),
        Tile(
            "1M tokens",
            formats.money(best.usd_per_million_tokens),
            ""
            if money is None
            else f"{formats.money(money.p10)} to {formats.money(money.p90)}, all cost on generated ones",
        ),
    )


def counts(fast: int | None, slow: int | None) -> str:
    """How many GPUs over the range of the estimate."""
    if slow is None:
        return f"{formats.figure(fast)} if times are short, no number if they are long"
    return (
        "as many over the whole estimate"
        if fast == slow
        else f"{formats.figure(fast)} to {slow} over the estimate"
    )


def in_units(row: SizeRow) -> str:
    """What whole units cost, where they are larger."""
    if row.usd_per_hour_in_units is None or row.usd_per_hour_in_units == row.usd_per_hour:
        return "all of them"
    return f"{formats.money(row.usd_per_hour_in_units)} where it is rented by {row.gpus_per_unit}"


def split_of(row: SizeRow) -> str:
    """Replicas and ranks."""
    ranks, copies = row.tensor_parallel or 1, row.replicas or 1
    each = "1 GPU" if ranks == 1 else f"{ranks} GPUs"
    return f"{copies} replica{'s' if copies != 1 else ''} of {each}"


def line_of(row: SizeRow, found: SizeAnswer, *, best: bool) -> SizeLine:
    """One row of the table."""
    bar, memory = memory_bar(row)
    spread, money = row.tokens_per_s_range, row.usd_per_million_tokens_range
    itl = formats.milliseconds(row.itl_s)
    slo = found.asked.itl_slo_ms
    return SizeLine(
        row=row,
        bar=bar,
        memory=memory,
        split=split_of(row) + (f", by {BOUND[row.bound_by]}" if row.bound_by in BOUND else ""),
        tokens=""
        if spread is None or spread.p10 == spread.p90
        else f"{formats.short(spread.p10)}–{formats.short(spread.p90)}",
        itl=itl if slo is None else f"{itl} of {slo:g}{formats.NBSP}ms",
        late=row.slo_met is False,
        price=formats.money(row.usd_per_hour),
        token_price=""
        if money is None
        else f"{formats.money(money.p10)}–{formats.money(money.p90).removeprefix('$')}",
        best=best,
    )


def memory_bar(row: SizeRow) -> tuple[Markup, str]:
    """What fills one GPU: weights, KV cache, activations and overhead; the rest is free."""
    ranks = row.tensor_parallel or 1
    weights = row.weights_bytes / ranks
    over = row.activation_bytes + row.overhead_bytes
    kv = max(0.0, (row.memory_per_gpu_bytes or 0.0) - weights - over)
    free = max(0.0, row.memory_bytes - weights - kv - over)
    words = (("weights", weights), ("KV cache", kv), ("activations and overhead", over))
    text = ", ".join(f"{name} {formats.gib(size)}" for name, size in words)
    keys = ("k-weights", "k-kv", "k-over")
    label = f"of {formats.gib(row.memory_bytes)} on each GPU: {text}, free {formats.gib(free)}"
    parts = [
        Part(key, size, f"{name} {formats.gib(size)}") for key, (name, size) in zip(keys, words, strict=True)
    ]
    return parts_bar(
        parts, row.memory_bytes, label
    ), f"{formats.gib(free)} of {formats.gib(row.memory_bytes)} free"


def curve_title(curve: RateCurve, best: SizeRow) -> str:
    """What the curve of rate by batch shows."""
    share = curve.batch / (curve.batch + curve.half_batch)
    return f"At {formats.short(round(curve.batch, 1))} requests at once a replica on {best.gpu_key} reaches {formats.percent(share)} of its highest rate"


def curve_chart(curve: RateCurve, best: SizeRow, found: SizeAnswer) -> Markup:
    """Tokens a second by batch of one replica, with the batches that matter."""
    widest = curve.points[-1][0]
    here = best.tokens_per_s / (best.replicas or 1) if best.tokens_per_s is not None else None
    if found.asked.requests_per_s is not None:
        here = None  # the rate is what is asked for, not what the batch could do
    uprights = [Upright(curve.room, f"memory for {curve.room:,}")]
    if curve.half_batch <= widest:
        uprights.append(
            Upright(curve.half_batch, f"half of the rate at {formats.short(round(curve.half_batch, 1))}")
        )
    if curve.promised_batch is not None:
        most = f"{curve.promised_batch:,.0f}" if curve.promised_batch < 1e6 else "any"
        uprights.append(Upright(min(curve.promised_batch, 2 * widest), f"promise kept to {most}"))
    marks = (
        ()
        if here is None
        else (Mark(curve.batch, here, f"{formats.short(here)} tokens/s at {formats.short(curve.batch)}"),)
    )
    return curves(
        (
            Curve(
                "asked",
                tuple((x, y) for x, y, _, _ in curve.points),
                tuple((x, low) for x, _, low, _ in curve.points),
                tuple((x, high) for x, _, _, high in curve.points),
            ),
        ),
        label=f"{curve_title(curve, best)}.",
        x_unit="requests at once in one replica",
        marks=marks,
        uprights=uprights,
        x_to=widest,
        y_to=max(high for _, _, _, high in curve.points),
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
