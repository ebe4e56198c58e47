"""What sizing a model found, for people: the best choice as a sentence and tiles, and a row for each GPU model. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from api import formats
from api.overview_parts import Tile
from api.pages.plan_size_charts import memory_bar
from api.resources.plan_size import SizeAnswer, SizeRow

BOUND: Final = {"memory": "memory", "slo": "the promise", "compute": "arithmetic"}


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
        "the same at both ends of the estimate"
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
