"""Empty databases of both kinds for benchmarks; PostgreSQL from the same wheel as the tests', or one of your own."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from store.engine import dispose_engine
from store.schema import upgrade

TESTS = Path(__file__).resolve().parents[1] / "tests"
OWN_SERVER = "GPUWISE_TEST_DATABASE_URL"


@contextmanager
def sqlite() -> Iterator[str]:
    """Address of a new, upgraded SQLite database."""
    with TemporaryDirectory(prefix="gpuwise-bench-") as folder:
        url = f"sqlite:///{folder}/gpuwise.db"
        upgrade(url)
        try:
            yield url
        finally:
            dispose_engine(url)


@contextmanager
def postgresql_server() -> Iterator[str | None]:
    """Address of a server on which databases may be made; None where none can be had."""
    own = os.environ.get(OWN_SERVER)
    if own:
        yield own
        return
    sys.path.insert(0, str(TESTS))  # the helper lives with the tests: only they and this folder start servers
    from postgres_for_tests import NoPostgresError, running_server

    try:
        with running_server() as url:
            yield url
    except NoPostgresError as error:
        print(f"no PostgreSQL: {error}", file=sys.stderr)
        yield None


@contextmanager
def postgresql(server: str) -> Iterator[str]:
    """Address of a new, upgraded database on ``server``."""
    import psycopg

    name = f"gpuwise_bench_{uuid4().hex[:12]}"
    url = urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    with closing(psycopg.connect(server, autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        upgrade(url)
        try:
            yield url
        finally:
            dispose_engine(url)
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
