"""Architectures of open LLMs: what sets their weight bytes, KV-cache bytes and work per token.

Units: counts, bytes where the name says so. Source: ``catalog/data/llm_models.csv``, our own table, each row from the
model's published configuration and paper; parameter counts of dense models are exact, those of mixtures of experts
are the model card's where that is all that is published. KV-cache formulas: advisor-rules 3.1.

A name resolves exactly, after folder, organisation, case and suffixes that leave the architecture alone (``-Instruct``,
``-chat-hf``, ``-FP8``, ``-AWQ``, ``.Q4_K_M.gguf``) are taken off; whatever else is different is another model: None.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from catalog.loader import Cells, packaged, read_rows
from core.errors import CatalogueError

FILE: Final = "llm_models.csv"
COLUMNS: Final = (
    "model_key",
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "parameters",
    "active_parameters",
    "experts",
    "experts_per_token",
    "mla_dim",
    "sliding_window",
    "sliding_layers",
    "native_precision",
    "aliases",
    "source",
)
WEIGHT_BYTES: Final = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int6": 0.75,
    "int5": 0.625,
    "int4": 0.5,
    "fp4": 0.5,
    "int3": 0.375,
    "int2": 0.25,
}
"""Bytes a weight by ``precision_hint``; without the scales, which add 3–12 % to formats of 8 bits and fewer."""

_CACHE_FOLDER: Final = re.compile(r"(?:^|/)models--[^/]+?--([^/]+)/snapshots/")
"""Folder of a model hub's cache: the last part of the path is a hash, not a name."""
_SAME_ARCHITECTURE: Final = re.compile(
    r"[-.](?:(?:instruct|thinking|chat)-\d{4}|instruct|thinking|chat|it|hf|base|pt"
    r"|gguf|ggml|safetensors|bf16|bfloat16|fp16|float16|f16|fp32|f32|fp8(?:-(?:dynamic|block|static|kv))?"
    r"|awq|gptq|marlin|quantized|int\d|w\da\d+|nvfp4|mxfp4|fp4|bnb|nf4|[48]-?bit|\d+g|g\d+"
    r"|i?q[2-8](?:-(?:[01]|k(?:-(?:xs|xl|s|m|l))?|nl|xxs|xs|s|m))?)$"
)
_FAMILY: Final = re.compile(r"^(?:meta-)?(llama|qwen|gemma|phi|falcon|opt|codellama)-?(?=\d)")
"""``Meta-Llama-3``, ``llama3`` and ``Llama-3`` are one family name."""


@dataclass(frozen=True, slots=True)
class LlmSpec:
    """One architecture.

    Attributes:
        model_key: our key, ``llama-2-13b``.
        layers, hidden, heads, kv_heads, head_dim: as in the model's configuration. ``head_dim`` is that of keys and
            values (of values with MLA); ``heads × head_dim`` need not be ``hidden``.
        parameters: all weights. active_parameters: those used for one token (= ``parameters`` when dense).
        experts, experts_per_token: routed experts of a layer and how many a token visits; None when dense.
        mla_dim: elements per token and layer of a latent KV cache (d_c + d_rope); None without MLA.
        sliding_window: tokens that local layers look back on; None without. sliding_layers: how many layers are local.
        native_precision: of the published weights.
        source: where the row is from.
    """

    model_key: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    parameters: float
    active_parameters: float
    experts: int | None
    experts_per_token: int | None
    mla_dim: int | None
    sliding_window: int | None
    sliding_layers: int
    native_precision: str
    aliases: tuple[str, ...]
    source: str

    @property
    def is_moe(self) -> bool:
        """Mixture of experts."""
        return self.experts is not None

    @property
    def expert_parameters(self) -> float:
        """Weights of all routed experts; 0 when dense. From total and active: e·E with e = (P − P_act)/(E − k)."""
        if self.experts is None or self.experts_per_token is None:
            return 0.0
        each = (self.parameters - self.active_parameters) / (self.experts - self.experts_per_token)
        return each * self.experts

    @property
    def shared_parameters(self) -> float:
        """Weights that every token uses."""
        return self.parameters - self.expert_parameters


def kv_bytes_per_token(spec: LlmSpec, bytes_per_element: float = 2.0) -> float:
    """KV-cache bytes of one token while the context is within every window.

    2·L·H_kv·d_head·bytes, or L·(d_c + d_rope)·bytes with MLA. Sliding-window models grow slower past the window:
    ``kv_bytes_per_sequence``.
    """
    return spec.layers * _layer_elements(spec) * bytes_per_element


def kv_bytes_per_sequence(spec: LlmSpec, context_tokens: float, bytes_per_element: float = 2.0) -> float:
    """KV-cache bytes of one sequence: local layers keep min(context, window) tokens, global ones all of them."""
    local = min(context_tokens, spec.sliding_window) if spec.sliding_window is not None else context_tokens
    tokens = spec.sliding_layers * local + (spec.layers - spec.sliding_layers) * context_tokens
    return tokens * _layer_elements(spec) * bytes_per_element


def _layer_elements(spec: LlmSpec) -> int:
    return spec.mla_dim if spec.mla_dim is not None else 2 * spec.kv_heads * spec.head_dim


def _parse(cells: Cells) -> LlmSpec:
    layers, parameters = cells.whole("layers", low=1), cells.number("parameters", low=1e6)
    experts, per_token = (
        cells.whole_or_none("experts", low=2),
        cells.whole_or_none("experts_per_token", low=1),
    )
    if (experts is None) != (per_token is None) or (experts or 2) <= (per_token or 1):
        raise cells.bad("experts_per_token", "does not go with experts", "give both, the second smaller")
    active = cells.number_or_none("active_parameters", low=1e6, high=parameters)
    if (active is None) != (experts is None):
        raise cells.bad(
            "active_parameters", "does not go with experts", "give it for mixtures, and only there"
        )
    window = cells.whole_or_none("sliding_window", low=1)
    local = cells.whole_or_none("sliding_layers", low=1)
    if (window is None) != (local is None) or (local or 0) > layers:
        raise cells.bad("sliding_layers", "does not go with sliding_window", "give both, or none")
    heads, kv_heads = cells.whole("heads", low=1), cells.whole("kv_heads", low=1)
    if heads % kv_heads:
        raise cells.bad("kv_heads", "does not divide heads", "correct one of them")
    return LlmSpec(
        model_key=cells.text("model_key"),
        layers=layers,
        hidden=cells.whole("hidden", low=1),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=cells.whole("head_dim", low=1),
        parameters=parameters,
        active_parameters=parameters if active is None else active,
        experts=experts,
        experts_per_token=per_token,
        mla_dim=cells.whole_or_none("mla_dim", low=1),
        sliding_window=window,
        sliding_layers=local or 0,
        native_precision=cells.choice("native_precision", tuple(WEIGHT_BYTES)),
        aliases=cells.words("aliases"),
        source=cells.text("source"),
    )


@cache
def models() -> tuple[LlmSpec, ...]:
    """All architectures of the catalogue, in the file's order."""
    return read_rows(packaged(FILE), COLUMNS, _parse, key=lambda spec: spec.model_key)


@cache
def _by_name() -> dict[str, LlmSpec]:
    index: dict[str, LlmSpec] = {}
    for spec in models():
        for name in (spec.model_key, *spec.aliases):
            other = index.setdefault(normalised(name), spec)
            if other is not spec:
                raise CatalogueError(
                    f"{FILE}, column aliases: {name!r} means {other.model_key} and {spec.model_key}: remove one"
                )
    return index


def normalised(name: str) -> str:
    """A model's name without folder, organisation, case and suffixes that leave the architecture alone."""
    text = _spelled(name)
    while True:
        shorter = _SAME_ARCHITECTURE.sub("", text)
        if shorter == text:
            return _FAMILY.sub(r"\1-", text)
        text = shorter


def _spelled(name: str) -> str:
    """Last part of the path, lower case, with ``-`` between words (``llama3.1:8b`` and ``Q4_K_M`` too)."""
    path = name.strip().replace("\\", "/").rstrip("/")
    cached = _CACHE_FOLDER.search(path + "/")
    last = cached.group(1) if cached else path.rsplit("/", 1)[-1]
    return re.sub(r"[\s_:]+", "-", last.lower())


@lru_cache(maxsize=4096)
def resolve(name: str | None) -> LlmSpec | None:
    """The architecture a model name means, or None: never a guess.

    Args:
        name: as an engine or a person writes it: ``llama-2-13b``, ``/models/llama-2-13b``,
            ``meta-llama/Llama-2-13b-chat-hf``, ``llama3.1:8b-instruct-q4_K_M``.
    """
    if not name:
        return None
    return _by_name().get(normalised(name))


_PRECISION: Final = tuple(
    (re.compile(rf"(?:^|[-.])(?:{words})(?=[-.]|$)"), precision)
    for words, precision in (
        ("fp8|f8|float8", "fp8"),
        ("nvfp4|mxfp4|fp4", "fp4"),
        ("int8|w8a8|w8a16|8-?bit|q8", "int8"),
        ("int4|w4a16|w4a8|4-?bit|nf4|i?q4", "int4"),
        ("int3|i?q3", "int3"),
        ("int2|i?q2", "int2"),
        ("q5", "int5"),
        ("q6", "int6"),
        ("awq|gptq", "int4"),
        ("bf16|bfloat16", "bf16"),
        ("fp16|f16|float16", "fp16"),
        ("fp32|f32|float32", "fp32"),
    )
)
"""In order: what names a format beats what names a method (GPTQ is 4 bits unless its name says otherwise)."""


def precision_hint(name: str | None) -> str | None:
    """Precision of the weights that a model's name tells of: a key of ``WEIGHT_BYTES``; None when it tells none."""
    if not name:
        return None
    text = _spelled(name)
    return next((precision for pattern, precision in _PRECISION if pattern.search(text)), None)
