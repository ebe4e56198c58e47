"""The GPU table as shipped: patterns that exclude each other, plausible figures, real names of real captures."""

import gzip
import re
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.gpu_specs import GpuSpec, _rows, named, resolve, specs

SAME_NAME = (
    {"RTX-3080", "RTX-3080-12GB"},
    {"H100-SXM5-80GB", "H100-SXM5-64GB"},
)
"""Cards that the driver may name alike; only their memory tells them apart."""
PATTERNS = {spec.gpu_key: pattern for spec, pattern in _rows() if pattern is not None}


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_no_name_that_fits_one_pattern_fits_another(data: st.DataObject) -> None:
    gpu_key = data.draw(st.sampled_from(sorted(PATTERNS)))
    name = data.draw(st.from_regex(PATTERNS[gpu_key], fullmatch=True))
    keys = {spec.gpu_key for spec in named(name)}
    assert gpu_key in keys
    assert len(keys) == 1 or keys in SAME_NAME


def test_cards_that_share_a_name_differ_in_memory() -> None:
    for group in SAME_NAME:
        sizes = [spec.memory_bytes for spec in specs() if spec.gpu_key in group]
        for one, other in combinations(sizes, 2):
            assert abs(one - other) / max(one, other) > 0.15


@pytest.mark.parametrize("gpu_key", sorted(PATTERNS))
def test_whatever_is_added_to_a_name_makes_it_another_product(gpu_key: str) -> None:
    plain = re.sub(r"[()?]", "", PATTERNS[gpu_key].pattern.split("|")[0])
    for rest in (
        " Laptop GPU",
        " SUPER",
        " Ti Laptop GPU",
        " D",
        " with Max-Q Design",
        "-48Q",
        "-8C",
        "X",
        "M",
    ):
        assert resolve(plain + rest) is None, plain + rest


def test_every_nvidia_row_has_a_pattern_and_no_other_row_has_one() -> None:
    assert {spec.gpu_key for spec in specs() if spec.vendor == "NVIDIA"} == set(PATTERNS)


@pytest.mark.parametrize("spec", specs(), ids=lambda spec: spec.gpu_key)
def test_figures_are_in_base_units_and_plausible(spec: GpuSpec) -> None:
    assert 8e9 < spec.memory_bytes < 400e9
    assert 1e11 < spec.bandwidth_bytes_per_s < 2e13
    assert 5 < spec.sm_count < 400
    assert 40 < spec.tdp_w < 2000
    for rate in (
        spec.fp32_flops,
        spec.tf32_flops,
        spec.bf16_flops,
        spec.fp8_ops,
        spec.int8_ops,
        spec.fp4_flops,
    ):
        assert rate is None or rate == 0.0 or 1e12 < rate < 2e16
    if spec.purchase_usd_low is not None:
        assert spec.purchase_usd_high is not None
        assert spec.purchase_usd_low <= spec.purchase_usd_high


@pytest.mark.parametrize("spec", specs(), ids=lambda spec: spec.gpu_key)
def test_rates_are_dense_and_grow_as_the_format_shrinks(spec: GpuSpec) -> None:
    if spec.bf16_flops and spec.fp8_ops:
        assert spec.fp8_ops / spec.bf16_flops == pytest.approx(2, rel=0.03)
    if spec.fp32_flops and spec.bf16_flops:
        assert spec.bf16_flops >= spec.fp32_flops


@pytest.mark.shared_data
def test_the_captures_cards_are_known_or_refused_by_name(shared_data: Path) -> None:
    names: set[str] = set()
    for path in sorted((shared_data / "openmetrics").glob("*.prom.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                found = re.search(r'modelName="([^"]+)"', line)
                if found:
                    names.add(found.group(1))
                    break
    assert {name: getattr(resolve(name), "gpu_key", None) for name in names} == {
        "NVIDIA H100 64GB HBM2e": "H100-SXM5-64GB"
    }
