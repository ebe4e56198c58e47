"""How many bytes a weight takes, told from flags, then the model's name, then memory. Never assumed.

Source: advisor-rules 3.2. The order of trust is the engine's own settings, the name, W_est.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from catalog.llm_models import WEIGHT_BYTES, precision_hint

BANDS: Final = ((3.4, 4.8, "fp32"), (1.7, 2.4, "bf16"), (0.9, 1.3, "int8"), (0.5, 0.75, "int4"))
"""Bytes per parameter from memory → a format of that width; between the bands it is unknown (LoRA, draft model, offload)."""
OVERHEAD_BYTES: Final = 1e9
"""CUDA context, graphs and buffers of one rank (3.2)."""
EXTRA_OVERHEAD_BYTES: Final = 2.5e9
"""What large batches of a small model add to it (captures: OPT-1.3B at 512). It may be there or not: a format must survive both."""
SCALES: Final = 1.08
"""Group scales on top of weights below 8 bits (4.25–4.5 bits in use for 4)."""

NO_QUANTIZATION: Final = frozenset({"none", "null", "false", "no"})


@dataclass(frozen=True, slots=True)
class Precision:
    """What the weights are and how that is known.

    Attributes:
        bits: of a weight: 32, 16, 8, 6, 5, 4, 3 or 2.
        bytes_per_weight: bytes a step reads per weight.
        basis: for people: ``setting quantization=fp8``, ``the model's name``, ``memory: 2.02 bytes per parameter``.
    """

    bits: int
    bytes_per_weight: float
    basis: str

    @property
    def is_16_bit(self) -> bool:
        """Not quantised, not 32-bit."""
        return self.bits == 16


def _precision(form: str, basis: str) -> Precision:
    """From a format of the catalogue (``bf16``, ``fp8``, ``int4``…)."""
    width = WEIGHT_BYTES[form]
    return Precision(round(width * 8), width if width >= 1 else width * SCALES, basis)


def from_settings(settings: Mapping[str, str]) -> Precision | None:
    """From the engine's flags; None when they do not decide.

    ``dtype`` alone does not decide: it is the type of the activations, and a quantised model is found by the engine
    without a flag. It decides when the engine also says that nothing is quantised, and when it is 32-bit.
    """
    method = settings.get("quantization", settings.get("quantize", "")).strip().lower()
    dtype = settings.get("dtype", "").strip().lower().removeprefix("torch.")
    dtype = {"half": "float16", "float": "float32"}.get(dtype, dtype)
    if method and method not in NO_QUANTIZATION:
        form = precision_hint(method)
        return None if form is None else _precision(form, f"setting quantization={method}")
    form = precision_hint(dtype)
    if form == "fp32":
        return _precision(form, f"setting dtype={dtype}")
    if method in NO_QUANTIZATION and form in {"bf16", "fp16"}:
        return _precision(form, f"settings quantization={method}, dtype={dtype}")
    return None


def from_name(model: str | None) -> Precision | None:
    """From tokens such as ``FP8``, ``AWQ``, ``GPTQ``, ``w4a16``, ``NVFP4`` in the model's name (``-8B`` is a size)."""
    form = precision_hint(model)
    return None if form is None else _precision(form, f"the model's name {model}")


def from_published(native_precision: str) -> Precision | None:
    """From the published weights, when they are not 16-bit (DeepSeek-V3 in FP8): 16-bit ones are quantised by anybody."""
    published = _precision(native_precision, f"published weights are {native_precision}")
    return None if published.is_16_bit else published


def weight_bytes_estimate(
    *, memory_used_bytes: float, pool_tokens: float, kv_bytes_per_token: float, tensor_parallel: int
) -> float:
    """W_est: memory of all ranks − KV pool − ~1 GB a rank."""
    return memory_used_bytes - pool_tokens * kv_bytes_per_token - OVERHEAD_BYTES * tensor_parallel


def from_memory(weight_bytes: float, parameters: float, tensor_parallel: int) -> Precision | None:
    """From bytes per parameter, by band; None between the bands, and where more overhead would make it another band."""
    ratio = weight_bytes / parameters
    spare = (weight_bytes - EXTRA_OVERHEAD_BYTES * tensor_parallel) / parameters
    possible = [(low, form) for low, high, form in BANDS if spare <= high and ratio >= low]
    inside = any(low <= ratio <= high for low, high, _ in BANDS)
    if not inside or len(possible) != 1:
        return None
    low, form = possible[0]
    if form == "fp32" and spare < low:  # rare, so it must be in its band with and without
        return None
    return _precision(form, f"memory: {ratio:.2f} bytes per parameter")
