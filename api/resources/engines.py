"""Every LLM engine: load, rate, energy and money per token, and how far it is from its hardware's limits.

Rates are over the time with requests running. Energy and money per token use only the hours in which energy, or the
price of every GPU, is known, with the tokens of those same hours. Engines that share a GPU have money where one workload
is known to be each (``api.resources.engine_accounts``), and no energy: nothing measures whose joules of busy time they are.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final

from advisor.serving import Serving, servings
from api.resources.columns import about
from api.resources.engine_accounts import Account, accounts_of, around
from api.resources.evidence import read_evidence
from api.resources.pricing import PriceLookup, price_lookup
from api.resources.scope import LATEST_MS, Scope
from core.clock import from_ms
from core.evidence import EngineEvidence
from core.hours import EngineHour
from core.money import from_micro, usd
from core.readings import SLICE_PREFIX
from core.series import HourSeries, starts_of
from core.units import DAY_MS, HOUR_MS
from ledger.unit_economics import per_million, usd_per_million_tokens
from store.queries import fleet
from store.queries.engine_sums import tokens_and_joules
from store.queries.fleet import FleetEngine

HOUR_S: Final = HOUR_MS / 1000
LIMITS: Final = ("max_num_seqs", "max_running_requests", "max_batch_size", "max_concurrent_requests")
THIN_BUSY_S: Final = 120.0
"""Two minutes: a run shorter than that is edges more than middle."""
Money = tuple[Decimal | None, str | None]
"""Dollars per million generated tokens, and where the price comes from."""


@dataclass(frozen=True, slots=True)
class EngineRow:
    """One engine over the window."""

    engine: Annotated[str, about("Scrape target and core: instance/engine; unique in the fleet.")]
    host: Annotated[str | None, about("Host part of the instance.")]
    gpu_uuids: Annotated[tuple[str, ...], about("GPUs it runs on; empty when that could not be told.")]
    kind: Annotated[str, about("vllm, sglang, tgi, trtllm or llamacpp.")]
    model: Annotated[str | None, about("Model name as the engine gives it.")]
    running_mean: Annotated[float | None, about("Requests in the batch, mean over busy time.")]
    running_p95: Annotated[float | None, about("Requests in the batch: 95 % of busy time at or below.")]
    waiting_mean: Annotated[float | None, about("Requests waiting, mean over busy time.")]
    kv_used_max_ratio: Annotated[
        float | None, about("Highest share of the KV cache in use, as mean of a sample's interval.")
    ]
    tokens_generated: Annotated[float | None, about("Tokens generated in the window.")]
    tokens_prompt: Annotated[float | None, about("Prompt tokens processed in the window.")]
    tokens_per_s: Annotated[
        float | None, about("Generated tokens per second over the time with requests running.")
    ]
    tokens_per_j: Annotated[
        float | None,
        about("Generated tokens per joule of its GPUs over the same time; null: not known, or shared."),
    ]
    usd_per_million_tokens: Annotated[
        Decimal | None,
        about("Dollars per million generated tokens over the same time; null: a GPU is unpriced or shared."),
    ]
    itl_s: Annotated[
        float | None, about("Mean time between tokens: the engine's histogram, else running × time / tokens.")
    ]
    mbu_ratio: Annotated[float | None, about("Share of the memory bandwidth that decoding uses.")]
    mfu_ratio: Annotated[float | None, about("Share of the dense peak arithmetic rate in use.")]
    half_batch: Annotated[float | None, about("Batch size at which the rate is half of what is reachable.")]
    data_quality: Annotated[tuple[str, ...], about("What limits these figures, in short sentences.")]
    busy_s: Annotated[float, about("Seconds with requests running.")]
    covered_s: Annotated[float, about("Seconds the engine was seen.")]
    ttft_s: Annotated[float | None, about("Mean time to first token, from the engine's histogram.")]
    preemption_count: Annotated[float | None, about("Preempted requests in the window.")]
    finished_requests: Annotated[float | None, about("Requests finished in the window.")]
    join: Annotated[str, about("How its GPUs were told: process, host or unknown.")]
    price_basis: Annotated[str | None, about("Where the price comes from; null: no dollars per token.")]
    first_seen_at: Annotated[datetime | None, about("First hour with data in the window, UTC.")]
    last_seen_at: Annotated[
        datetime | None, about("End of the last hour with data in the window, or of the newest sample, UTC.")
    ]


def rows(scope: Scope, names: Collection[str] | None = None) -> list[EngineRow]:
    """Every engine with data in the window, or those of some names, by name."""
    return [row for row, _ in with_servings(scope, names)]


def with_servings(
    scope: Scope,
    names: Collection[str] | None = None,
    *,
    prices: PriceLookup | None = None,
    known: Sequence[FleetEngine] | None = None,
) -> list[tuple[EngineRow, Serving]]:
    """The same, with what the rules see of each; ``prices`` and ``known`` engines where they are read already."""
    prices = price_lookup(scope.session, scope.settings) if prices is None else prices
    known = fleet.engines(scope.session) if known is None else known
    wanted = [engine for engine in known if names is None or engine.identity.engine in names]
    held = {uuid for engine in wanted for uuid in engine.gpu_uuids}
    ends = {engine.identity.engine: engine.last_seen_ms for engine in wanted}
    found = servings(read_evidence(scope, prices, held, None if names is None else around(names, known)))
    seen = [serving.engine for serving in found]
    neighbours = {engine.identity.engine: _neighbours(engine, seen) for engine in seen}
    asked = [serving for serving in found if serving.engine.identity.engine in ends]
    is_shared = any(neighbours[serving.engine.identity.engine] for serving in asked)
    shares = accounts_of(scope, seen) if is_shared else {}
    paired = tokens_and_joules(scope.session, scope.window, list(ends))
    built = []
    for serving in asked:
        name = serving.engine.identity.engine
        count = neighbours[name]
        money = _of_shares(serving.engine, shares[name][1]) if count else _usd_per_million(serving, prices)
        tokens, joules = paired.get(name, (0.0, 0.0))
        per_j = None if count or joules <= 0 else tokens / joules
        built.append((_row(serving, money, ends.get(name), count, per_j), serving))
    return sorted(built, key=lambda each: each[0].engine)


def _neighbours(engine: EngineEvidence, seen: Sequence[EngineEvidence]) -> int:
    """Other engines that were seen in the window on one of its GPUs."""
    own, name = set(engine.gpu_uuids), engine.identity.engine
    return sum(
        other.identity.engine != name and other.covered_s > 0 and not own.isdisjoint(other.gpu_uuids)
        for other in seen
    )


def _of_shares(engine: EngineEvidence, account: Account) -> Money:
    """Money of its own lines on GPUs that it shares, for the busy part of each hour."""
    tokens = engine.total("busy_generated_tokens")
    if not (account.is_priced and account.is_split):
        return None, None
    return per_million(from_micro(round(account.told_out.busy_cost)), tokens), "; ".join(account.bases)


def _row(
    serving: Serving, priced: Money, newest_ms: int | None, neighbours: int, tokens_per_j: float | None
) -> EngineRow:
    engine = serving.engine
    money, basis = priced
    hours = starts_of(engine.hours)
    return EngineRow(
        engine=engine.identity.engine,
        host=engine.identity.host,
        gpu_uuids=engine.gpu_uuids,
        kind=engine.identity.kind,
        model=engine.identity.model,
        running_mean=engine.running.mean(),
        running_p95=engine.running.quantile(0.95),
        waiting_mean=engine.waiting.mean(),
        kv_used_max_ratio=engine.kv_used.max(),
        tokens_generated=engine.total("generated_tokens"),
        tokens_prompt=engine.total("prompt_tokens"),
        tokens_per_s=_rate(engine),
        tokens_per_j=tokens_per_j,
        usd_per_million_tokens=money,
        itl_s=serving.itl_s,
        mbu_ratio=serving.mbu,
        mfu_ratio=serving.mfu,
        half_batch=serving.half_batch,
        data_quality=tuple(_quality(serving, neighbours, has_money=money is not None)),
        busy_s=engine.busy_s,
        covered_s=engine.covered_s,
        ttft_s=_mean(engine, "ttft_sum_s", "ttft_count"),
        preemption_count=engine.total("preemption_count"),
        finished_requests=engine.total("finished_requests"),
        join=engine.join,
        price_basis=basis,
        first_seen_at=from_ms(min(hours)) if hours else None,
        last_seen_at=from_ms(min(max(hours) + HOUR_MS, newest_ms or LATEST_MS)) if hours else None,
    )


def _rate(engine: EngineEvidence) -> float | None:
    tokens = engine.total("busy_generated_tokens")
    return None if tokens is None or engine.busy_s <= 0 else tokens / engine.busy_s


def _mean(engine: EngineEvidence, total: str, count: str) -> float | None:
    whole, parts = engine.total(total), engine.total(count)
    return None if whole is None or not parts else whole / parts


def _usd_per_million(serving: Serving, prices: PriceLookup) -> Money:
    """Money of the busy time over its tokens at the price in force; None when a GPU has none."""
    cost, tokens, busy_s, bases = Decimal(0), 0.0, 0.0, dict[str, None]()
    rates: dict[int, tuple[Decimal, tuple[str, ...]] | None] = {}  # by stretch of one price
    for hour in _at_one_price(serving.engine, prices.borders):
        if not hour.busy_s:
            continue
        at = bisect_right(prices.borders, hour.hour_ms)
        if at not in rates:
            rates[at] = _usd_per_s(serving, hour, prices)
        priced = rates[at]
        if priced is None or hour.busy_generated_tokens is None:
            return None, None
        rate, names = priced
        cost += rate * usd(hour.busy_s)
        tokens += hour.busy_generated_tokens
        busy_s += hour.busy_s
        bases |= dict.fromkeys(names)
    if busy_s <= 0:
        return None, None
    return usd_per_million_tokens(cost * 3600 / usd(busy_s), tokens / busy_s), "; ".join(bases)


def _at_one_price(engine: EngineEvidence, borders: Sequence[int]) -> Iterator[EngineHour]:
    """Its days, and hours where a price may change within the day or some hour does not know its tokens."""
    hours = engine.hours
    if not isinstance(hours, HourSeries):
        yield from hours
        return
    for day in engine.days:
        changes = bisect_right(borders, day.day_ms) < bisect_left(borders, day.day_ms + DAY_MS)
        unknown = None in day.generated_tokens and any(
            busy_s and tokens is None for busy_s, tokens in zip(day.busy_s, day.generated_tokens, strict=True)
        )
        if changes or unknown:
            yield from hours.of_day(day.day_ms)
        else:
            yield day.whole


def _usd_per_s(
    serving: Serving, hour: EngineHour, prices: PriceLookup
) -> tuple[Decimal, tuple[str, ...]] | None:
    found = [prices(gpu.identity, gpu.gpu_key, hour.hour_ms) for gpu in serving.gpus]
    known = [price for price in found if price is not None]
    if not known or len(known) < len(serving.engine.gpu_uuids):
        return None
    total = sum((price.usd_per_gpu_hour for price in known), Decimal(0))
    return total / usd(HOUR_S), tuple(price.basis for price in known)


def _quality(serving: Serving, neighbours: int, *, has_money: bool) -> Iterator[str]:
    """What a reader must know before trusting the row."""
    engine = serving.engine
    if neighbours:
        others = "1 other engine" if neighbours == 1 else f"{neighbours} other engines"
        split = "its money is that of its own workload's lines, energy is not split here"
        yield f"shares its GPU with {others}: {split if has_money else 'cost and energy are not split here'}"
    if any(uuid.startswith(SLICE_PREFIX) for uuid in engine.gpu_uuids):
        yield "it runs on a MIG slice, which has no price or energy of its own"
    if engine.total("itl_count") is None and serving.itl_s is not None:
        yield "inter-token latency is running × busy time / tokens: the engine published no histogram"
    if not engine.gpu_uuids:
        yield "its GPUs are not known, so energy, money and use of the hardware are not either"
    elif engine.join == "host":
        yield "its GPUs are those of its host: no process says which it holds"
    if engine.busy_s > 0 and engine.total("busy_energy_j") is None and engine.gpu_uuids:
        yield "energy over busy time is not known"
    if not any(name in engine.identity.settings for name in LIMITS):
        yield "the limit on its batch is not published"
    if engine.total("generated_tokens") is None:
        yield "it publishes no count of generated tokens"
    if 0 < engine.busy_s < THIN_BUSY_S:
        yield f"busy for {engine.busy_s:.0f} s only: start and end weigh in"
    if serving.missing and (serving.mbu is None or serving.mfu is None or serving.half_batch is None):
        yield f"use of the hardware is not known: missing {', '.join(serving.missing)}"
    yield from serving.data_quality
