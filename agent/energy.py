"""Joules of one interval: the counter's difference where there is one, integrated power where there is not."""

from operator import le

from agent.frame import Frame
from agent.track import Cut
from core.samples import EnergyMethod


def energy(cut: Cut) -> tuple[float, EnergyMethod] | None:
    """Energy over the covered part of an interval and how it was had; None when nothing tells.

    The counter is used wherever a segment has it at both ends and it did not fall (a driver reload zeroes
    it); power is integrated over what is left.
    """
    counter = cut.column("energy_j") if "energy_j" in cut.keys else None
    power = cut.column("power_w") if "power_w" in cut.keys else None
    if counter is None:
        if power is None or not power[0].covered_ms:
            return None
        return power[0].integral(power[1]), EnergyMethod.INTEGRATED
    frame, column = counter
    alone = power is None or power[0].covered_ms == frame.covered_ms
    if frame.covered_ms and alone and all(map(le, column, column[1:])):
        grown = frame.increase(column)
        return None if grown is None else (grown, EnergyMethod.COUNTER)
    counted: list[tuple[int, int]] = []
    joules = 0.0
    for i, low, high in frame.pieces():
        step = column[i] - column[i - 1]
        if step >= 0:
            joules += step * ((high - low) / (frame.times[i] - frame.times[i - 1]))
            counted.append((low, high))
    by_counter = sum(high - low for low, high in counted)
    by_power = 0
    if power is not None and by_counter < power[0].covered_ms:
        rest, by_power = _integrated(power, counted)
        joules += rest
    if by_counter and by_power:
        return joules, EnergyMethod.MIXED
    if by_counter:
        return joules, EnergyMethod.COUNTER
    return (joules, EnergyMethod.INTEGRATED) if by_power else None


def _integrated(power: tuple[Frame, list[float]], counted: list[tuple[int, int]]) -> tuple[float, int]:
    frame, column = power
    joules, behind = 0.0, 0
    for i, low, high in frame.pieces():
        middle = (low + high) / 2
        if any(start <= middle < stop for start, stop in counted):
            continue
        watts = (frame.at(column, i, low) + frame.at(column, i, high)) / 2
        joules += watts * (high - low) / 1000
        behind += high - low
    return joules, behind
