"""What a host draws beside its GPUs: measured where host and GPUs were watched together, else not told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.host_share import HIGHEST_RATIO, Drawn, measured_share

HOST = Drawn(400.0, 80_000.0)
GPU = Drawn(500.0, 82_000.0)


def test_the_share_is_host_power_over_gpu_power() -> None:
    assert measured_share(HOST, [GPU, GPU]) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("host", "gpus"),
    [
        (HOST, []),
        (HOST, [GPU, None]),
        (HOST, [GPU, Drawn(500.0, 60_000.0)]),
        (Drawn(400.0, 60_000.0), [GPU]),
        (Drawn(400.0, 3_000.0), [Drawn(500.0, 3_000.0)]),
        (Drawn(0.0, 80_000.0), [GPU]),
        (HOST, [Drawn(0.0, 80_000.0)]),
        (HOST, [Drawn(1.0, 80_000.0)]),
    ],
    ids=[
        "no card",
        "a card unknown",
        "a card seen less",
        "host seen less",
        "minutes",
        "0 W",
        "cards 0 W",
        "400x",
    ],
)
def test_what_does_not_belong_together_tells_nothing(host: Drawn, gpus: list[Drawn | None]) -> None:
    assert measured_share(host, gpus) is None


watts = st.floats(1.0, 10_000.0)


@given(watts, st.lists(watts, min_size=1, max_size=16))
def test_a_share_is_plausible_or_none(host_w: float, gpus_w: list[float]) -> None:
    share = measured_share(Drawn(host_w, 86_400.0), [Drawn(power_w, 86_400.0) for power_w in gpus_w])
    assert share is None or 0 <= share <= HIGHEST_RATIO
    assert share is None or share == pytest.approx(host_w / sum(gpus_w), abs=0.00051)
