"""Fleets with a known saving: kWh of a service by the hour, its traffic, and untreated neighbours."""

from dataclasses import replace
from math import pi, sin
from random import Random
from typing import Any

from advisor.verify.series import Case, LatencyHour, LoadHour
from core.units import DAY_MS, HOUR_MS
from core.verification import Ledger

ACTION_MS = 1_791_158_400_000
DAYS_BEFORE, DAYS_AFTER = 28, 21
IDLE_KWH, KWH_PER_TOKEN = 0.8, 2e-6
TOKENS = 900_000.0


def series(
    seed: int,
    *,
    saving_ratio: float = 0.0,
    traffic_factor: float = 1.0,
    drift_ratio: float = 0.0,
    change_day: float = 0.0,
    noise: float = 0.06,
) -> list[LoadHour]:
    """Hours of one service; from ``change_day`` days after the action it draws ``saving_ratio`` less at equal load."""
    random = Random(seed)
    found, day_noise = [], 0.0
    for at in range(-DAYS_BEFORE * 24, DAYS_AFTER * 24):
        if at % 24 == 0:
            day_noise = 0.4 * day_noise + random.gauss(0.0, 0.02)
        is_after = at >= 0
        shape = 1 + 0.5 * sin(2 * pi * (at % 24) / 24) - 0.2 * ((at // 24) % 7 >= 5)
        tokens = max(0.0, TOKENS * shape * random.gauss(1.0, 0.08)) * (traffic_factor if is_after else 1.0)
        prompts = 3.0 * tokens * random.gauss(1.0, 0.03)
        energy_kwh = (IDLE_KWH + KWH_PER_TOKEN * tokens) * (1 + day_noise + random.gauss(0.0, noise))
        if at >= change_day * 24:
            energy_kwh *= 1 - saving_ratio
        if is_after:
            energy_kwh *= 1 - drift_ratio
        found.append(LoadHour(ACTION_MS + at * HOUR_MS, energy_kwh, (tokens / 400, prompts, tokens)))
    return found


def true_saving_kwh_month(hours: list[LoadHour], saving_ratio: float) -> float:
    """What the hours after would have drawn without the change, less what they draw with it; no noise in it."""
    after = [hour for hour in hours if hour.hour_ms >= ACTION_MS + DAY_MS]
    base = sum(IDLE_KWH + KWH_PER_TOKEN * hour.loads[-1] for hour in after) / len(after)
    return base * saving_ratio * 730


def case(hours: list[LoadHour], peers: list[LoadHour] | None = None, **changed: Any) -> Case:
    """The action at ``ACTION_MS``, seen three weeks later."""
    made = Case(
        ledger=Ledger.ENERGY,
        predicted_p50=300.0,
        action_ms=ACTION_MS,
        until_ms=ACTION_MS + DAYS_AFTER * DAY_MS,
        hours=hours,
        load_names=("requests", "prompt tokens", "generated tokens"),
        peers=peers or [],
        latencies={},
    )
    return replace(made, **changed)


def latency(mean_before_s: float, mean_after_s: float) -> list[LatencyHour]:
    """Thousand requests an hour."""
    return [
        LatencyHour(ACTION_MS + at * HOUR_MS, 1000.0 * (mean_after_s if at >= 0 else mean_before_s), 1000.0)
        for at in range(-DAYS_BEFORE * 24, DAYS_AFTER * 24)
    ]
