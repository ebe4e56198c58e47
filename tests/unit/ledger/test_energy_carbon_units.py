"""Energy, carbon and unit economics, by the figures of the cost model."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hours_for_tests import PLACE, hour

from core.place import Place
from core.units import HOUR_MS
from ledger.line import Line, terms_of
from ledger.lines import lines_of_hour
from ledger.unit_economics import usd_per_million_tokens

SITE = replace(PLACE, usd_per_kwh=Decimal("0.12"), pue=1.3, host_share_ratio=0.0, carbon_g_per_kwh=383.5)


def line(energy_j: float | None, place: Place = SITE) -> Line:
    """A busy hour of that much GPU energy, without a price of the GPU."""
    (found,) = lines_of_hour(hour(busy=3600.0, energy_j=energy_j), [], HOUR_MS, terms_of(None, place))
    return found


def test_the_check_of_the_cost_model_section_4() -> None:
    """5.2 kW that make 12,000 tokens a second: a million of them."""
    tokens = line(1e6 * 5200 / 12_000)
    assert tokens.energy_mj == pytest.approx(0.1204 * 3.6e9, abs=5e-5 * 3.6e9)
    assert tokens.energy_usd == pytest.approx(18_800, abs=50)
    assert tokens.carbon_ug == pytest.approx(60.0e6, abs=0.05e6)


def test_the_hosts_share_and_the_building_come_on_top() -> None:
    assert line(3.6e6, replace(SITE, host_share_ratio=0.3)).site_energy_mj == 3.6e9 * 1.3 * 1.3


def test_unknown_energy_tariff_or_factor_is_unknown_cost_and_carbon() -> None:
    unknown = line(None)
    assert (unknown.site_energy_mj, unknown.energy_usd, unknown.carbon_ug) == (None, None, None)
    untold = line(1.0, replace(SITE, usd_per_kwh=None, carbon_g_per_kwh=None))
    assert (untold.site_energy_mj, untold.energy_usd, untold.carbon_ug) == (1300, None, None)
    assert (line(0.0).energy_usd, line(0.0).carbon_ug) == (0, 0)


def test_half_a_kilowatt_costs_six_cents_an_hour() -> None:
    assert line(0.5 * 3.6e6, replace(SITE, pue=1.0)).energy_usd == 60_000


def test_a_million_tokens_cost_the_hour_over_the_rate_and_the_use() -> None:
    at_work = usd_per_million_tokens(Decimal("3.60"), 1000.0)
    always_on = usd_per_million_tokens(Decimal("3.60"), 1000.0, use_ratio=0.25)
    assert at_work == Decimal(1)
    assert always_on == Decimal(4)


def test_no_tokens_have_no_price() -> None:
    assert usd_per_million_tokens(Decimal(1), 0.0) is None
    assert usd_per_million_tokens(Decimal(1), 10.0, use_ratio=0.0) is None
