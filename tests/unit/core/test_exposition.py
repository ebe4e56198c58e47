"""Prometheus text from the metric catalogue."""

import re

from core.exposition import escaped, exported_name, family
from core.metrics import BY_NAME, ENGINE_METRICS, GPU_METRICS


def test_names_carry_the_base_unit_in_the_plural_and_total_on_counters() -> None:
    names = {
        "power_w": "x_power_watts",
        "energy_j": "x_energy_joules_total",
        "busy_ratio": "x_busy_ratio",
        "sm_clock_hz": "x_sm_clock_hertz",
        "pcie_rx_bytes_per_s": "x_pcie_rx_bytes_per_second",
        "process_count": "x_processes",
        "preemption_count": "x_preemptions_total",
        "temperature_c": "x_temperature_celsius",
    }
    assert {name: exported_name(BY_NAME[name], "x") for name in names} == names


def test_every_metric_has_a_name_of_its_own_that_prometheus_takes() -> None:
    names = [exported_name(metric, "gpuwise") for metric in GPU_METRICS + ENGINE_METRICS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z_][a-z0-9_]*", name) for name in names)


def test_a_family_has_help_type_and_its_series() -> None:
    lines = family("up", "gauge", "Says\nso.", [({"host": 'a"b\\c\nd'}, 1.0), ({}, 0.25)])
    assert lines == [
        "# HELP up Says\\nso.",
        "# TYPE up gauge",
        'up{host="a\\"b\\\\c\\nd"} 1',
        "up 0.25",
    ]
    assert escaped("plain") == "plain"


def test_a_family_without_series_is_not_there() -> None:
    assert family("up", "gauge", "Nothing.", []) == []
