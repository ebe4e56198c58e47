"""A driver's product name is exactly one GPU spec, or none."""

import re
from pathlib import Path

import pytest

from catalog.gpu_specs import COLUMNS, GpuSpec, _parse, by_key, resolve, specs
from catalog.loader import read_rows
from core.errors import CatalogueError
from core.units import GIB, MIB

ONE = {
    "NVIDIA H100 80GB HBM3": "H100-SXM5-80GB",
    "NVIDIA H100 PCIe": "H100-PCIE-80GB",
    "NVIDIA H100 NVL": "H100-NVL-94GB",
    "NVIDIA H100 64GB HBM2": "H100-SXM5-64GB",
    "NVIDIA H100 64GB HBM2e": "H100-SXM5-64GB",
    "NVIDIA H100 64GB HBM3": "H100-SXM5-64GB",
    "NVIDIA H200": "H200-SXM-141GB",
    "NVIDIA H200 NVL": "H200-NVL-141GB",
    "NVIDIA GH200 480GB": "GH200-96GB",
    "NVIDIA GH200 144G HBM3e": "GH200-144GB",
    "NVIDIA B200": "B200-SXM-180GB",
    "NVIDIA B300 SXM6 AC": "B300-SXM-288GB",
    "NVIDIA GB200": "GB200-186GB",
    "NVIDIA GB300": "GB300-288GB",
    "NVIDIA GB10": "GB10",
    "NVIDIA A100-SXM4-40GB": "A100-SXM4-40GB",
    "A100-SXM4-40GB": "A100-SXM4-40GB",
    "NVIDIA A100-SXM4-80GB": "A100-SXM4-80GB",
    "NVIDIA A100-SXM-80GB": "A100-SXM4-80GB",
    "NVIDIA A100-PCIE-40GB": "A100-PCIE-40GB",
    "NVIDIA A100 80GB PCIe": "A100-PCIE-80GB",
    "NVIDIA A30": "A30",
    "NVIDIA A40": "A40",
    "NVIDIA A10": "A10",
    "NVIDIA A10G": "A10G",
    "NVIDIA A16": "A16",
    "NVIDIA A2": "A2",
    "NVIDIA L4": "L4",
    "NVIDIA L40": "L40",
    "NVIDIA L40S": "L40S",
    "Tesla T4": "T4",
    "NVIDIA T4": "T4",
    "Tesla P40": "P40",
    "Tesla P100-PCIE-16GB": "P100-PCIE-16GB",
    "Tesla P100-SXM2-16GB": "P100-SXM2-16GB",
    "Tesla V100-SXM2-16GB": "V100-SXM2-16GB",
    "Tesla V100-SXM2-32GB": "V100-SXM2-32GB",
    "Tesla V100-PCIE-16GB": "V100-PCIE-16GB",
    "Tesla V100-PCIE-32GB": "V100-PCIE-32GB",
    "Tesla V100S-PCIE-32GB": "V100S-PCIE-32GB",
    "Quadro RTX 6000": "Quadro-RTX-6000",
    "Quadro RTX 8000": "Quadro-RTX-8000",
    "NVIDIA RTX A6000": "RTX-A6000",
    "NVIDIA RTX A5000": "RTX-A5000",
    "NVIDIA RTX A4000": "RTX-A4000",
    "NVIDIA RTX 6000 Ada Generation": "RTX-6000-Ada",
    "NVIDIA RTX 5000 Ada Generation": "RTX-5000-Ada",
    "NVIDIA RTX 4000 Ada Generation": "RTX-4000-Ada",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX-PRO-6000-Server",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "RTX-PRO-6000-Workstation",
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": "RTX-PRO-6000-MaxQ",
    "NVIDIA GeForce RTX 2080 Ti": "RTX-2080-Ti",
    "GeForce RTX 2080 Ti": "RTX-2080-Ti",
    "NVIDIA GeForce RTX 3090": "RTX-3090",
    "NVIDIA GeForce RTX 3090 Ti": "RTX-3090-Ti",
    "NVIDIA GeForce RTX 4080": "RTX-4080",
    "NVIDIA GeForce RTX 4090": "RTX-4090",
    "NVIDIA GeForce RTX 5080": "RTX-5080",
    "NVIDIA GeForce RTX 5090": "RTX-5090",
}

NONE = (
    "NVIDIA GeForce RTX 4090 Laptop GPU",
    "NVIDIA GeForce RTX 4090 D",
    "NVIDIA GeForce RTX 5090 D",
    "NVIDIA GeForce RTX 5090 Laptop GPU",
    "NVIDIA GeForce RTX 4080 SUPER",
    "NVIDIA GeForce RTX 4080 Laptop GPU",
    "NVIDIA GeForce RTX 2080 SUPER",
    "NVIDIA GeForce RTX 2080",
    "NVIDIA GeForce RTX 2080 Ti with Max-Q Design",
    "NVIDIA GeForce RTX 3080 Ti",
    "NVIDIA GeForce RTX 3080 Laptop GPU",
    "Quadro RTX 6000 with Max-Q Design",
    "NVIDIA RTX A5000 Laptop GPU",
    "NVIDIA RTX A5500",
    "NVIDIA RTX A4000H",
    "NVIDIA RTX 5000 Ada Generation Laptop GPU",
    "NVIDIA RTX 5000 Ada Generation Embedded GPU",
    "NVIDIA RTX 4000 SFF Ada Generation",
    "NVIDIA RTX 6000D",
    "NVIDIA RTX PRO 6000 Blackwell",
    "NVIDIA RTX PRO 5000 Blackwell",
    "NVIDIA RTX A6000-48Q",
    "NVIDIA A40-48Q",
    "NVIDIA A10-24Q",
    "NVIDIA L40S-48C",
    "NVIDIA H100-80C",
    "NVIDIA H100XM-80C",
    "NVIDIA A100-1-5C",
    "GRID A100D-80C",
    "GRID T4-16Q",
    "GRID V100D-32Q",
    "NVIDIA A100X",
    "NVIDIA A100-SXM-64GB",
    "NVIDIA A800-SXM4-80GB",
    "NVIDIA A10M",
    "NVIDIA A30X",
    "NVIDIA H100 96GB HBM3",
    "NVIDIA H100 80GB HBM2e",
    "NVIDIA H100",
    "NVIDIA H800",
    "NVIDIA H20",
    "NVIDIA H200 Something New",
    "NVIDIA L40G",
    "NVIDIA L4Q",
    "NVIDIA T400",
    "NVIDIA T4G",
    "Tesla V100-SXM3-32GB",
    "Tesla V100-SXM2-16GB-LS",
    "Tesla V100-DGXS-32GB",
    "Tesla P100-PCIE-12GB",
    "AMD Instinct MI300X",
    "MI300X",
    "my NVIDIA H100 PCIe",
    "nvidia",
    "",
)


@pytest.mark.parametrize(("name", "gpu_key"), ONE.items())
def test_a_plain_product_name_is_one_spec(name: str, gpu_key: str) -> None:
    spec = resolve(name)
    assert spec is not None
    assert spec.gpu_key == gpu_key


@pytest.mark.parametrize("name", NONE)
def test_a_name_with_anything_that_changes_the_product_is_no_spec(name: str) -> None:
    assert resolve(name) is None
    assert resolve(name, 80 * GIB) is None


@pytest.mark.parametrize(
    ("name", "gpu_key"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100-SXM4-40GB"),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb+me", "A100-SXM4-80GB"),
        ("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", "A100-SXM4-40GB"),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", "H100-SXM5-80GB"),
        ("NVIDIA H200 MIG 1g.18gb+gfx", "H200-SXM-141GB"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me.all", "H100-SXM5-80GB"),
    ],
)
def test_a_mig_slice_has_its_parents_spec_whatever_its_memory(name: str, gpu_key: str) -> None:
    for memory in (None, 5 * GIB, 500 * GIB):
        spec = resolve(name, memory)
        assert spec is not None
        assert spec.gpu_key == gpu_key


def test_a_mig_slice_of_an_unknown_card_is_no_spec() -> None:
    assert resolve("NVIDIA A800-SXM4-80GB MIG 1g.10gb") is None
    assert resolve("NVIDIA A100-SXM4-40GB MIG banana") is None


def test_one_name_sold_with_two_sizes_needs_the_size() -> None:
    name = "NVIDIA GeForce RTX 3080"
    assert resolve(name) is None
    assert resolve(name, 10_240 * MIB) is by_key("RTX-3080")
    assert resolve(name, 12_288 * MIB) is by_key("RTX-3080-12GB")
    assert resolve(name, 20_480 * MIB) is None
    assert resolve("NVIDIA H100 SXM5") is None
    assert resolve("NVIDIA H100 SXM5", 65_247 * MIB) is by_key("H100-SXM5-64GB")
    assert resolve("NVIDIA H100 SXM5", 81_559 * MIB) is by_key("H100-SXM5-80GB")


def test_more_memory_than_the_card_has_refutes_the_name() -> None:
    assert resolve("NVIDIA GeForce RTX 4090", 24_564 * MIB) is by_key("RTX-4090")
    assert resolve("NVIDIA GeForce RTX 4090", 49_140 * MIB) is None


def test_less_memory_refutes_nothing_because_exporters_give_slices_their_parents_name() -> None:
    assert resolve("NVIDIA H100 80GB HBM3", 9_856 * MIB) is by_key("H100-SXM5-80GB")


@pytest.mark.parametrize(
    ("name", "mib"),
    [
        ("NVIDIA H100 80GB HBM3", 81_559),
        ("NVIDIA H100 64GB HBM2e", 65_247),
        ("NVIDIA H200", 143_771),
        ("NVIDIA A10G", 23_028),
        ("Tesla T4", 15_360),
        ("NVIDIA L40S", 46_068),
        ("NVIDIA GeForce RTX 4090", 24_564),
        ("NVIDIA GH200 480GB", 97_871),
        ("NVIDIA B200", 183_359),
    ],
)
def test_memory_as_drivers_report_it_agrees_with_the_spec(name: str, mib: int) -> None:
    spec = resolve(name, mib * MIB)
    assert spec is not None
    assert 0.9 < mib * MIB / spec.memory_bytes <= 1.0


def test_no_name_is_no_spec() -> None:
    assert resolve(None) is None
    assert by_key(None) is None
    assert by_key("H1000") is None


def test_the_captures_card_has_a_row_of_its_own_that_says_it_is_inferred() -> None:
    small, full = by_key("H100-SXM5-64GB"), by_key("H100-SXM5-80GB")
    assert small is not None
    assert full is not None
    assert small.bandwidth_bytes_per_s == 1.63e12
    assert small.sm_count == 132
    assert (small.bf16_flops, small.fp8_ops, small.fp32_flops) == (
        full.bf16_flops,
        full.fp8_ops,
        full.fp32_flops,
    )
    assert small.inferred
    assert not full.inferred


def test_none_is_no_hardware_and_empty_is_unknown() -> None:
    h100, pro = by_key("H100-SXM5-80GB"), by_key("RTX-PRO-6000-Server")
    assert h100 is not None
    assert pro is not None
    assert h100.fp4_flops == 0.0
    assert pro.bf16_flops is None


@pytest.mark.parametrize(
    ("gpu_key", "ridge"),
    [
        ("V100-SXM2-16GB", 139),
        ("T4", 203),
        ("A10", 208),
        ("A100-SXM4-40GB", 201),
        ("A100-SXM4-80GB", 153),
        ("L4", 403),
        ("L40S", 419),
        ("H100-PCIE-80GB", 371),
        ("H100-SXM5-80GB", 295),
        ("H200-SXM-141GB", 206),
        ("B200-SXM-180GB", 281),
        ("MI300X", 247),
    ],
)
def test_ridge_points_are_those_of_the_advisor_rules(gpu_key: str, ridge: int) -> None:
    spec = by_key(gpu_key)
    assert spec is not None
    assert spec.bf16_flops is not None
    assert spec.bf16_flops / spec.bandwidth_bytes_per_s == pytest.approx(ridge, abs=1)


def test_specs_are_read_once() -> None:
    assert specs() is specs()


GOOD_ROW = {
    "gpu_key": "X1",
    "vendor": "NVIDIA",
    "nvml_name_regex": "NVIDIA X1",
    "architecture": "Test",
    "sm_count": "10",
    "memory_gb": "16",
    "memory_type": "HBM3",
    "memory_bandwidth_gb_s": "1000",
    "fp8_dense_tflops": "none",
    "tdp_w": "300",
    "form_factor": "PCIe",
    "mig_max_instances": "0",
    "source": "s",
}


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("nvml_name_regex", "NVIDIA (X1"),
        ("nvml_name_regex", ""),
        ("vendor", "ATI"),
        ("sm_count", "1.5"),
        ("memory_bandwidth_gb_s", ""),
        ("tdp_w", "many"),
        ("fp32_tflops", "fast"),
        ("source", ""),
    ],
)
def test_a_bad_spec_row_is_refused_by_line_and_column(tmp_path: Path, column: str, text: str) -> None:
    with pytest.raises(CatalogueError, match=rf"gpu_specs\.csv line 3, column {column}"):
        _read_rows(tmp_path, {}, {"gpu_key": "X2", column: text})


def test_a_card_that_nvml_never_shows_may_have_no_pattern(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="names a card that NVML never shows"):
        _read_rows(tmp_path, {"vendor": "AMD"})
    ((spec, pattern),) = _read_rows(tmp_path, {"vendor": "AMD", "nvml_name_regex": ""})
    assert pattern is None
    assert (spec.fp8_ops, spec.bf16_flops, spec.inferred) == (0.0, None, False)


def _read_rows(folder: Path, *changes: dict[str, str]) -> tuple[tuple[GpuSpec, re.Pattern[str] | None], ...]:
    path = folder / "gpu_specs.csv"
    rows = [",".join({**GOOD_ROW, **change}.get(column, "") for column in COLUMNS) for change in changes]
    path.write_text("\n".join([",".join(COLUMNS), *rows]), encoding="utf-8")
    return read_rows(path, COLUMNS, _parse)
