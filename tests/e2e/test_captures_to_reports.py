"""Eight real vLLM runs: files in, reports out, the same to the last digit on both databases, stored or priced when asked."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest

from api.resources import costs, energy, funnel, usage, workloads
from api.resources.as_json import to_json
from api.resources.by import By
from api.resources.ledger_days import materialise
from api.resources.scope import scope_of
from core.settings import Settings
from gpuwise.__main__ import main
from store import ledger_totals
from store.engine import dispose_engine, make_engine, session_scope
from store.queries.hours import bounds

PAIRS = (["model", "day"], ["gpu", "activity"], ["workload", "hour"], ["engine", "month"])


@pytest.fixture
def both(
    tmp_path: Path, sqlite_template: Path, postgresql_server: str, postgresql_template: str
) -> Iterator[tuple[str, str]]:
    """A ready database of each kind."""
    path = tmp_path / "gpuwise.db"
    shutil.copyfile(sqlite_template, path)
    name = f"gpuwise_test_{uuid4().hex[:12]}"
    url = urlunsplit(urlsplit(postgresql_server)._replace(path=f"/{name}"))
    with closing(psycopg.connect(postgresql_server, autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {postgresql_template}".encode())
        yield f"sqlite:///{path}", url
        for used in (f"sqlite:///{path}", url):
            dispose_engine(used)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def reports(url: str) -> dict[str, Any]:
    """Every table by every key, as JSON."""
    with session_scope(make_engine(url)) as session:
        data = bounds(session)
        assert data is not None
        scope = scope_of(session, Settings(database_url=url), data.to_ms)
        found: dict[str, Any] = {"funnel": funnel.rows(scope), "workloads": workloads.rows(scope)}
        for by in (*([by.value] for by in By), *PAIRS):
            for table in (costs, usage, energy):
                found[f"{table.__name__} {by}"] = table.rows(scope, by)
        whole = sum((row.cost_usd or Decimal(0) for row in costs.rows(scope)), Decimal(0))
        for name, rows in found.items():
            if name.startswith(costs.__name__):
                assert sum((row.cost_usd or Decimal(0) for row in rows), Decimal(0)) == whole > 0, name
        return {name: to_json(rows) for name, rows in found.items()}


@pytest.mark.shared_data
@pytest.mark.timeout(240)
def test_real_captures_report_the_same_on_both_databases(
    shared_data: Path, both: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted((shared_data / "openmetrics").glob("*.prom.gz"))
    first: dict[str, Any] = {}
    for url in both:
        assert main(["import", "openmetrics", *map(str, files), "--database-url", url]) == 0
        capsys.readouterr()
        found = reports(url)
        first = first or found
        assert found == first
        engine = make_engine(url)
        with session_scope(engine) as session:
            data = bounds(session)
        assert data is not None
        assert materialise(engine, Settings(database_url=url), data.to_ms).pending_left == 0
        assert reports(url) == first
        assert ledger_totals.add_up(engine) > 0
        assert reports(url) == first
