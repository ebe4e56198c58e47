"""Fields of many hours are the same whether they lie in rows or in plain hours, and in a mix of both."""

from typing import Any

import pytest

from core.hour_columns import rows_of
from store.rows_as_hours import (
    ENGINE_FIGURES,
    GPU_FIGURES,
    engine_hour_in,
    gpu_hour_in,
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


def test_histograms_parsed_together_are_each_hours_own() -> None:
    together, alone = [_engine(at) for at in range(2)], [_engine(at) for at in range(2)]
    together[1].raw[ENGINE_FIGURES.index("running")] = '{"8":30}'
    alone[1].raw[ENGINE_FIGURES.index("running")] = '{"8":30}'
    parse_together(together)
    assert [hour.running.seconds for hour in together] == [{4.0: 60.0}, {8.0: 30.0}]
    assert together == alone
    assert not together[0].waiting.seconds
