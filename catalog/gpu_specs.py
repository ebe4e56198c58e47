"""What each GPU model can do: SMs, memory, dense peak rates, power, MIG, purchase range.

Units are base units: bytes, bytes/s, FLOP/s (operations/s for integers), watts, dollars. Rates are *dense*, with
fp32 accumulate: vendor pages print the structured-sparsity figure, twice the dense one. 0.0 says that the hardware
lacks the format, None that nobody knows. A GPU's "GB" are GiB (an 80 GB H100 reports 81 559 MiB).

Source: ``catalog/data/gpu_specs.csv``, vendor datasheets and architecture whitepapers named row by row. Two rows are
ours: the H100 of 64 GB (bandwidth inferred from the memory clock of public captures) and the RTX 3080 of 12 GB.

A product name resolves to exactly one row or to none. A row's pattern must match the *whole* name, so that what is
left over and changes the product (Laptop GPU, Max-Q, SUPER, Ti, D, a vGPU profile) makes it a different one. Where
one name is sold with two memory sizes, the size decides; without it the answer is None.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from catalog.loader import Cells, packaged, read_rows
from core.units import GIB

FILE: Final = "gpu_specs.csv"
COLUMNS: Final = (
    "gpu_key",
    "vendor",
    "nvml_name_regex",
    "architecture",
    "compute_capability",
    "sm_count",
    "memory_gb",
    "memory_type",
    "memory_bandwidth_gb_s",
    "fp32_tflops",
    "tf32_dense_tflops",
    "fp16_bf16_dense_tflops",
    "fp8_dense_tflops",
    "int8_dense_tops",
    "fp4_dense_tflops",
    "tdp_w",
    "form_factor",
    "mig_max_instances",
    "purchase_usd_low",
    "purchase_usd_high",
    "source",
    "uncertain_fields",
    "notes",
)
GIGA: Final = 1e9
TERA: Final = 1e12
MIG_SUFFIX: Final = re.compile(r" MIG (\d+c\.)?\d+g\.\d+gb([+-][a-z.]+)*$")
"""`` MIG 1g.5gb``, `` MIG 1c.3g.20gb``, `` MIG 1g.5gb+me``: a slice; its spec is the parent's."""
MEMORY_LOW: Final = 0.88
MEMORY_HIGH: Final = 1.05
"""Reported over nominal memory. ECC, page tables and firmware take up to 8 % (A10G, T4, B300); a 144 GB GH200 is listed at 141."""
SOFT_FIELDS: Final = frozenset({"purchase", "tdp_w"})
"""Uncertain fields that no performance estimate rests on."""


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One GPU model.

    Attributes:
        gpu_key: our key, e.g. ``H100-SXM5-80GB``.
        vendor: ``NVIDIA`` or ``AMD``.
        compute_capability: NVIDIA's, e.g. 9.0; None for others.
        sm_count: streaming multiprocessors (compute units on AMD).
        memory_bytes: nominal memory; the driver reports a little less.
        bandwidth_bytes_per_s: peak of the device memory.
        fp32_flops, tf32_flops, bf16_flops, fp8_ops, int8_ops, fp4_flops: dense peak a second; ``bf16_flops`` is the
            rate of fp16 on cards that have no bf16. 0.0: not in the hardware. None: unknown.
        tdp_w: of the data sheet; the limit in force is the driver's to tell.
        mig_max_instances: 0 where the card cannot be split.
        purchase_usd_low, purchase_usd_high: range seen for one card; None: no dependable public price.
        uncertain_fields: columns of the row that are estimates or contested.
        inferred: one of them is a capability (not the purchase price, not the TDP): widen what you derive from it.
    """

    gpu_key: str
    vendor: str
    architecture: str
    compute_capability: float | None
    sm_count: int
    memory_bytes: float
    memory_type: str
    bandwidth_bytes_per_s: float
    fp32_flops: float | None
    tf32_flops: float | None
    bf16_flops: float | None
    fp8_ops: float | None
    int8_ops: float | None
    fp4_flops: float | None
    tdp_w: float
    form_factor: str
    mig_max_instances: int
    purchase_usd_low: float | None
    purchase_usd_high: float | None
    uncertain_fields: tuple[str, ...]
    source: str
    notes: str

    @property
    def inferred(self) -> bool:
        """A capability of the row is an estimate."""
        return not SOFT_FIELDS.issuperset(self.uncertain_fields)


def _parse(cells: Cells) -> tuple[GpuSpec, re.Pattern[str] | None]:
    def tera(column: str) -> float | None:
        rate = cells.rate_or_none(column)
        return None if rate is None else rate * TERA

    spec = GpuSpec(
        gpu_key=cells.text("gpu_key"),
        vendor=cells.choice("vendor", ("NVIDIA", "AMD")),
        architecture=cells.text("architecture"),
        compute_capability=cells.number_or_none("compute_capability", low=3.0),
        sm_count=cells.whole("sm_count", low=1),
        memory_bytes=cells.number("memory_gb", low=1.0) * GIB,
        memory_type=cells.text("memory_type"),
        bandwidth_bytes_per_s=cells.number("memory_bandwidth_gb_s", low=1.0) * GIGA,
        fp32_flops=tera("fp32_tflops"),
        tf32_flops=tera("tf32_dense_tflops"),
        bf16_flops=tera("fp16_bf16_dense_tflops"),
        fp8_ops=tera("fp8_dense_tflops"),
        int8_ops=tera("int8_dense_tops"),
        fp4_flops=tera("fp4_dense_tflops"),
        tdp_w=cells.number("tdp_w", low=1.0),
        form_factor=cells.text("form_factor"),
        mig_max_instances=cells.whole("mig_max_instances"),
        purchase_usd_low=cells.number_or_none("purchase_usd_low", low=1.0),
        purchase_usd_high=cells.number_or_none("purchase_usd_high", low=1.0),
        uncertain_fields=cells.words("uncertain_fields"),
        source=cells.text("source"),
        notes=cells.values["notes"],
    )
    return spec, _pattern(cells, spec.vendor)


def _pattern(cells: Cells, vendor: str) -> re.Pattern[str] | None:
    text = cells.text_or_none("nvml_name_regex")
    if vendor != "NVIDIA":
        if text is not None:
            raise cells.bad("nvml_name_regex", "names a card that NVML never shows", "leave it empty")
        return None
    if text is None:
        raise cells.bad("nvml_name_regex", "is empty", "give a pattern for the whole product name")
    try:
        return re.compile(text)
    except re.error as error:
        raise cells.bad("nvml_name_regex", f"is not a pattern ({error})", "correct it") from error


@cache
def _rows() -> tuple[tuple[GpuSpec, re.Pattern[str] | None], ...]:
    return read_rows(packaged(FILE), COLUMNS, _parse, key=lambda row: row[0].gpu_key)


@cache
def specs() -> tuple[GpuSpec, ...]:
    """All GPU models of the catalogue, in the file's order."""
    return tuple(spec for spec, _ in _rows())


@cache
def _by_key() -> dict[str, GpuSpec]:
    return {spec.gpu_key: spec for spec in specs()}


def by_key(gpu_key: str | None) -> GpuSpec | None:
    """The model of that key; None when there is none."""
    return None if gpu_key is None else _by_key().get(gpu_key)


@lru_cache(maxsize=4096)
def named(nvml_name: str) -> tuple[GpuSpec, ...]:
    """Every model the product name may mean, by name alone: none, one, or several that differ in memory."""
    name = MIG_SUFFIX.sub("", " ".join(nvml_name.split()))
    return tuple(spec for spec, pattern in _rows() if pattern is not None and pattern.fullmatch(name))


def resolve(nvml_name: str | None, memory_total_bytes: float | None = None) -> GpuSpec | None:
    """The one model a driver's product name means, or None: never a guess.

    Args:
        nvml_name: as NVML prints it, ``NVIDIA H100 80GB HBM3``; a MIG suffix means the parent card.
        memory_total_bytes: as the driver reports it. It settles a name sold with several sizes and refutes a name
            whose card is smaller than what was seen. A smaller figure refutes nothing: exporters give a MIG slice
            its parent's name.
    """
    if not nvml_name:
        return None
    candidates = named(nvml_name)
    if memory_total_bytes is None or MIG_SUFFIX.search(nvml_name):
        return candidates[0] if len(candidates) == 1 else None
    fitting = [spec for spec in candidates if memory_total_bytes <= MEMORY_HIGH * spec.memory_bytes]
    if len(candidates) > 1:
        fitting = [spec for spec in fitting if memory_total_bytes >= MEMORY_LOW * spec.memory_bytes]
    return fitting[0] if len(fitting) == 1 else None
