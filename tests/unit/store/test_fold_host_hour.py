"""Samples of one host folded over an hour."""

from dataclasses import replace

import pytest
from store_samples import H0, host_sample

from core.hours import HostHour
from core.samples import HostSample
from store.fold_host import fold_host_hour


def test_no_samples_make_no_hour() -> None:
    assert fold_host_hour("h1", H0, []) is None


def test_means_weigh_by_time_and_skip_what_is_unknown() -> None:
    samples = [
        replace(host_sample(0), values={"cpu_busy_ratio": 0.2, "host_power_w": 300.0}),
        replace(host_sample(1), values={"cpu_busy_ratio": 0.5}, span_ms=5_000),
        HostSample("h1", H0 + 20_000, 10_000, {}),
    ]
    hour = fold_host_hour("h1", H0, samples)
    assert hour is not None
    assert hour == HostHour("h1", H0, 25.0, cpu_busy_ratio=pytest.approx(0.3), host_power_w=300.0)
    assert hour.host_memory_used_bytes is None
