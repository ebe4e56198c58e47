"""A card cut into MIG slices is paid for once."""

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal

import pytest
from fleet_for_tests import GIB, NOW, SPAN, T0, settings_for

from api.resources import costs, energy, funnel, gpus, hosts, usage
from api.resources.by import By
from api.resources.evidence import read_evidence
from api.resources.overview import overview
from api.resources.scope import Scope, scope_of
from core.activity import Activity
from core.readings import GpuIdentity
from core.samples import EnergyMethod, GpuSample
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import prices
from store.rollup import roll_up

CARD = "GPU-card"
SLICES = [f"MIG-{number}" for number in range(7)]
A100 = "NVIDIA A100-SXM4-80GB"


def _samples(uuid: str, values: dict[str, float], method: EnergyMethod | None) -> list[GpuSample]:
    return [
        GpuSample(uuid, T0 + slot * SPAN, SPAN, SPAN, values, method, Activity.UNKNOWN) for slot in range(6)
    ]


@pytest.fixture
def sliced(ready_database: str) -> Iterator[Scope]:
    """One hour of one A100 in seven slices, at 2.70 USD per GPU-hour."""
    with closing(open_connection(ready_database)) as connection:
        ingest = Ingest(connection)
        cut = [GpuIdentity(uuid, "h1", at, f"{A100} MIG 1g.10gb", 10 * GIB) for at, uuid in enumerate(SLICES)]
        ingest.gpus([GpuIdentity(CARD, "h1", 0, A100, 80 * GIB), *cut])
        ingest.gpu_samples(
            _samples(CARD, {"power_w": 300.0, "energy_j": 180_000.0}, EnergyMethod.COUNTER)
            + [one for uuid in SLICES for one in _samples(uuid, {"memory_used_bytes": 8.0 * GIB}, None)]
        )
        ingest.commit()
    engine = make_engine(ready_database)
    roll_up(engine, now_ms=NOW)
    with session_scope(engine) as session:
        prices.add(
            session,
            scope_kind="all",
            scope_value="",
            usd_per_gpu_hour=Decimal("2.70"),
            billing="on_demand",
            valid_from_ms=0,
        )
    with session_scope(engine) as session:
        yield scope_of(session, settings_for(ready_database), NOW)


@pytest.mark.parametrize("by", [By.GPU, By.HOST, By.DAY, By.ACTIVITY])
def test_a_card_in_slices_costs_one_card(sliced: Scope, by: By) -> None:
    assert [row.cost_usd for row in costs.rows(sliced, by)] == [Decimal("2.70")]


def test_a_card_in_slices_has_the_gpu_hours_of_one_card(sliced: Scope) -> None:
    assert [row.total_gpu_h for row in usage.rows(sliced, By.HOST)] == [1.0]
    assert funnel.rows(sliced)[0].gpu_h == 1.0
    assert [row.energy_j for row in energy.rows(sliced, By.GPU)] == [1_080_000.0]
    view = overview(sliced)
    assert (view.gpu_count, view.money.spend_usd) == (1, Decimal("2.70"))


def test_slices_are_listed_among_the_gpus_without_a_price(sliced: Scope) -> None:
    listed = {row.gpu_uuid: row.price_usd_per_hour for row in gpus.rows(sliced)}
    assert listed == dict.fromkeys(SLICES) | {CARD: Decimal("2.70")}


def test_a_host_counts_and_prices_its_cards(sliced: Scope) -> None:
    (host,) = hosts.rows(sliced)
    assert (host.gpu_count, host.price_usd_per_hour, host.power_w) == (1, Decimal("2.70"), 300.0)


def test_advice_sees_the_card_and_not_its_slices(sliced: Scope) -> None:
    (card,) = read_evidence(sliced).gpus
    assert (card.gpu_uuid, card.host_gpu_count) == (CARD, 1)
