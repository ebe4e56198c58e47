"""The fleets that every page is opened on: the demo, nothing at all, two hundred GPUs, and hostile names."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from bench import page_fleet
from core.clock import iso
from core.settings import Settings
from core.units import HOUR_MS
from gpuwise.demo import demo_settings, seed
from store.dbapi import open_connection
from tests.e2e.browsing import page_routes
from tests.integration.api.fleet_for_tests import NOW, settings_for
from tests.integration.pages.hostile_fleet import fill_hostile

DEMO_MS: Final = 1_791_216_000_000
"""2026-10-05T16:00Z, a Monday."""
ONE_OF: Final[Mapping[str, str]] = {
    "/hosts/{name:name}": "SELECT name FROM host ORDER BY id",
    "/gpus/{gpu_uuid:path}": "SELECT gpu_uuid FROM gpu ORDER BY id",
    "/gpus/{gpu_uuid:path}/hours": "SELECT gpu_uuid FROM gpu ORDER BY id",
    "/gpus/{gpu_uuid:path}/samples": "SELECT gpu_uuid FROM gpu ORDER BY id",
    "/engines/{name:name}": "SELECT engine FROM engine ORDER BY id",
    "/workloads/{asked:name}": "SELECT id FROM workload ORDER BY id",
    "/owners/{team:name}": "SELECT team FROM owner_rule ORDER BY id",
    "/users/{user:name}": "SELECT user_name FROM workload WHERE user_name IS NOT NULL ORDER BY id",
    "/recommendations/{id_}": "SELECT id FROM recommendation ORDER BY status = 'open' DESC, id",
}
"""What may stand for the variable part of an address; no row: the fleet has no such page."""

NEEDS_DATA: Final = frozenset({"/costs/parts"})
FILLED: Final[Mapping[str, str]] = {
    "/plan/rent-or-buy": "?gpu_model=H100-SXM5-80GB&capex_usd=330000&utilisation_percent=60&tariff_usd_per_kwh=0.12",
    "/plan/size": "?model=llama-3.1-8b&itl_slo_ms=40",
    "/plan/mix": "?capex_usd=330000&assume_measured=1",
    "/settings/rules": "?rule=small-batch",
}
"""Forms as somebody filled them, on a fleet that has data; the empty one shows them as they come."""


@dataclass(frozen=True)
class Recipe:
    """How a fleet is filled, whose settings it has and what time it is there."""

    fill: Callable[[str], object]
    settings: Callable[[str], Settings]
    now_ms: int


RECIPES: Final[Mapping[str, Recipe]] = {
    "demo": Recipe(
        lambda url: seed(demo_settings(url), DEMO_MS, days=8, workers=0),
        lambda url: replace(demo_settings(url), pays_for_power=True),
        DEMO_MS,
    ),
    "empty": Recipe(lambda _url: None, settings_for, NOW),
    "large": Recipe(lambda url: page_fleet.build(url, 200, 3), page_fleet.settings, page_fleet.END_MS),
    "hostile": Recipe(fill_hostile, settings_for, NOW),
}


def pages_of(url: str, number: int = 0) -> dict[str, str]:
    """The address of every page that this database can show, by its pattern; ``number``: of which of its things."""
    found: dict[str, str] = {}
    with closing(open_connection(url)) as connection:
        newest = connection.fetch("SELECT max(seen_until_ms) FROM gpu")[0][0]
        for pattern in page_routes():
            if "{" not in pattern:
                if newest is not None or pattern not in NEEDS_DATA:
                    found[pattern] = pattern + (FILLED.get(pattern, "") if newest is not None else "")
                continue
            rows = connection.fetch(ONE_OF[pattern])
            if rows:
                found[pattern] = _address(pattern, str(rows[min(number, len(rows) - 1)][0]), newest)
    return found


def _address(pattern: str, value: str, newest_ms: int) -> str:
    hour = iso(newest_ms // HOUR_MS * HOUR_MS - HOUR_MS)
    asked = {
        "/gpus/{gpu_uuid:path}/hours": f"?day={hour[:10]}",
        "/gpus/{gpu_uuid:path}/samples": f"?hour={hour}",
    }
    head, _, tail = pattern.partition("{")
    return head + quote(value, safe="") + tail.partition("}")[2] + asked.get(pattern, "")
