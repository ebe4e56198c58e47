"""Fields of many hours are the same whether they lie in rows or in plain hours, and in a mix of both."""

from typing import Any

import pytest

from core.activity import Activity
from core.hour_columns import rows_of
from store.rows_as_hours import (
    ENGINE_FIGURES,
    GPU_DAY_FIRST,
    GPU_FIGURES,
    GPU_HOUR_FIRST,
    engine_hour_in,
    gpu_hour_in,
    gpu_part_in,
    parse_together,
)

JSON = {"running": '{"4":60}', "waiting": None, "kv_used": '{"0.4":60}', "profile": '{"4":[60,2400,1200]}'}


def _gpu(at: int) -> Any:
    numbers = {name: float(place + at) for place, name in enumerate(GPU_FIGURES)}
    row = [None if name == "energy_method" else numbers[name] for name in GPU_FIGURES]
    return gpu_hour_in("GPU-1", at, row)


def _engine(at: int) -> Any:
    row = [JSON.get(name, float(place + at)) for place, name in enumerate(ENGINE_FIGURES)]
    return engine_hour_in("node:8000", at, row)


def _plain(hour: Any) -> Any:
    kind, values = hour.__reduce__()
    return kind(*values)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (_gpu, ("active_s", "covered_s", "busy_ratio", "power_w")),
        (_gpu, ("active_s", "nvlink_bytes_per_s")),
        (_engine, ("generated_tokens", "busy_s", "itl_count")),
    ],
)
def test_fields_are_those_of_plain_hours(make: Any, names: tuple[str, ...]) -> None:
    stored = [make(at) for at in range(3)]
    plain = [_plain(hour) for hour in stored]
    expected = [tuple(getattr(hour, name) for name in names) for hour in plain]
    assert type(stored[0]) is not type(plain[0])
    assert rows_of(stored, *names) == expected
    assert rows_of(plain, *names) == expected
    assert rows_of([stored[0], *plain[1:]], *names) == expected
    assert rows_of([], *names) == []


def test_seconds_of_activities_are_columns_of_gpus_alone() -> None:
    stored = [_gpu(at) for at in range(3)]
    plain = [_plain(hour) for hour in stored]
    expected = [(hour.covered_s, hour.seconds[Activity.BUSY]) for hour in plain]
    for hours in (stored, plain, [stored[0], *plain[1:]]):
        assert rows_of(hours, "covered_s", "busy_s") == expected
    engine = _plain(_engine(0))
    assert rows_of([engine], "covered_s", "busy_s") == [(engine.covered_s, engine.busy_s)]


def test_of_a_row_read_in_part_the_rest_is_read_once_when_asked_for() -> None:
    whole = _gpu(7)
    asked: list[tuple[str, int]] = []

    def rest(name: str, start_ms: int) -> Any:
        asked.append((name, start_ms))
        return whole.raw

    for part in (GPU_HOUR_FIRST, GPU_DAY_FIRST):
        hour = gpu_part_in("GPU-1", 7, whole.raw[: len(part)], rest)
        assert [getattr(hour, name) for name in part if not name.endswith("_s")]
        assert rows_of([hour], "covered_s", "active_s", "busy_s")
        assert hour.seconds == whole.seconds
        assert not asked
        assert rows_of([hour], "covered_s", "nvlink_bytes_per_s") == [
            (whole.covered_s, whole.nvlink_bytes_per_s)
        ]
        assert hour.joules == whole.joules
        assert hour == whole
        assert asked == [("GPU-1", 7)]
        asked.clear()


def test_histograms_parsed_together_are_each_hours_own() -> None:
    together, alone = [_engine(at) for at in range(2)], [_engine(at) for at in range(2)]
    together[1].raw[ENGINE_FIGURES.index("running")] = '{"8":30}'
    alone[1].raw[ENGINE_FIGURES.index("running")] = '{"8":30}'
    parse_together(together)
    assert [hour.running.seconds for hour in together] == [{4.0: 60.0}, {8.0: 30.0}]
    assert together == alone
    assert not together[0].waiting.seconds
