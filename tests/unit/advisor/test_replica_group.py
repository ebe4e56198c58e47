"""Replicas of which some fall away: what that is worth at the low end, the middle and the high end."""

from dataclasses import replace

from advice_builders import FORTNIGHT_H, PRICE, engine, engine_hours, evidence, gpu, gpu_hours

from advisor.replica_group import Fall
from advisor.serving import servings
from core.evidence import Evidence
from core.finding import Grade

HOSTS = ("node-1", "node-2", "node-2")
"""Three replicas; the last two share a host, which is their billing unit."""


def fleet() -> Evidence:
    price = replace(PRICE, gpus_per_unit=2)
    names = [f"{host}:800{i}/0" for i, host in enumerate(HOSTS)]
    hours = engine_hours(FORTNIGHT_H, kv_used=0.01)
    engines = [engine(hours, name=name, uuid=f"GPU-{i}") for i, name in enumerate(names)]
    cards = [
        gpu(gpu_hours(FORTNIGHT_H), uuid=f"GPU-{i}", host=host, price=price, host_gpu_count=HOSTS.count(host))
        for i, host in enumerate(HOSTS)
    ]
    return evidence(cards, engines)


def test_the_low_end_of_cash_is_nothing_where_the_low_end_frees_no_whole_unit() -> None:
    seen = fleet()
    fall = Fall.of(seen, servings(seen), (1, 2, 2))
    saving = fall.outcome(servings(seen)[-1], Grade.B).saving
    assert saving.cash_usd_month is not None
    assert saving.capacity_gpu_h_month is not None
    assert saving.cash_usd_month.p10 == 0
    assert saving.cash_usd_month.p50 == 1825.00
    assert saving.capacity_gpu_h_month.p10 > 0


def test_the_low_end_of_cash_stands_where_the_low_end_frees_the_unit() -> None:
    seen = fleet()
    fall = Fall.of(seen, servings(seen), (2, 2, 2))
    saving = fall.outcome(servings(seen)[-1], Grade.B).saving
    assert saving.cash_usd_month is not None
    assert saving.cash_usd_month.p10 > 0


def test_a_middle_that_frees_no_unit_has_no_cash_though_the_high_end_would() -> None:
    seen = fleet()
    fall = Fall.of(seen, servings(seen), (0, 1, 2))
    assert fall.outcome(servings(seen)[-1], Grade.B).saving.cash_usd_month is None
