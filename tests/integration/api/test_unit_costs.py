"""Unit costs of the small fleet, on both databases: figures that fit on a napkin; and of engines that share a GPU."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal

import pytest
from fleet_for_tests import (
    ENGINE,
    GIB,
    NOW,
    SPAN,
    T0,
    A,
    B,
    engine_samples,
    fill,
    settings_for,
)
from starlette.testclient import TestClient

from api.resources import engine_accounts, engines
from api.resources.engine_accounts import OWN_LINES, SHARED, TOLD_IN_PART
from api.resources.scope import Scope, scope_of
from api.resources.unit_economics import UnitBy, UnitRow, rows
from core.ownership import Owner, OwnerConditions, OwnerRule
from core.readings import EngineIdentity, WorkloadKey
from core.samples import ProcessSample
from gpuwise.__main__ import main
from ledger.unit_economics import PrefillShare
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import owners
from store.rollup import roll_up

ONE, TWO = (WorkloadKey("pod", name, name, host="h1") for name in ("one", "two"))


def the(found: list[UnitRow], key: str | None) -> UnitRow:
    return next(row for row in found if row.key == key)


def test_an_engine_has_the_whole_hours_of_its_gpu(filled_scope: Scope) -> None:
    """One hour at $2; 30 min busy at 500 W, 30 min parked at 100 W; 54,000 tokens out, 18,000 in."""
    row = the(rows(filled_scope, UnitBy.ENGINE), ENGINE)
    assert (row.cost_usd, row.engine_cost_usd) == (2, 2)
    assert (row.allocated_gpu_h, row.idle_gpu_h, row.usd_per_useful_gpu_h) == (1.0, 0.5, 4)
    assert row.usd_per_1m_tokens == pytest.approx(Decimal(2) / Decimal("0.072"))
    assert row.usd_per_1m_output_tokens_all_in == pytest.approx(Decimal(2) / Decimal("0.054"))
    assert row.usd_per_1m_tokens_busy == pytest.approx(Decimal(1) / Decimal("0.072"))
    assert row.usd_per_1m_output_tokens_all_in_busy == pytest.approx(Decimal(1) / Decimal("0.054"))
    assert (row.j_per_token, row.j_per_output_token_all_in, row.j_per_token_busy) == (15.0, 20.0, 12.5)
    assert (row.energy_kwh, row.site_energy_kwh) == pytest.approx((0.3, 0.45))
    assert row.carbon_g == pytest.approx(180)
    assert (row.busy_ratio, row.tokens_output, row.tokens_input) == (0.5, 54_000, 18_000)


def test_a_day_of_hours_is_needed_to_tell_prompts_from_answers(filled_scope: Scope) -> None:
    row = the(rows(filled_scope, UnitBy.ENGINE), ENGINE)
    assert (row.usd_per_1m_output_tokens, row.usd_per_1m_input_tokens, row.split_method) == (None, None, None)
    assert row.split_why == "1 busy hours with both kinds of tokens, 24 needed"


def test_prefills_share_divides_money_and_energy(
    filled_scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_accounts, "prefill_share", lambda _: PrefillShare(0.25, 0.01, 48))
    row = the(rows(filled_scope, UnitBy.ENGINE), ENGINE)
    assert row.usd_per_1m_input_tokens == pytest.approx(Decimal("0.5") / Decimal("0.018"))
    assert row.usd_per_1m_output_tokens == pytest.approx(Decimal("1.5") / Decimal("0.054"))
    assert row.usd_per_1m_input_tokens_busy == pytest.approx(Decimal("0.25") / Decimal("0.018"))
    assert row.usd_per_1m_output_tokens_busy == pytest.approx(Decimal("0.75") / Decimal("0.054"))
    assert (row.j_per_input_token, row.j_per_output_token) == (15.0, 15.0)  # 0.27 of 1.08 MJ, 0.81 of it
    assert row.split_method is not None
    assert row.split_why is None


def test_the_busy_price_is_that_of_the_engines_table(filled_scope: Scope) -> None:
    (engine,) = engines.rows(filled_scope)
    row = the(rows(filled_scope, UnitBy.ENGINE), ENGINE)
    assert row.usd_per_1m_output_tokens_all_in_busy == pytest.approx(engine.usd_per_million_tokens)


def with_a_second_hour(url: str, counters: dict[str, float]) -> UnitRow:
    """The engine was busy for another hour of its GPU, at $2 and 280 kJ, and told only these counters then."""
    fill(url)
    busy = engine_samples()[0]
    gauges = {name: value for name, value in busy.values.items() if not name.endswith("_tokens")}
    with closing(open_connection(url)) as connection:
        sink = Ingest(connection)
        sink.engine_samples(
            replace(busy, ts_ms=T0 + slot * SPAN, values=gauges | counters) for slot in range(6, 12)
        )
        sink.commit()
    engine = make_engine(url)
    roll_up(engine, now_ms=NOW)
    with session_scope(engine) as session:
        return the(rows(scope_of(session, settings_for(url), NOW), UnitBy.ENGINE), ENGINE)


def test_hours_that_told_no_tokens_are_in_the_cost_and_not_in_that_of_a_token(ready_database: str) -> None:
    row = with_a_second_hour(ready_database, {})
    assert (row.cost_usd, row.engine_cost_usd, row.tokens_output) == (4, 4, 54_000)
    assert row.energy_kwh == pytest.approx((1.08e6 + 70 * 2400) / 3.6e6)
    assert row.usd_per_1m_tokens == pytest.approx(Decimal(2) / Decimal("0.072"))
    assert row.usd_per_1m_output_tokens_all_in == pytest.approx(Decimal(2) / Decimal("0.054"))
    assert row.usd_per_1m_output_tokens_all_in_busy == pytest.approx(Decimal(1) / Decimal("0.054"))
    assert (row.j_per_token, row.j_per_output_token_all_in, row.j_per_token_busy) == (15.0, 20.0, 12.5)
    assert row.data_quality == (TOLD_IN_PART,)


def test_hours_that_told_answers_and_no_prompts_count_where_prompts_do_not(ready_database: str) -> None:
    row = with_a_second_hour(ready_database, {"generated_tokens": 9_000.0})
    assert (row.tokens_output, row.tokens_input) == (108_000, 18_000)
    assert row.usd_per_1m_output_tokens_all_in == pytest.approx(Decimal(4) / Decimal("0.108"))
    assert row.j_per_output_token_all_in == pytest.approx((1.08e6 + 70 * 2400) / 108_000)
    assert row.usd_per_1m_tokens == pytest.approx(Decimal(2) / Decimal("0.072"))
    assert (row.j_per_token, row.j_per_token_busy) == (15.0, 12.5)
    assert row.data_quality == ()


def test_an_engine_that_never_told_its_tokens_has_a_cost_and_none_of_a_token(ready_database: str) -> None:
    fill(ready_database)
    with closing(open_connection(ready_database)) as connection:
        sink = Ingest(connection)
        other = "h1:8001/0"
        sink.engines([EngineIdentity(other, "h1", "vllm", "acme/b", {}, (B,))])
        for one in engine_samples():
            gauges = {name: value for name, value in one.values.items() if not name.endswith("_tokens")}
            sink.engine_samples([replace(one, engine=other, values=gauges)])
        sink.commit()
    engine = make_engine(ready_database)
    roll_up(engine, now_ms=NOW)
    with session_scope(engine) as session:
        row = the(rows(scope_of(session, settings_for(ready_database), NOW), UnitBy.ENGINE), other)
    assert (row.cost_usd, row.tokens_output) == (2, None)
    assert (row.usd_per_1m_tokens, row.usd_per_1m_output_tokens_all_in) == (None, None)
    assert (row.j_per_token, row.j_per_output_token_all_in, row.j_per_token_busy) == (None, None, None)
    assert row.data_quality == ()


def test_engines_of_a_model_are_added_up(filled_scope: Scope) -> None:
    (row,) = rows(filled_scope, UnitBy.MODEL)
    (alone,) = rows(filled_scope, UnitBy.ENGINE)
    assert replace(row, key=alone.key, label=alone.label) == alone


def test_an_owner_pays_for_more_than_engines(filled_scope: Scope) -> None:
    owners.insert(filled_scope.session, OwnerRule(0, Owner("vision"), OwnerConditions(user="ann")))
    owners.insert(filled_scope.session, OwnerRule(0, Owner("serving"), OwnerConditions(kind="engine")))
    found = rows(filled_scope, UnitBy.OWNER)
    assert [row.key for row in found] == ["serving", "vision", None]
    serving, vision, nobody = found
    assert (vision.cost_usd, vision.usd_per_useful_gpu_h, vision.engine_count) == (4, 2, 0)
    assert (vision.usd_per_1m_tokens, vision.split_why) == (None, None)
    assert (serving.cost_usd, serving.engine_cost_usd, serving.usd_per_useful_gpu_h) == (2, 2, 4)
    assert serving.usd_per_1m_tokens == pytest.approx(Decimal(2) / Decimal("0.072"))
    assert nobody.cost_usd is None  # a card without a price is among it


@pytest.fixture
def shared(ready_database: str) -> Iterator[Scope]:
    """Two engines on GPU-a, one of them on GPU-b too; a pod each, three to one in memory."""
    fill(ready_database)
    with closing(open_connection(ready_database)) as connection:
        sink = Ingest(connection)
        sink.engines(
            [
                EngineIdentity("h1:8001/0", "h1", "vllm", "acme/b", {}, (A,)),
                EngineIdentity(ENGINE, "h1", "vllm", "acme/secret-7b", {}, (A, B)),
            ]
        )
        sink.engine_samples(replace(one, engine="h1:8001/0") for one in engine_samples())
        sink.process_samples(
            [
                ProcessSample(uuid, T0 + slot * SPAN, SPAN, pod, size * GIB, None, 1)
                for uuid, pod, size in ((A, ONE, 45.0), (B, ONE, 45.0), (A, TWO, 15.0))
                for slot in range(6)
            ]
        )
        sink.commit()
    roll_up(make_engine(ready_database), now_ms=NOW)
    with session_scope(make_engine(ready_database)) as session:
        yield scope_of(session, settings_for(ready_database), NOW)


def test_engines_that_share_a_gpu_have_their_own_workloads_lines(shared: Scope) -> None:
    """GPU-a's hour is three to one theirs; GPU-b is the first engine's alone: no other engine is on it."""
    found = rows(shared, UnitBy.ENGINE)
    first, second = the(found, ENGINE), the(found, "h1:8001/0")
    assert (first.cost_usd, second.cost_usd) == (Decimal("3.5"), Decimal("0.5"))
    assert all(row.data_quality == (OWN_LINES,) for row in (first, second))
    table = {row.engine: row for row in engines.rows(shared)}
    assert table["h1:8001/0"].usd_per_million_tokens == pytest.approx(
        second.usd_per_1m_output_tokens_all_in_busy
    )
    assert table["h1:8001/0"].price_basis is not None
    assert table["h1:8001/0"].tokens_per_j is None
    assert any("its own workload's lines" in said for said in table["h1:8001/0"].data_quality)


def test_where_nothing_tells_whose_money_it_is_there_is_none(shared: Scope) -> None:
    with closing(open_connection(shared.settings.database_url)) as connection:
        sink = Ingest(connection)
        sink.engines([EngineIdentity(ENGINE, "h1", "vllm", "acme/secret-7b", {}, (A,))])
        sink.commit()
    roll_up(make_engine(shared.settings.database_url), now_ms=NOW)
    shared.session.expire_all()
    for row in rows(shared, UnitBy.ENGINE):
        assert (row.cost_usd, row.usd_per_1m_tokens, row.j_per_token, row.usd_per_useful_gpu_h) == (None,) * 4
        assert row.data_quality == (SHARED,)
        assert row.tokens_output == 54_000


def test_rest_and_command_line_say_the_same(
    client: TestClient, filled_sqlite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for by in ("engine", "model", "owner"):
        items = client.get(f"/api/v1/unit-economics?by={by}").json()["items"]
        assert main(["unit-costs", "--by", by, "--json", "--database-url", filled_sqlite]) == 0
        out = capsys.readouterr().out
        assert [row["label"] for row in json.loads(out)] == [row["label"] for row in items]
    assert main(["unit-costs", "--database-url", filled_sqlite]) == 0
    out = capsys.readouterr().out
    assert "USD/M BLENDED" in out
    assert "needed" in out
    assert client.get("/api/v1/unit-economics?by=colour").status_code == 422
