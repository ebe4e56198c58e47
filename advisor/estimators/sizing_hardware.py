"""Which weights a GPU model can run, and where the step law has no figure for it.

FP8 in tensor cores from compute capability 8.9, as weights only (Marlin) from 7.5; INT8 with 8-bit activations 7.5 to
9.0, not on 10.0 and later; 4-bit weights (Marlin class) from 8.0. Source: advisor-rules R10 and its S12. bf16 tensor
cores from 8.0 (CUDA programming guide); older cards run the same bytes as fp16. vLLM, on which the step law was
measured, asks for 7.0 (its installation guide).
"""

from dataclasses import dataclass
from typing import Final

from advisor.estimators.precision import Precision, from_settings
from catalog.gpu_specs import GpuSpec

FORMS: Final = ("bf16", "fp16", "fp8", "int8", "int4", "fp4", "awq", "gptq", "mxfp4", "nvfp4")
"""Names of weights that can be sized: formats, and methods that mean one."""
ENGINES_FROM: Final = 7.0
BF16_FROM: Final = 8.0
FP8_FROM: Final = 8.9
FP8_WEIGHTS_FROM: Final = 7.5
INT8_FROM: Final = 7.5
INT8_BELOW: Final = 10.0
FOUR_BITS_FROM: Final = 8.0
FP4_FROM: Final = 10.0


@dataclass(frozen=True, slots=True)
class Form:
    """Weights of a size calculation.

    Attributes:
        name: one of ``FORMS``. precision: bits and bytes a weight, group scales included.
        is_integer, is_float: of an 8- or 4-bit format.
    """

    name: str
    precision: Precision
    is_float: bool

    @property
    def bits(self) -> int:
        """Of a weight."""
        return self.precision.bits


@dataclass(frozen=True, slots=True)
class Support:
    """How a GPU model runs a form.

    Attributes:
        why_not: why there is no figure, as a sentence; None: it runs.
        note: in which way it runs, where that is not the plain one.
        weights_only: narrow weights are unpacked to 16 bits: no faster than those in large batches.
    """

    why_not: str | None = None
    note: str | None = None
    weights_only: bool = False


def form_of(name: str) -> Form | None:
    """The form a name means; None when it is none of ``FORMS``."""
    known = from_settings({"quantization": name}) if name in FORMS else None
    return None if known is None else Form(name, known, is_float="fp" in name or name == "bf16")


def support(spec: GpuSpec, form: Form) -> Support:
    """Whether, and how, this GPU runs weights of that form."""
    if not spec.bf16_flops:
        return Support(f"the catalogue has no dense 16-bit rate of {spec.gpu_key}: no speed is given")
    capability = spec.compute_capability
    if capability is None:
        return _of_amd(spec, form)
    if capability < ENGINES_FROM:
        return Support(f"compute capability {capability}: vLLM asks for {ENGINES_FROM}")
    if form.bits == 16:
        is_fp16 = capability < BF16_FROM
        return Support(
            note="no bf16 in the hardware: runs as fp16" if is_fp16 and form.name == "bf16" else None
        )
    if form.bits == 8:
        return _fp8(spec, capability) if form.is_float else _int8(capability)
    return _four_bits(form, capability)


def _fp8(spec: GpuSpec, capability: float) -> Support:
    if capability >= FP8_FROM and spec.fp8_ops != 0.0:
        return Support()
    if capability >= FP8_WEIGHTS_FROM:
        return Support(note="no FP8 in the hardware: weights only, arithmetic in 16 bits", weights_only=True)
    return Support(f"compute capability {capability}: FP8 weights ask for {FP8_WEIGHTS_FROM}")


def _int8(capability: float) -> Support:
    if INT8_FROM <= capability < INT8_BELOW:
        return Support()
    bounds = f"from {INT8_FROM} to below {INT8_BELOW}"
    return Support(f"compute capability {capability}: INT8 with 8-bit activations runs {bounds}")


def _four_bits(form: Form, capability: float) -> Support:
    if capability < FOUR_BITS_FROM:
        return Support(f"compute capability {capability}: kernels for 4-bit weights ask for {FOUR_BITS_FROM}")
    if form.is_float and capability >= FP4_FROM:
        return Support()
    return Support(note="4-bit weights only, arithmetic in 16 bits", weights_only=True)


def _of_amd(spec: GpuSpec, form: Form) -> Support:
    if form.bits == 16 or (form.bits == 8 and form.is_float and spec.fp8_ops):
        return Support()
    return Support(f"{spec.vendor}: no source here says that engines run {form.name} weights on it")
