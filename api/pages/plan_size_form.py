"""The form of the size calculator: a model by name or by its config.json, the load, the promises, the GPUs to compare."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from advisor.estimators.sizing_hardware import FORMS
from api.pages.plan_fields import Default, Field, Filled, Kind, Spec, fill, link, with_errors
from api.pages.plan_form import Choice
from api.pages.view import Address
from api.resources.plan_size_inputs import (
    CONCURRENCY,
    CONTEXT_TOKENS,
    KV_BYTES,
    OUTPUT_TOKENS,
    Question,
    SizeInputs,
    question,
)
from catalog import gpu_specs, llm_models
from catalog.llm_config_words import OTHER_CACHE, READ
from core.errors import UsageError

PATH: Final = "/plan/size"
MOST_CONFIG: Final = 6_000
"""Letters of a configuration in an address: browsers and proxies pass 8,000 of all of it."""
LOAD: Final = (
    Spec("context_tokens", "Context", "tokens", Kind.WHOLE, "prompt and output of one request"),
    Spec("output_tokens", "Of these, generated", "tokens", Kind.WHOLE),
    Spec("concurrency", "Requests at once", "", Kind.WHOLE, "all replicas together"),
    Spec("requests_per_s", "or requests that arrive", "a second"),
)
PROMISE: Final = (
    Spec("itl_slo_ms", "Time between tokens", "ms at most"),
    Spec("ttft_slo_ms", "Time to the first token", "ms at most"),
)
SPECS: Final = (*LOAD, *PROMISE)
INNER: Final = ("text_config", "llm_config", "language_config")
ALIASES: Final = {"itl_slo_s": "itl_slo_ms", "ttft_slo_s": "ttft_slo_ms"}


@dataclass(frozen=True, slots=True)
class Start:
    """What is sized when the address names nothing: a model, its load at once, and why these."""

    model: str
    model_source: str
    concurrency: float | None
    concurrency_source: str


@dataclass(frozen=True, slots=True)
class SizeForm:
    """The form, and what it asks.

    Attributes:
        model: as typed; empty beside a config. config: compact JSON, or empty; config_name: what it calls itself.
        wrong: about model or config. sort: order of the table. gpus: every model with whether it is compared alone.
        asked: the checked question; None where something is wrong.
    """

    model: str
    model_source: str
    config: str
    config_name: str
    wrong: str
    sort: str
    choices: tuple[Choice, ...]
    load: tuple[Field, ...]
    promise: tuple[Field, ...]
    gpus: tuple[tuple[str, bool], ...]
    link: str
    full_link: str
    clear: str
    without_config: str
    asked: Question | None

    @property
    def action(self) -> str:
        """Where it goes."""
        return PATH

    @property
    def oob(self) -> str:
        """Selectors of what stands outside the result and changes with it."""
        names = [f"#note-{one.spec.parameter}" for one in (*self.load, *self.promise)]
        return ",".join(["#said", "#link", "#note-model", *names])


def form_of(address: Address, config: str, start: Start, base_url: str) -> SizeForm:
    """Read the address; ``config``: of the address, however long."""
    typed = address.get("model").strip()
    name = "" if config else typed or start.model
    context = _whole(address.get("context_tokens")) or max(
        CONTEXT_TOKENS, 2 * (_whole(address.get("output_tokens")) or 0)
    )
    arriving = bool(address.get("requests_per_s").strip())
    defaults = {
        "context_tokens": Default(context, "assumed"),
        "output_tokens": Default(max(1, min(OUTPUT_TOKENS, context // 2)), "assumed"),
        "concurrency": Default(None, "not used: a rate is given")
        if arriving
        else Default(CONCURRENCY, "assumed")
        if start.concurrency is None
        else Default(start.concurrency, start.concurrency_source),
        "requests_per_s": Default(None, "instead of requests at once"),
        "itl_slo_ms": Default(None, "empty: no promise"),
        "ttft_slo_ms": Default(None, "empty: no promise"),
    }
    if arriving:
        address = Address(address.path, tuple(pair for pair in address.query if pair[0] != "concurrency"))
    filled = fill(address, SPECS, defaults, lambda _name, value: "" if value > 0 else "give more than 0")
    asked, wrong = None, ""
    if not filled.wrong:
        try:
            asked = question(
                SizeInputs(
                    model=name or None,
                    config=_parsed(config),
                    precision=address.get("precision") or None,
                    kv_precision=address.get("kv_precision") or None,
                    gpu=address.every("gpu"),
                    sort=address.get("cheapest") or "hour",
                    **filled.values,
                )
            )
        except UsageError as problem:
            filled, wrong = _placed(filled, str(problem))
    return _form(
        address, filled, asked, wrong, name, start.model_source if not typed else "", config, base_url
    )


def _form(  # noqa: PLR0917 - the parts of a form
    address: Address,
    filled: Filled,
    asked: Question | None,
    wrong: str,
    name: str,
    source: str,
    config: str,
    base_url: str,
) -> SizeForm:
    chosen = set(address.every("gpu"))
    choices = (
        Choice(
            "precision",
            "Weights in",
            (("", "as published"), *((one, one) for one in FORMS)),
            address.get("precision"),
        ),
        Choice(
            "kv_precision",
            "KV cache in",
            tuple((one if one != "auto" else "", "16 bits" if one == "auto" else one) for one in KV_BYTES),
            address.get("kv_precision"),
        ),
        Choice(
            "cheapest",
            "Cheapest",
            (("hour", "per hour"), ("token", "per generated token")),
            address.get("cheapest") or "hour",
        ),
    )
    pairs = [
        *([("config", config)] if config else [("model", name)]),
        *((one.name, one.chosen) for one in choices),
        *filled.pairs(),
        *(("gpu", key) for key in sorted(chosen)),
        ("sort", address.get("sort")),
    ]
    whole = link(PATH, pairs)
    return SizeForm(
        model=name,
        model_source=source,
        config=config,
        config_name=asked.asked.model if asked is not None and config else "",
        wrong=wrong,
        sort=address.get("sort"),
        choices=choices,
        load=filled.fields[: len(LOAD)],
        promise=filled.fields[len(LOAD) :],
        gpus=tuple((spec.gpu_key, spec.gpu_key in chosen) for spec in gpu_specs.specs()),
        link=whole,
        full_link=base_url.rstrip("/") + whole,
        clear=PATH,
        without_config=link(PATH, [pair for pair in pairs if pair[0] != "config"]),
        asked=asked,
    )


def _placed(filled: Filled, problem: str) -> tuple[Filled, str]:
    """A refusal beside the field it names; about model, config or GPU above the form."""
    name = problem.split(" ", 1)[0].rstrip(",:")
    name = ALIASES.get(name, name)
    if name in {one.spec.name for one in filled.fields}:
        return with_errors(filled, {name: problem.partition(": ")[2] or problem}), ""
    return filled, problem


def model_names() -> tuple[str, ...]:
    """Names of the catalogue, for the list under the field."""
    return tuple(spec.model_key for spec in llm_models.models())


def compact(text: str) -> str:
    """A pasted config.json with the fields that count alone, so that it fits an address.

    Raises:
        UsageError: it is no JSON object, or too long even so.
    """
    found = _parsed(text)
    if found is None:
        raise UsageError("config is empty: paste the model's config.json")
    kept = {key: value for key, value in found.items() if key in READ or key in OTHER_CACHE}
    for name in INNER:
        inner = found.get(name)
        if isinstance(inner, Mapping):
            kept[name] = {key: value for key, value in inner.items() if key in READ or key in OTHER_CACHE}
    quantization = kept.get("quantization_config")
    if isinstance(quantization, Mapping):
        kept["quantization_config"] = {
            key: value for key, value in quantization.items() if isinstance(value, str | int | bool)
        }
    short = json.dumps(kept, separators=(",", ":"), ensure_ascii=False)
    if len(short) > MOST_CONFIG:
        raise UsageError(
            f"config has {len(short):,} letters that count, and an address bears {MOST_CONFIG:,}: use gpuwise plan size --config FILE"
        )
    return short


def _parsed(text: str) -> dict[str, Any] | None:
    if not text.strip():
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError("config is no JSON: paste the whole config.json of the model") from error
    if not isinstance(found, dict):
        raise UsageError("config is no JSON object: paste the whole config.json of the model")
    return found


def _whole(text: str) -> int | None:
    text = text.strip().replace(",", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
