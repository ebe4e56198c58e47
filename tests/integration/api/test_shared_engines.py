"""Engines that share a GPU: nothing measures whose money and energy it is."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from fleet_for_tests import ENGINE, NOW, A, B, engine_samples, fill, settings_for

from api.resources import engines
from api.resources.scope import Scope, scope_of
from core.readings import EngineIdentity
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.rollup import roll_up

BESIDE = {"h1:8001/0": A, "h1:8002/0": A, "h1:8003/0": B}


@pytest.fixture
def crowded(ready_database: str) -> Iterator[Scope]:
    """The small fleet with two more engines on the first engine's GPU, and one on another."""
    fill(ready_database)
    with closing(open_connection(ready_database)) as connection:
        ingest = Ingest(connection)
        ingest.engines(
            [EngineIdentity(name, "h1", "vllm", "acme/b", {}, (uuid,)) for name, uuid in BESIDE.items()]
        )
        ingest.engine_samples(replace(one, engine=name) for name in BESIDE for one in engine_samples())
        ingest.commit()
    engine = make_engine(ready_database)
    roll_up(engine, now_ms=NOW)
    with session_scope(engine) as session:
        yield scope_of(session, settings_for(ready_database), NOW)


def test_engines_that_share_a_gpu_are_not_each_charged_for_all_of_it(crowded: Scope) -> None:
    shared = [row for row in engines.rows(crowded) if row.gpu_uuids == (A,)]
    assert len(shared) == 3
    assert {(row.usd_per_million_tokens, row.tokens_per_j, row.price_basis) for row in shared} == {
        (None, None, None)
    }
    said = "shares its GPU with 2 other engines: cost and energy are not split here"
    assert all(said in row.data_quality for row in shared)


def test_an_engine_alone_on_its_gpu_keeps_its_figures(crowded: Scope) -> None:
    (alone,) = (row for row in engines.rows(crowded) if row.gpu_uuids == (B,))
    assert alone.usd_per_million_tokens is not None
    assert alone.tokens_per_j is not None
    assert not any("are not split here" in said for said in alone.data_quality)


def test_a_neighbour_that_was_not_seen_in_the_window_shares_nothing(ready_database: str) -> None:
    fill(ready_database)
    with closing(open_connection(ready_database)) as connection:
        ingest = Ingest(connection)
        ingest.engines([EngineIdentity("h1:8001/0", "h1", "vllm", "acme/b", {}, (A,))])
        ingest.commit()
    with session_scope(make_engine(ready_database)) as session:
        rows = engines.rows(scope_of(session, settings_for(ready_database), NOW))
    assert [(row.engine, row.usd_per_million_tokens is None) for row in rows] == [(ENGINE, False)]
