"""Energy, carbon and unit economics, by the figures of the cost model."""

from dataclasses import replace
from decimal import Decimal

import pytest

from core.evidence import Site
from ledger.carbon import carbon_g
from ledger.energy import energy_cost_usd, site_kwh
from ledger.unit_economics import j_per_token, kwh_per_million_tokens, usd_per_million_tokens

SITE = Site(
    tariff_usd_per_kwh=0.12,
    pue=1.3,
    host_share_ratio=0.0,
    carbon_g_per_kwh=383.5,
    pays_for_power=True,
    billing="owned",
)


def test_the_check_of_the_cost_model_section_4() -> None:
    joules = j_per_token(5200, 12_000)
    assert joules == pytest.approx(0.4333, abs=5e-5)
    assert kwh_per_million_tokens(joules) == pytest.approx(0.1204, abs=5e-5)
    cost = energy_cost_usd(1e6 * joules, SITE)
    grams = carbon_g(1e6 * joules, SITE)
    assert cost is not None
    assert float(cost) == pytest.approx(0.0188, abs=5e-5)
    assert grams == pytest.approx(60.0, abs=0.05)


def test_the_hosts_share_and_the_building_come_on_top() -> None:
    assert site_kwh(3.6e6, replace(SITE, host_share_ratio=0.3)) == pytest.approx(1.3 * 1.3)


def test_unknown_energy_tariff_or_factor_is_unknown_cost_and_carbon() -> None:
    assert energy_cost_usd(None, SITE) is None
    assert energy_cost_usd(1.0, replace(SITE, tariff_usd_per_kwh=None)) is None
    assert carbon_g(None, SITE) is None
    assert carbon_g(1.0, replace(SITE, carbon_g_per_kwh=None)) is None
    assert energy_cost_usd(0.0, SITE) == 0


def test_half_a_kilowatt_costs_six_cents_an_hour() -> None:
    assert energy_cost_usd(0.5 * 3.6e6, replace(SITE, pue=1.0)) == Decimal("0.06")


def test_a_million_tokens_cost_the_hour_over_the_rate_and_the_use() -> None:
    at_work = usd_per_million_tokens(Decimal("3.60"), 1000.0)
    always_on = usd_per_million_tokens(Decimal("3.60"), 1000.0, use_ratio=0.25)
    assert at_work == Decimal(1)
    assert always_on == Decimal(4)


def test_no_tokens_have_no_price() -> None:
    assert usd_per_million_tokens(Decimal(1), 0.0) is None
    assert usd_per_million_tokens(Decimal(1), 10.0, use_ratio=0.0) is None
    assert j_per_token(300.0, 0.0) is None
