"""An LLM's architecture from its own ``config.json``, as model hubs publish it: for models that the catalogue lacks.

Field names differ by family (``num_hidden_layers``, ``n_layer``, ``num_layers`` are one thing); multimodal models keep
their language model under ``text_config``. Weights are counted, not read: embeddings, attention (grouped, multi-query
or latent), gated or plain feed-forward, routed and shared experts, norms. ``catalog.llm_weights`` has the sums.

What cannot be sized is refused by the field that says so: layers that are no attention (state spaces, linear
attention) keep another kind of cache; encoders have none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from catalog.llm_config_words import GLOBAL, HARMLESS, LOCAL, NAMES, OTHER_CACHE, PLAIN, READ, SHARED, TIED
from catalog.llm_models import WEIGHT_BYTES, LlmSpec, precision_hint
from catalog.llm_weights import Shape, active_parameters, parameters
from core.errors import UsageError

MOST_NAMED: Final = 6
LARGEST: Final = 10**9
"""Counts and widths above it are typing errors."""


@dataclass(frozen=True, slots=True)
class ReadConfig:
    """A configuration that was read.

    Attributes:
        llm: the architecture; its ``parameters`` are counted.
        notes: what was assumed or left out, as sentences.
    """

    llm: LlmSpec
    notes: tuple[str, ...]


def read_config(config: Mapping[str, Any], where: str = "config.json") -> ReadConfig:
    """The architecture that a model's configuration describes.

    Args:
        config: the parsed file. where: its name, for sentences.

    Raises:
        UsageError: a field is missing, is no such figure, or says that the model has another kind of cache.
    """
    inner = next(
        (
            part
            for name in ("text_config", "llm_config", "language_config")
            if isinstance(part := config.get(name), Mapping)
        ),
        None,
    )
    fields = dict(config) if inner is None else {**{k: config[k] for k in SHARED if k in config}, **inner}
    return _Reader(fields, where, is_nested=inner is not None).read()


@dataclass(slots=True)
class _Reader:
    """One configuration and the file it came from."""

    fields: Mapping[str, Any]
    where: str
    is_nested: bool

    def read(self) -> ReadConfig:
        self._refuse_other_caches()
        shape = self._shape()
        window, local = self._windows(shape.layers)
        name = str(self.fields.get("_name_or_path") or self.family or "config.json")
        llm = LlmSpec(
            model_key=name.rstrip("/").rsplit("/", 1)[-1],
            layers=shape.layers,
            hidden=shape.hidden,
            heads=shape.heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            parameters=float(parameters(shape)),
            active_parameters=float(active_parameters(shape)),
            experts=shape.experts or None,
            experts_per_token=shape.experts_per_token or None,
            mla_dim=None if shape.kv_rank is None else shape.kv_rank + shape.rope_dim,
            sliding_window=window,
            sliding_layers=local,
            native_precision=self._precision(),
            aliases=(),
            source=self.where,
        )
        return ReadConfig(llm, tuple(self._notes()))

    @property
    def family(self) -> str:
        return str(self.fields.get("model_type") or "").lower()

    def _refuse_other_caches(self) -> None:
        found = next((name for name in OTHER_CACHE if self.fields.get(name)), None)
        kinds = set(self._layer_types()) - LOCAL - GLOBAL
        if found is not None or kinds:
            said = found if found is not None else f"layer_types with {min(kinds)}"
            raise UsageError(
                f"{self.where} has {said}: some layers keep a state instead of a KV cache, which is not modelled; no size is given"
            )
        if self.fields.get("is_encoder_decoder"):
            raise UsageError(
                f"{self.where} has is_encoder_decoder true: only decoders are sized; give a decoder-only model"
            )

    def _layer_types(self) -> list[str]:
        kinds = self.fields.get("layer_types")
        return [str(kind) for kind in kinds] if isinstance(kinds, list) else []

    def _whole(self, word: str) -> int | None:
        """The first of the word's names that is there, as a positive whole number."""
        places: tuple[Mapping[str, Any], ...] = (self.fields,)
        nested = self.fields.get("attn_config")
        if isinstance(nested, Mapping):
            places = (self.fields, nested)
        for place in places:
            for name in NAMES[word]:
                value = place.get(name)
                if value is None:
                    continue
                if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
                    raise UsageError(
                        f"{self.where}, field {name} is {value!r:.40}: give a whole number of 1 or more"
                    )
                return value
        return None

    def _needed(self, word: str) -> int:
        value = self._whole(word)
        if value is None:
            raise UsageError(
                f"{self.where} has none of {', '.join(NAMES[word])}: give the config.json of a decoder-only language model"
            )
        return value

    def _number(self, name: str, default: int = 0) -> int:
        value = self.fields.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
            raise UsageError(f"{self.where}, field {name} is {value!r:.40}: give a whole number")
        return value

    def _shape(self) -> Shape:
        layers, hidden, heads = self._needed("layers"), self._needed("hidden"), self._needed("heads")
        kv_heads = self._kv_heads(heads)
        if heads % kv_heads:
            raise UsageError(
                f"{self.where}: {kv_heads} KV heads do not divide {heads} heads: correct one of them"
            )
        if heads > hidden and self._whole("head_dim") is None:
            raise UsageError(f"{self.where}: {heads} heads of a width of {hidden}: give head_dim")
        experts = self._experts()
        per_token = self._per_token(experts)
        latent = self._number("kv_lora_rank") or None
        inner = self._whole("intermediate") or 4 * hidden
        return Shape(
            layers=layers,
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=(self._number("v_head_dim") or self._whole("head_dim") or hidden // heads)
            if latent
            else self._whole("head_dim") or hidden // heads,
            intermediate=self._number("intermediate_size_mlp") or inner,
            vocabulary=self._needed("vocabulary"),
            is_tied=bool(self.fields.get("tie_word_embeddings", self.family in TIED)),
            is_gated=self.family not in PLAIN,
            experts=experts,
            experts_per_token=per_token,
            expert_intermediate=self._number("moe_intermediate_size") or inner,
            shared_intermediate=self._shared(inner),
            dense_layers=self._dense_layers(layers) if experts else layers,
            kv_rank=latent,
            query_rank=self._number("q_lora_rank") or None,
            rope_dim=self._number("qk_rope_head_dim"),
            nope_dim=self._number("qk_nope_head_dim"),
        )

    def _kv_heads(self, heads: int) -> int:
        if self.family in {"falcon", "refinedweb", "refinedwebmodel"} and not self.fields.get(
            "new_decoder_architecture"
        ):
            return 1 if self.fields.get("multi_query", True) else heads
        if self.family == "gpt_bigcode" and self.fields.get("multi_query", True):
            return 1
        return self._whole("kv_heads") or heads

    def _experts(self) -> int:
        count = self._whole("experts") or 0
        return count if count > 1 else 0

    def _per_token(self, experts: int) -> int:
        if not experts:
            return 0
        per_token = self._needed("experts_per_token")
        if per_token >= experts:
            raise UsageError(
                f"{self.where}: {per_token} experts per token of {experts}: give fewer per token than there are"
            )
        return per_token

    def _shared(self, inner: int) -> int:
        """Width of the experts that every token visits."""
        own = self._number("shared_expert_intermediate_size")
        if own:
            return own
        if self.family.startswith("llama4"):
            return inner
        each = self._number("moe_intermediate_size") or inner
        return (self._number("n_shared_experts") or self._number("num_shared_experts")) * each

    def _dense_layers(self, layers: int) -> int:
        """Layers of a mixture that have an ordinary feed-forward."""
        listed = self.fields.get("mlp_only_layers")
        if isinstance(listed, list) and listed:
            return len(listed)
        every = self._number("interleave_moe_layer_step") or self._number("decoder_sparse_step", 1)
        if every > 1:
            return layers - layers // every
        return min(self._number("first_k_dense_replace"), layers)

    def _windows(self, layers: int) -> tuple[int | None, int]:
        """What local layers look back on, and how many they are."""
        window = self._number("sliding_window") or self._number("attention_chunk_size") or None
        reach = self._number("max_position_embeddings")
        if window is None or (reach and window >= reach) or self.fields.get("use_sliding_window") is False:
            return None, 0
        local = self._local_layers(layers)
        return (window, local) if local else (None, 0)

    def _local_layers(self, layers: int) -> int:
        kinds = self._layer_types()
        if kinds:
            return sum(kind in LOCAL for kind in kinds)
        pattern = self._number("sliding_window_pattern") or self._number("_sliding_window_pattern")
        pattern = pattern or {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gpt_oss": 2}.get(self.family, 0)
        if self.family.startswith("llama4"):
            pattern = 4
        if pattern:
            return layers - layers // pattern
        if self.family.startswith("qwen"):  # windows begin at this layer
            return max(0, layers - self._number("max_window_layers", layers))
        return layers

    def _precision(self) -> str:
        """Of the published weights: what ``quantization_config`` says, else the dtype, else 16 bits."""
        said = self.fields.get("quantization_config")
        form = _quantized(said) if isinstance(said, Mapping) else None
        if isinstance(said, Mapping) and form is None:
            raise UsageError(
                f"{self.where}, field quantization_config names no known format ({said.get('quant_method')!r}): give --precision and remove it"
            )
        dtype = str(self.fields.get("torch_dtype") or self.fields.get("dtype") or "bfloat16").removeprefix(
            "torch."
        )
        return form or precision_hint(dtype) or "bf16"

    def _notes(self) -> list[str]:
        notes = [f"weights are counted from {self.where}, within about 1 % of published counts"]
        if self.is_nested:
            notes.append("only the language model is counted: vision and audio towers are not")
        if not self.family:
            notes.append(f"{self.where} has no model_type: a gated feed-forward is assumed")
        odd = sorted(name for name in self.fields if name not in READ and not HARMLESS.fullmatch(name))
        if odd:
            more = f" and {len(odd) - MOST_NAMED} more" if len(odd) > MOST_NAMED else ""
            notes.append(f"fields not understood, and not counted: {', '.join(odd[:MOST_NAMED])}{more}")
        return notes


def _quantized(said: Mapping[str, Any]) -> str | None:
    """Format that a ``quantization_config`` names; None: none that is known."""
    methods = [str(said.get(name) or "").lower().replace("_", "-") for name in ("quant_algo", "quant_method")]
    if said.get("load_in_4bit") or said.get("load_in_8bit"):
        return "int4" if said.get("load_in_4bit") else "int8"
    groups = said.get("config_groups")
    if isinstance(groups, Mapping):
        weights = next((g.get("weights") for g in groups.values() if isinstance(g, Mapping)), None)
        if isinstance(weights, Mapping):
            kind = "fp" if str(weights.get("type", "")).startswith("float") else "int"
            return _known(f"{kind}{weights.get('num_bits')}")
    bits = said.get("bits")
    if isinstance(bits, int) and not any("fp" in method for method in methods):
        return _known(f"int{bits}")
    return next((form for method in methods if (form := precision_hint(method)) is not None), None)


def _known(form: str) -> str | None:
    return form if form in WEIGHT_BYTES else None
