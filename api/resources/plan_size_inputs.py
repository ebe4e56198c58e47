"""What the size calculator is asked, checked: names become catalogue rows, what is left out is assumed and said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Final

from advisor.estimators.sizing_hardware import FORMS, form_of
from advisor.estimators.sizing_load import Load
from api.resources.columns import about
from catalog import gpu_specs, llm_models
from catalog.gpu_specs import GpuSpec
from catalog.llm_config import read_config
from catalog.llm_models import LlmSpec
from core.errors import UsageError

CONTEXT_TOKENS: Final = 4096
OUTPUT_TOKENS: Final = 512
CONCURRENCY: Final = 32
"""Assumed where nothing is given, and said."""
KV_BYTES: Final[Mapping[str, float]] = {"auto": 2.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}
"""Bytes of a KV element by the name of its format; ``auto`` is 16-bit, as engines have it."""
SORTS: Final = ("hour", "token")
NEAREST: Final = 5
LEAST_MS: Final = 0.01
MOST_MS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SizeInputs:
    """Inputs by the names of the command line; None: not given."""

    model: str | None = None
    config: Mapping[str, Any] | None = None
    config_name: str = "config"
    precision: str | None = None
    kv_precision: str | None = None
    context_tokens: int | None = None
    output_tokens: int | None = None
    concurrency: int | None = None
    requests_per_s: float | None = None
    itl_slo_ms: float | None = None
    ttft_slo_ms: float | None = None
    gpu: Sequence[str] = ()
    sort: str = "hour"


@dataclass(frozen=True, slots=True)
class Asked:
    """What was sized."""

    model: Annotated[str, about("Name of the architecture.")]
    parameters: Annotated[float, about("All weights, counted.")]
    active_parameters: Annotated[float, about("Weights that one token uses.")]
    precision: Annotated[str, about("Of the weights.")]
    kv_precision: Annotated[str, about("Of the KV cache.")]
    context_tokens: Annotated[int, about("Prompt and output of one request.")]
    output_tokens: Annotated[int, about("Of these, generated.")]
    concurrency: Annotated[int | None, about("Requests at once; null: a rate was given.")]
    requests_per_s: Annotated[float | None, about("Requests that arrive; null: a concurrency was given.")]
    itl_slo_ms: Annotated[float | None, about("Longest mean time between tokens; null: no promise.")]
    ttft_slo_ms: Annotated[float | None, about("Longest time to the first token; null: no promise.")]
    sort: Annotated[str, about("hour: cheapest per hour first; token: cheapest per generated token first.")]
    assumed: Annotated[tuple[str, ...], about("What was not given, and what was left out, as sentences.")]


@dataclass(frozen=True, slots=True)
class Question:
    """A checked question: the load, the GPU models to size, and how to say it."""

    load: Load
    specs: tuple[GpuSpec, ...]
    asked: Asked


def question(given: SizeInputs) -> Question:
    """Check the inputs.

    Raises:
        UsageError: an unknown model, GPU or format, or a figure that cannot be; names field and value.
    """
    if given.sort not in SORTS:
        raise UsageError(f"sort is {given.sort!r}: use one of {', '.join(SORTS)}")
    llm, assumed = _model(given)
    load, more = _load(given, llm)
    asked = Asked(
        model=llm.model_key,
        parameters=llm.parameters,
        active_parameters=llm.active_parameters,
        precision=load.form.name,
        kv_precision=given.kv_precision or "auto",
        context_tokens=load.context_tokens,
        output_tokens=load.output_tokens,
        concurrency=load.concurrency,
        requests_per_s=load.requests_per_s,
        itl_slo_ms=given.itl_slo_ms,
        ttft_slo_ms=given.ttft_slo_ms,
        sort=given.sort,
        assumed=(*more, *assumed),
    )
    return Question(load, _specs(given.gpu), asked)


def _model(given: SizeInputs) -> tuple[LlmSpec, tuple[str, ...]]:
    if (given.model is None) == (given.config is None):
        raise UsageError("model and config: give one of them, a model's name or its config.json")
    if given.config is not None:
        read = read_config(given.config, given.config_name)
        return read.llm, read.notes
    llm = llm_models.resolve(given.model)
    if llm is not None:
        return llm, ()
    assert given.model is not None
    names = {name for spec in llm_models.models() for name in (spec.model_key, *spec.aliases)}
    near = _nearest(llm_models.normalised(given.model), names)
    raise UsageError(
        f"model is {given.model!r}, which the catalogue does not know: {near}give its config.json as config"
    )


def _nearest(name: str, names: set[str]) -> str:
    found = get_close_matches(name.lower(), sorted(names), n=NEAREST, cutoff=0.5)
    return f"did you mean {', '.join(found)}? Else " if found else ""


def _load(given: SizeInputs, llm: LlmSpec) -> tuple[Load, tuple[str, ...]]:
    assumed = []
    name = given.precision or llm.native_precision
    form = form_of(name.lower())
    if form is None:
        whose = "precision is" if given.precision else "the published weights are"
        raise UsageError(f"{whose} {name!r}, which is not sized: give precision as one of {', '.join(FORMS)}")
    if given.precision is None:
        assumed.append(f"weights as published ({name})")
    kv_bytes = KV_BYTES.get((given.kv_precision or "auto").lower())
    if kv_bytes is None:
        raise UsageError(f"kv_precision is {given.kv_precision!r}: use one of {', '.join(KV_BYTES)}")
    context = given.context_tokens
    if context is None:
        context = max(CONTEXT_TOKENS, 2 * (given.output_tokens or 0))
        assumed.append(f"context of {context:,} tokens")
    output = given.output_tokens
    if output is None:
        output = max(1, min(OUTPUT_TOKENS, context // 2))
        assumed.append(f"{output:,} of them generated")
    concurrency = given.concurrency
    if concurrency is None and given.requests_per_s is None:
        concurrency = CONCURRENCY
        assumed.append(f"{concurrency} requests at once")
    for field in ("itl_slo_ms", "ttft_slo_ms"):
        value: float | None = getattr(given, field)
        if value is not None and not LEAST_MS <= value <= MOST_MS:
            raise UsageError(f"{field} is {value}: give {LEAST_MS} to {MOST_MS:,} milliseconds")
    try:
        load = Load(
            llm=llm,
            form=form,
            kv_element_bytes=kv_bytes,
            context_tokens=context,
            output_tokens=output,
            concurrency=concurrency,
            requests_per_s=given.requests_per_s,
            itl_slo_s=None if given.itl_slo_ms is None else given.itl_slo_ms / 1000,
            ttft_slo_s=None if given.ttft_slo_ms is None else given.ttft_slo_ms / 1000,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    return load, tuple(assumed)


def _specs(keys: Sequence[str]) -> tuple[GpuSpec, ...]:
    if not keys:
        return gpu_specs.specs()
    by_key = {spec.gpu_key.casefold(): spec for spec in gpu_specs.specs()}
    found: dict[str, GpuSpec] = {}
    for key in keys:
        spec = by_key.get(key.strip().casefold()) or gpu_specs.resolve(key)
        if spec is None:
            known = [each.gpu_key for each in gpu_specs.specs()]
            near = [each for each in known if key.strip().casefold() in each.casefold()]
            near = near or get_close_matches(key.upper(), known, n=NEAREST, cutoff=0.3)
            hint = (
                f"did you mean {', '.join(near[:NEAREST])}?" if near else "leave it out for every GPU model"
            )
            raise UsageError(f"gpu is {key!r}, which the catalogue does not know: {hint}")
        found[spec.gpu_key] = spec
    return tuple(found.values())
