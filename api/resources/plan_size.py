"""Size a model: every GPU model of the catalogue for one load, priced, cheapest first.

A price is the user's for that model, where one is in force, else the catalogue's median with its date. Prices for single
GPUs, hosts and labels are not for a model; one for ``all`` is taken for the models that the fleet has.

    usd_per_hour = GPUs · price,  usd_per_million_tokens = 10⁶·usd_per_hour/(3600·tok/s)     (cost-model 4)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Annotated, Final

from sqlalchemy.orm import Session

from advisor.estimators.sizing import Sized, Speed, size
from api.resources.columns import about
from api.resources.plan_size_inputs import Asked, Question, SizeInputs, question
from api.resources.pricing import price_lookup, spec_of
from api.resources.recommendations import MoneyRange
from catalog import gpu_specs
from core.evidence import Price
from core.finding import Range
from core.money import usd
from core.readings import GpuIdentity
from core.settings import Settings
from core.user_price import Scope
from ledger.price_lookup import PriceLookup
from store.known import known_gpus

MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class SizeRow:
    """One GPU model's answer; null is not known, and ``why_not`` says why."""

    gpu_key: Annotated[str, about("GPU model, key of the catalogue.")]
    gpus_needed: Annotated[int | None, about("GPUs for the whole load, at the middle of the estimate.")]
    weights_bytes: Annotated[float, about("One copy of the weights, group scales included.")]
    kv_bytes_per_token: Annotated[float, about("KV cache of one token, within every sliding window.")]
    kv_bytes: Annotated[float | None, about("KV cache of all requests at once at their full length.")]
    activation_bytes: Annotated[float, about("Activations and buffers on each GPU.")]
    fits: Annotated[bool, about("Weights and at least one request fit in a node of 8.")]
    tokens_per_s: Annotated[
        float | None, about("Generated, whole service; with a request rate, what is asked.")
    ]
    itl_s: Annotated[float | None, about("Mean time between tokens of one request.")]
    usd_per_hour: Annotated[Decimal | None, about("All GPUs needed; null: no price.")]
    usd_per_million_tokens: Annotated[Decimal | None, about("Per 1M generated tokens, all cost on them.")]
    usd_per_million_tokens_in_out: Annotated[
        Decimal | None, about("Per 1M prompt and generated tokens together.")
    ]
    tensor_parallel: Annotated[int | None, about("GPUs of one replica.")]
    replicas: Annotated[int | None, about("Copies of the model.")]
    slo_met: Annotated[bool | None, about("The promise is kept at the estimate's middle; null: no promise.")]
    bound_by: Annotated[
        str | None, about("What asks for more than one GPU: memory, slo or compute; null: one is enough.")
    ]
    itl_median_s: Annotated[
        float | None, about("Time between tokens in a step that carries nobody's prompt.")
    ]
    ttft_s: Annotated[float | None, about("Time to the first token, without a queue.")]
    concurrency: Annotated[float | None, about("Requests at once; from a request rate by Little's law.")]
    max_concurrency: Annotated[
        int | None, about("Most requests at once on these GPUs within memory and promise.")
    ]
    max_tokens_per_s: Annotated[float | None, about("Generated at that many requests.")]
    power_w: Annotated[float | None, about("One GPU at work, without its host.")]
    j_per_token: Annotated[float | None, about("Energy of the GPUs per generated token, while at work.")]
    overhead_bytes: Annotated[float, about("Driver context on each GPU.")]
    memory_per_gpu_bytes: Annotated[
        float | None, about("Weights, KV cache, activations and overhead on one GPU.")
    ]
    memory_bytes: Annotated[float, about("Memory of one such GPU.")]
    rule_of_thumb_bytes: Annotated[
        float, about("parameters × bits ÷ 8 × 1.25: knows neither context nor load.")
    ]
    rule_of_thumb_gpus: Annotated[int, about("GPUs whose memory holds that.")]
    gpus_needed_range: Annotated[
        dict[str, int | None] | None, about("Times at their fast (p10) and slow (p90) end; null: at none.")
    ]
    tokens_per_s_range: Annotated[Range | None, about("80 % interval.")]
    itl_s_range: Annotated[Range | None, about("80 % interval.")]
    ttft_s_range: Annotated[Range | None, about("80 % interval.")]
    j_per_token_range: Annotated[Range | None, about("80 % interval.")]
    usd_per_million_tokens_range: Annotated[MoneyRange | None, about("80 % interval, at this price.")]
    uncertainty_ratio: Annotated[float | None, about("Relative half-width of times and rates.")]
    usd_per_gpu_hour: Annotated[Decimal | None, about("Price of one GPU.")]
    gpus_per_unit: Annotated[int | None, about("GPUs that are rented together in most offers.")]
    usd_per_hour_in_units: Annotated[
        Decimal | None, about("The same where GPUs are rented by the unit: whole units of gpus_per_unit.")
    ]
    price_basis: Annotated[str | None, about("Whose price, and of when.")]
    price_as_of: Annotated[str | None, about("Day of the price, ISO 8601, perhaps only its month or year.")]
    why_not: Annotated[str | None, about("Why there is no speed, or why the promise is not kept.")]
    notes: Annotated[tuple[str, ...], about("What to know of this GPU model.")]


@dataclass(frozen=True, slots=True)
class SizeAnswer:
    """What was sized, and every GPU model, cheapest first."""

    asked: Annotated[Asked, about("The load, and what was assumed.")]
    items: Annotated[
        list[SizeRow], about("Those that keep the promise, then those without a price, then the others.")
    ]


def plan_size(session: Session, settings: Settings, now_ms: int, given: SizeInputs) -> SizeAnswer:
    """Size a model on every GPU model asked for.

    Raises:
        UsageError: an input that cannot be, with its field and value.
    """
    asked = question(given)
    return answer(asked, model_prices(session, settings, now_ms, [spec.gpu_key for spec in asked.specs]))


def answer(asked: Question, prices: dict[str, Price]) -> SizeAnswer:
    """Rows for the GPU models of the question, priced by ``gpu_key``."""
    rows = [_row(asked, size(asked.load, spec), prices.get(spec.gpu_key)) for spec in asked.specs]
    return SizeAnswer(asked.asked, sorted(rows, key=partial(_order, asked.asked.sort)))


def model_prices(
    session: Session, settings: Settings, now_ms: int, gpu_keys: Sequence[str]
) -> dict[str, Price]:
    """The price in force of each model that has one."""
    whole = price_lookup(session, settings)
    of_models = [row for row in whole.rows if row.scope_kind == Scope.MODEL]
    names = {
        row.scope_value: spec.gpu_key
        for row in of_models
        if (spec := gpu_specs.resolve(row.scope_value)) is not None
    }
    fleet = {
        spec.gpu_key
        for gpu in known_gpus(session.connection())
        if (spec := spec_of(gpu.identity)) is not None
    }
    of_all = [row for row in whole.rows if row.scope_kind == Scope.ALL]
    here = PriceLookup(rows=[*of_models, *of_all], exchange=whole.exchange)
    elsewhere = PriceLookup(rows=of_models, exchange=whole.exchange)
    found = {}
    for key in gpu_keys:
        lookup = here if key in fleet else elsewhere
        called = [name for name, its_key in names.items() if its_key == key]
        asked = [lookup(GpuIdentity(f"model {name}", model=name), key, now_ms) for name in called or (key,)]
        prices = [price for price in asked if price is not None]
        if prices:
            found[key] = next((price for price in prices if price.from_user), prices[0])
    return found


def _order(sort: str, row: SizeRow) -> tuple[int, bool, Decimal, Decimal, float, str]:
    """Runs and keeps the promise, runs, does not run; priced before unpriced; cheapest first."""
    group = 2 if row.gpus_needed is None else int(row.slo_met is False)
    hour, token = row.usd_per_hour, row.usd_per_million_tokens
    first, second = (hour, token) if sort == "hour" else (token, hour)
    zero = Decimal(0)
    return (group, row.usd_per_hour is None, first or zero, second or zero, row.gpus_needed or 0, row.gpu_key)


def _row(asked: Question, sized: Sized, price: Price | None) -> SizeRow:
    row = _unpriced(sized)
    if price is None:
        return row
    row = replace(
        row,
        usd_per_gpu_hour=price.usd_per_gpu_hour,
        gpus_per_unit=price.gpus_per_unit,
        price_basis=price.basis,
        price_as_of=price.as_of,
    )
    if sized.gpus is None or sized.speed is None:
        return row
    hour = sized.gpus * price.usd_per_gpu_hour
    rate, speed = sized.speed.tokens_per_s, sized.speed
    in_out = 1 + asked.load.prompt_per_generated
    return replace(
        row,
        usd_per_hour=hour,
        usd_per_hour_in_units=-(-sized.gpus // price.gpus_per_unit)
        * price.gpus_per_unit
        * price.usd_per_gpu_hour,
        usd_per_million_tokens=per_million(hour, rate.p50),
        usd_per_million_tokens_in_out=per_million(hour, rate.p50 * in_out),
        usd_per_million_tokens_range=_money_range(sized, speed, price.usd_per_gpu_hour),
    )


def per_million(usd_per_hour: Decimal, tokens_per_s: float) -> Decimal:
    """10⁶·$/h over 3600·tok/s."""
    return MILLION * usd_per_hour / (3600 * usd(tokens_per_s))


def _money_range(sized: Sized, speed: Speed, usd_per_gpu_hour: Decimal) -> MoneyRange | None:
    """With a fixed rate it is the GPUs that vary, else the rate; None where the slow end needs more than any GPUs."""
    assert sized.gpus is not None
    rate = speed.tokens_per_s
    if rate.p10 < rate.p90:
        low, high = sized.gpus * usd_per_gpu_hour, sized.gpus * usd_per_gpu_hour
    elif sized.gpus_p90 is None or sized.gpus_p10 is None:
        return None
    else:
        low, high = sized.gpus_p10 * usd_per_gpu_hour, sized.gpus_p90 * usd_per_gpu_hour
    middle = per_million(sized.gpus * usd_per_gpu_hour, rate.p50)
    return MoneyRange(per_million(low, rate.p90), middle, per_million(high, rate.p10))


def _unpriced(sized: Sized) -> SizeRow:
    speed = sized.speed
    return SizeRow(
        gpu_key=sized.spec.gpu_key,
        gpus_needed=sized.gpus,
        weights_bytes=sized.weight_bytes,
        kv_bytes_per_token=sized.kv_token_bytes,
        kv_bytes=sized.kv_bytes,
        activation_bytes=sized.activation_bytes.p50,
        fits=sized.fits,
        tokens_per_s=None if speed is None else speed.tokens_per_s.p50,
        itl_s=None if speed is None else speed.itl_s.p50,
        usd_per_hour=None,
        usd_per_million_tokens=None,
        usd_per_million_tokens_in_out=None,
        tensor_parallel=sized.tensor_parallel,
        replicas=sized.replicas,
        slo_met=sized.slo_met,
        bound_by=sized.bound_by,
        itl_median_s=None if speed is None else speed.itl_median_s.p50,
        ttft_s=None if speed is None else speed.ttft_s.p50,
        concurrency=None if speed is None else speed.concurrency,
        max_concurrency=None if speed is None or sized.replicas is None else int(speed.most) * sized.replicas,
        max_tokens_per_s=None if speed is None else speed.capacity_tokens_per_s.p50,
        power_w=None if speed is None else speed.power_w.p50,
        j_per_token=None if speed is None else speed.j_per_token.p50,
        overhead_bytes=sized.overhead_bytes,
        memory_per_gpu_bytes=sized.per_gpu_bytes,
        memory_bytes=sized.spec.memory_bytes,
        rule_of_thumb_bytes=sized.thumb_bytes,
        rule_of_thumb_gpus=sized.thumb_gpus,
        gpus_needed_range=None
        if sized.gpus is None
        else {"p10": sized.gpus_p10, "p50": sized.gpus, "p90": sized.gpus_p90},
        tokens_per_s_range=None if speed is None else speed.tokens_per_s,
        itl_s_range=None if speed is None else speed.itl_s,
        ttft_s_range=None if speed is None else speed.ttft_s,
        j_per_token_range=None if speed is None else speed.j_per_token,
        usd_per_million_tokens_range=None,
        uncertainty_ratio=None if speed is None else speed.uncertainty_ratio,
        usd_per_gpu_hour=None,
        gpus_per_unit=None,
        usd_per_hour_in_units=None,
        price_basis=None,
        price_as_of=None,
        why_not=sized.why_not,
        notes=sized.notes,
    )
