"""The simulated engines obey the public measurements of advisor-rules 2.4."""

from statistics import fmean

import pytest

from agent.sources.simulator.cards import H100
from agent.sources.simulator.decode import Decoder
from agent.sources.simulator.load import Load
from agent.sources.simulator.power import asked_w, drawn_w


def decoder(
    *,
    weights_gb: float,
    kv_bytes: float,
    parameters: float,
    layers: int,
    gpus: int,
    bandwidth: float,
    generated: float,
) -> Decoder:
    return Decoder(
        weight_bytes=weights_gb * 1e9,
        kv_bytes_per_token=kv_bytes,
        active_parameters=parameters,
        layers=layers,
        tensor_parallel=gpus,
        bandwidth_bytes_per_s=bandwidth,
        flop_per_s=989e12,
        prompt_tokens=250,
        generated_tokens=generated,
    )


LLAMA_2_7B = decoder(
    weights_gb=13.48, kv_bytes=524_288, parameters=6.74e9, layers=32, gpus=1, bandwidth=1.63e12, generated=260
)
OPT_2_7B = decoder(
    weights_gb=5.3, kv_bytes=327_680, parameters=2.65e9, layers=32, gpus=1, bandwidth=1.63e12, generated=260
)
LLAMA_31_8B = decoder(
    weights_gb=16.06, kv_bytes=131_072, parameters=8.03e9, layers=32, gpus=1, bandwidth=3.35e12, generated=397
)
LLAMA_33_70B = decoder(
    weights_gb=141.1, kv_bytes=327_680, parameters=70.6e9, layers=80, gpus=4, bandwidth=3.35e12, generated=397
)

MEASURED = [
    *((LLAMA_2_7B, *row) for row in
      [(1, 92, 315), (8, 652, 344), (32, 1887, 371), (64, 2810, 415), (127, 3696, 460), (209, 4073, 510)]),
    *((OPT_2_7B, *row) for row in
      [(1, 165, 269), (16, 1947, 296), (64, 4472, 306), (127, 5403, 332), (249, 6075, 348)]),
    *((LLAMA_31_8B, *row) for row in
      [(8, 1070, 486), (32, 3391, 560), (64, 5147, 610), (128, 7037, 669), (255, 9010, 691), (511, 9806, 688)]),
    *((LLAMA_33_70B, *row) for row in
      [(8, 465, 447), (64, 2564, 527), (128, 3895, 588), (255, 5130, 630), (511, 5858, 623)]),
]  # fmt: skip
"""Engine, batch, tokens per second, watts per GPU."""


def watts(engine: Decoder, batch: int) -> float:
    load = Load(
        process_count=1,
        busy_ratio=0.9,
        bytes_per_s=engine.bytes_per_s(batch),
        flop_per_s=engine.flops_per_s(batch),
    )
    return drawn_w(H100, asked_w(H100, load))


@pytest.mark.parametrize(("engine", "batch", "tokens_per_s", "_watts"), MEASURED)
def test_token_rate_is_within_12_percent_of_each_measured_row(
    engine: Decoder, batch: int, tokens_per_s: float, _watts: float
) -> None:
    assert engine.tokens_per_s(batch) == pytest.approx(tokens_per_s, rel=0.12)


def test_token_rate_is_within_5_percent_of_the_measured_rows_on_average() -> None:
    errors = [abs(engine.tokens_per_s(batch) / rate - 1) for engine, batch, rate, _watts in MEASURED]

    assert fmean(errors) < 0.05


@pytest.mark.parametrize(("engine", "batch", "_rate", "measured_w"), MEASURED)
def test_power_is_within_14_percent_of_each_measured_row(
    engine: Decoder, batch: int, _rate: float, measured_w: float
) -> None:
    assert watts(engine, batch) == pytest.approx(measured_w, rel=0.14)


def test_energy_per_token_falls_sixfold_from_batch_8_to_255() -> None:
    small = watts(LLAMA_31_8B, 8) / LLAMA_31_8B.tokens_per_s(8)
    large = watts(LLAMA_31_8B, 255) / LLAMA_31_8B.tokens_per_s(255)

    assert small / large == pytest.approx(0.455 / 0.077, rel=0.15)


def test_batch_1_moves_the_weights_once_per_token() -> None:
    rate = LLAMA_2_7B.tokens_per_s(1)

    assert LLAMA_2_7B.bytes_per_s(1) == pytest.approx(rate * (13.48e9 + 380 * 524_288))


def test_nothing_running_moves_and_computes_nothing() -> None:
    assert LLAMA_2_7B.tokens_per_s(0) == 0.0
    assert LLAMA_2_7B.bytes_per_s(0) == 0.0
    assert LLAMA_2_7B.flops_per_s(0) == 0.0
