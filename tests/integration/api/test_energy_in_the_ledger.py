"""Energy money and carbon of the ledger are hours × terms in force, worked out by hand; on both databases."""

from contextlib import closing
from dataclasses import replace
from decimal import Decimal

import pytest
from fleet_for_tests import HOUR, MINUTE, NOW, T0, A, B, settings_for
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from api.resources import sites, tariffs
from api.resources.ledger_days import materialise
from api.resources.tariff_specs import parsed
from core.samples import HostSample
from core.settings import Settings
from store.dbapi import open_connection
from store.engine import make_engine
from store.ingest import Ingest
from store.rollup import roll_up

J_PER_KWH = 3.6e6
HOURLY = {
    "name": "city",
    "time_zone": "Asia/Tokyo",  # 00:00 UTC is 09:00 there
    "periods": [
        {"weekdays": "all", "from_hour": 10, "to_hour": 9, "usd_per_kwh": "0.4"},
        {"weekdays": "all", "from_hour": 9, "to_hour": 10, "usd_per_kwh": "0.1"},
    ],
}
A_J = (500.0 * 1800 + 100.0 * 1800, 70.0 * 2400)
B_J = (200.0 * 3600, 200.0 * 3600)
"""Joules of both hours of the small fleet's cards."""
PRICES = (0.1, 0.4)


@pytest.fixture
def engine(filled_database: str) -> Engine:
    return make_engine(filled_database)


@pytest.fixture
def settings(filled_database: str) -> Settings:
    return settings_for(filled_database)


def lines(engine: Engine, settings: Settings) -> dict[str, tuple[Decimal, float, set[str]]]:
    """Energy money in USD, carbon in grams, and methods of host shares, by GPU, after the ledger was written."""
    materialise(engine, settings, NOW)
    with Session(engine) as session:
        found = session.execute(
            text(
                "SELECT gpu_uuid, energy_usd, carbon_ug, host_share_method FROM ledger_day "
                "JOIN gpu ON gpu.id = ledger_day.gpu_id JOIN ledger_place ON ledger_place.id = ledger_day.place_id"
            )
        ).all()
    return {
        uuid: (
            Decimal(sum(usd or 0 for gpu, usd, _, _ in found if gpu == uuid)) / 1_000_000,
            sum(ug or 0 for gpu, _, ug, _ in found if gpu == uuid) / 1e6,
            {method for gpu, _, ug, method in found if gpu == uuid and ug is not None},
        )
        for uuid in (A, B)
    }


def usd(joules: tuple[float, float], factor: float, prices: tuple[float, float] = PRICES) -> float:
    return sum(j / J_PER_KWH * factor * price for j, price in zip(joules, prices, strict=True))


def test_each_hour_has_the_price_of_its_local_time_and_a_change_prices_it_anew(
    engine: Engine, settings: Settings
) -> None:
    with Session(engine) as session, session.begin():
        tariffs.add(session, settings, parsed(HOURLY), NOW)
        sites.add(
            session,
            settings,
            sites.parsed({"name": "hall", "tariff": "city", "pue": 1.1, "grid_code": "DEU"}),
            NOW,
        )
        grams = sites.terms(session, settings, NOW)[0].carbon_g_per_kwh or 0.0
    found = lines(engine, settings)
    for uuid, joules in ((A, A_J), (B, B_J)):
        assert float(found[uuid][0]) == pytest.approx(usd(joules, 1.2 * 1.1), abs=2e-6)
        assert found[uuid][1] == pytest.approx(sum(joules) / J_PER_KWH * 1.2 * 1.1 * grams, abs=1e-4)
    with Session(engine) as session, session.begin():
        tariffs.end(session, settings, 1, "2026-10-05T01:00:00Z", NOW)
        flat = {"name": "city", "usd_per_kwh": "0.2", "valid_from": "2026-10-05T01:00:00Z"}
        tariffs.add(session, settings, parsed(flat), NOW)
    assert float(lines(engine, settings)[B][0]) == pytest.approx(usd(B_J, 1.32, (0.1, 0.2)), abs=2e-6)
    with Session(engine) as session, session.begin():
        sites.remove(session, 1)
    assert float(lines(engine, settings)[B][0]) == pytest.approx(usd(B_J, 1.2 * 1.25, (0.1, 0.1)), abs=2e-6)


def test_a_measured_share_reaches_the_ledger_when_its_samples_come_late(
    engine: Engine, settings: Settings
) -> None:
    with Session(engine) as session, session.begin():
        given = {"name": "rack", "scope_kind": "host", "scope_value": "h1", "host_share_measured": True}
        sites.add(session, settings, sites.parsed(given), NOW)
    before = lines(engine, settings)
    assert before[B][2] == {"setting"}
    with closing(open_connection(settings.database_url)) as connection:
        ingest = Ingest(connection)
        span = 10 * MINUTE
        ingest.host_samples(
            HostSample("h1", T0 + at * span, span, {"host_power_w": 100.0}) for at in range(12)
        )
        ingest.commit()
    roll_up(engine, now_ms=NOW)
    after = lines(engine, settings)
    a_w = sum(A_J) / 6_000  # its gap of 20 minutes has no power
    share = round(100.0 / (a_w + 200.0), 3)
    assert after[B][2] == {"measured"}
    assert float(after[B][0]) == pytest.approx(usd(B_J, (1 + share) * 1.25, (0.1, 0.1)), abs=2e-6)
    assert after[B][0] != before[B][0]


def test_a_place_without_a_tariff_has_no_energy_money(engine: Engine, settings: Settings) -> None:
    materialise(engine, replace(settings, tariff_usd_per_kwh=None), NOW + HOUR)
    with Session(engine) as session:
        assert session.scalars(text("SELECT count(energy_usd) FROM ledger_day")).one() == 0
