"""ENOVA's published formulas to the number, and what the improved ones do better."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.estimators import enova
from advisor.estimators.decode_step import DecodeStep
from advisor.estimators.enova import Configuration, Minute
from advisor.estimators.replicas import for_rate
from core.units import GIB

STEP = DecodeStep(7e-3, 1e-4, "fit", 0.1)
"""t = 7 ms + 0.1 ms·B: half of the rate at 70."""


@pytest.mark.parametrize(
    ("billions", "batch"), [(7, 256), (13, 128), (70, 32), (0.5, 1024), (1000, 8), (8.03, 256)]
)
def test_the_published_batch_is_the_power_of_two_nearest_to_256_times_7_over_billions(
    billions: float, batch: int
) -> None:
    assert enova.published_batch(billions * 1e9) == batch


def test_the_published_memory_counts_a_billion_as_2_to_the_30_and_one_sequence() -> None:
    need = enova.published_memory_bytes(
        parameters=13e9, kv_elements_per_token=409_600, sequence_tokens=4096, is_mistral=False
    )
    assert need == pytest.approx((13 * 2**30 + 409_600 * 4096) * 2 + 3 * 2**30)
    assert (
        enova.published_memory_bytes(
            parameters=13e9, kv_elements_per_token=409_600, sequence_tokens=4096, is_mistral=True
        )
        - need
        == 2 * GIB
    )


def test_the_published_start_of_a_70b_on_80_gib_takes_four_ranks() -> None:
    """(70·2³⁰ + 163,840·4096)·2 + 3 GiB = 144.25 GiB; 2·0.81·80 = 129.6 is too little, 4 ranks hold it at 0.6."""
    found = enova.published(
        parameters=70e9,
        heads=64,
        kv_elements_per_token=163_840,
        sequence_tokens=4096,
        gpu_memory_bytes=80 * GIB,
    )
    assert found == Configuration(32, 4, 0.6, 1)


def test_nothing_is_started_where_nothing_fits() -> None:
    assert (
        enova.published(
            parameters=70e9,
            heads=2,
            kv_elements_per_token=163_840,
            sequence_tokens=4096,
            gpu_memory_bytes=24 * GIB,
        )
        is None
    )


BUSY = Minute(pending=50, running=100, kv_used_ratio=0.8)
QUIET = Minute(pending=0, running=12.8, kv_used_ratio=0.10)


def test_detection_takes_three_windows() -> None:
    assert enova.is_overloaded([BUSY] * 3)
    assert not enova.is_overloaded([BUSY] * 2)
    assert not enova.is_overloaded([BUSY, Minute(49, 100, 0.8), BUSY])
    assert enova.is_underused([QUIET] * 3, max_num_seqs=128, replicas=2)
    assert not enova.is_underused([QUIET] * 3, max_num_seqs=128, replicas=1)
    assert not enova.is_underused([QUIET, QUIET, Minute(0, 13, 0.1)], max_num_seqs=128, replicas=2)
    assert not enova.is_underused([QUIET, QUIET, Minute(0, 1, 0.11)], max_num_seqs=128, replicas=2)


@pytest.mark.parametrize(
    ("kv", "batch_use", "replicas"),
    [
        (0.95, 0.5, 2),  # twice the KV: ceil(1.5/2 · 2)
        (0.5, 0.95, 6),  # half the KV: ceil(1.5/0.5 · 2)
        (0.8, 0.8, 3),  # the load alone: ceil(1.5 · 2)
    ],
)
def test_published_recovery_scales_with_kv_and_requests(kv: float, batch_use: float, replicas: int) -> None:
    case: dict[str, Any] = {"replicas": 2, "kv_p90_ratio": kv, "batch_use_ratio": batch_use, "gpus": 16}
    found = enova.published_replicas_up(**case, requests=150, successful=100, tensor_parallel=1)
    assert found == replicas
    clipped = enova.published_replicas_up(**case, requests=9000, successful=100, tensor_parallel=4)
    assert clipped == 4
    assert enova.published_replicas_up(**case, requests=150, successful=0, tensor_parallel=1) is None


def test_published_recovery_halves_downwards() -> None:
    assert [enova.published_replicas_down(n) for n in (1, 2, 3, 8)] == [1, 1, 1, 4]


def planned(**more: Any) -> Configuration | None:
    case: dict[str, Any] = {
        "step": STEP,
        "weight_bytes": 16e9,
        "kv_bytes_per_token": 131_072,
        "end_context_tokens": 1000,
        "gpu_memory_bytes": 80 * GIB,
        "heads": 32,
        "itl_limit_s": 0.02,
        **more,
    }
    return enova.plan(**case)


def test_the_improved_batch_keeps_the_promise_and_the_pool() -> None:
    """Promise: (20 − 7)/0.1 = 130. Pool at 30,000 tokens: (0.9·80 GiB − 21 GB)/131,072/30,000 = 14."""
    assert planned() == Configuration(130, 1, 0.9, 1)
    assert planned(end_context_tokens=30_000) == Configuration(14, 1, 0.9, 1)
    assert planned(itl_limit_s=0.006) is None
    assert planned(weight_bytes=140e9) is None
    assert planned(tensor_parallel=3) is None


def test_the_improved_start_has_replicas_for_the_load() -> None:
    """X(130) = 6,500 tokens/s, of which 4,550 are planned for."""
    found = planned(load_p99_tokens_per_s=9_200.0)
    assert found is not None
    assert found.replicas == 3


def test_keeping_warm_outlasts_a_cold_start_and_its_penalty() -> None:
    assert enova.keep_warm_s(cold_start_s=120, usd_per_hour=2.5) == 900
    assert enova.keep_warm_s(cold_start_s=1200, usd_per_hour=2.5) == 1200
    assert enova.keep_warm_s(cold_start_s=600, slo_penalty_usd=1.0, usd_per_hour=2.5) == 600 + 1440
    assert enova.keep_warm_s(cold_start_s=600, slo_penalty_usd=1.0, usd_per_hour=None) == 900


def decide(minutes: list[Minute], replicas: int = 2, **more: Any) -> int:
    case: dict[str, Any] = {"slo_rate": 1000.0, "slo_batch": 100.0, "most": 8, **more}
    return enova.decide(minutes, replicas=replicas, **case)


def at(rate: float, pending: float = 0.0) -> Minute:
    return Minute(pending, 50.0, 0.5, rate)


def test_up_in_three_minutes_down_only_after_the_quiet_time() -> None:
    assert decide([at(2500)] * 2) == 2
    assert decide([at(2500)] * 3) == 4
    assert decide([at(1400, pending=60)] * 3) == 3
    assert decide([at(100)] * 14) == 2
    assert decide([at(100)] * 15) == 1
    assert decide([at(100)] * 15, keep_warm=1800.0) == 2
    assert decide([at(100)] * 15, least=2) == 2
    assert decide([at(9000)] * 3, most=4) == 4


def test_a_load_that_swings_does_not_make_the_replicas_swing() -> None:
    minutes, replicas, changes = [], 2, 0
    for index in range(120):
        minutes.append(at(600.0 if index % 10 < 5 else 1300.0))
        wanted = decide(minutes, replicas)
        changes, replicas = changes + (wanted != replicas), wanted
    assert changes == 0


@given(st.lists(st.floats(0, 20_000), min_size=1, max_size=40), st.integers(1, 8))
def test_decisions_stay_within_their_bounds(rates: list[float], replicas: int) -> None:
    assert 1 <= decide([at(rate) for rate in rates], replicas) <= 8


@given(st.floats(0.1, 1e5), st.floats(0.1, 1e5), st.floats(1, 1e5))
def test_more_load_never_takes_fewer_replicas(load: float, more: float, rate: float) -> None:
    few, many = for_rate(load, rate), for_rate(load + more, rate)
    assert few is not None
    assert many is not None
    assert 1 <= few <= many
    assert few * 0.7 * rate >= load * (1 - 1e-6)
