"""Sums by GPU say what the ledger says, however it is read; filters and states of a fleet in the store."""

from sqlalchemy import Engine, update

from api.resources import costs, energy
from api.resources.by import By
from api.resources.fleet_rows import FleetFilters, gpu_rows, host_rows, read_fleet
from api.resources.gpu_totals import gpu_totals
from api.resources.ledger_days import materialise
from core.activity import Activity
from core.units import DAY_MS, J_PER_KWH
from store.engine import session_scope
from store.models.ledger_day import LedgerDayRow
from store.queries.gpu_payers import main_payers, payers
from tests.integration.api.test_reports import (  # noqa: F401 - the fixture
    LATER,
    A,
    B,
    fleet,
    scope_over,
    settings,
    ways,
)


def test_every_way_of_reading_gives_each_gpu_what_costs_give_it(fleet: Engine) -> None:  # noqa: F811
    for way in ways(fleet):
        with session_scope(fleet) as session:
            scope = scope_over(fleet, session)
            rows = {row.key: row for row in costs.rows(scope, By.GPU)}
            joules = {row.key: row for row in energy.rows(scope, By.GPU)}
            found = {gpu.now.gpu_uuid: gpu.total for gpu in read_fleet(scope)}
            owners = {row.key: row for row in costs.rows(scope, By.OWNER)}
        assert set(found) == set(rows)
        for uuid, total in found.items():
            row = rows[uuid]
            assert (total.cost_usd, total.idle_usd) == (row.cost_usd, row.idle_cost_usd), (way, uuid)
            assert total.covered_ms == round(row.gpu_h * 3_600_000), (way, uuid)
            known = joules[uuid].energy_j
            assert (total.energy_kwh is None) == (known is None), (way, uuid)
            if known is not None:
                assert abs(total.energy_kwh * J_PER_KWH - known) < 0.01, (way, uuid)
        teams = {owner.team if owner else None for total in found.values() for owner in total.owner_ms}
        assert teams == set(owners), way


def test_asking_for_some_gpus_gives_the_same_as_asking_for_all(fleet: Engine) -> None:  # noqa: F811
    for way in ways(fleet):
        with session_scope(fleet) as session:
            scope = scope_over(fleet, session)
            whole = gpu_totals(scope)
            for gpu_id, total in whole.items():
                assert gpu_totals(scope, frozenset({gpu_id})) == {gpu_id: total}, way


def test_hosts_add_up_to_their_gpus_and_filters_only_leave_out(fleet: Engine) -> None:  # noqa: F811
    with session_scope(fleet) as session:
        scope = scope_over(fleet, session)
        gpus, hosts = gpu_rows(scope), host_rows(scope)
        assert sum(host.cost_usd or 0 for host in hosts) == sum(gpu.total.cost_usd or 0 for gpu in gpus)
        assert [gpu for host in hosts for gpu in host.gpus] == gpus
        for host in {gpu.now.host for gpu in gpus}:
            assert gpu_rows(scope, FleetFilters(host=(host or "",))) == [
                g for g in gpus if g.now.host == host
            ]
        (only,) = gpu_rows(scope, FleetFilters(find=A))
        assert only.now.gpu_uuid == A


def test_a_strip_holds_the_main_activity_of_each_hour_and_nothing_of_a_gap(fleet: Engine) -> None:  # noqa: F811
    with session_scope(fleet) as session:
        (gpu,) = gpu_rows(scope_over(fleet, session), FleetFilters(find=B))
    # Seventy minutes of work from midnight, and nothing in the day before.
    assert list(gpu.strip) == [None] * 22 + [Activity.BUSY] * 2


def test_who_paid_for_a_gpu_is_told_over_months(fleet: Engine) -> None:  # noqa: F811
    materialise(fleet, settings(fleet), LATER)
    with session_scope(fleet) as session:
        window = scope_over(fleet, session).window
        before = payers(session, window)
        # 25 days of one GPU are more milliseconds than a whole number of 32 bits holds.
        session.execute(update(LedgerDayRow).values(known_ms=LedgerDayRow.known_ms + 40 * DAY_MS))
        found = payers(session, window)
    assert {uuid: set(teams) for uuid, teams in found.items()} == {uuid: set(t) for uuid, t in before.items()}
    assert all(known_ms > 2**31 for teams in found.values() for known_ms in teams.values())
    assert set(main_payers(found)) <= set(found)
