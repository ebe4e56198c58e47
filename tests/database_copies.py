"""Databases of the tests: what many begin with is filled once in a worker, and copied for each."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from store import schema
from store.engine import dispose_engine

Kind: TypeAlias = Literal["sqlite", "postgresql"]
Step: TypeAlias = Callable[[str], object]
"""Puts something into the database at an address."""


class Copies:
    """New databases, each copied from one with the same in it.

    Args:
        folder: where SQLite's templates lie. server: starts PostgreSQL when it is first asked for, and gives the address
            of a database from which others are made.
    """

    def __init__(self, folder: Path, server: Callable[[], str]) -> None:
        """Nothing is made yet."""
        self._folder = folder
        self._server = server
        self._templates: dict[tuple[Kind, tuple[Step, ...]], str] = {}

    @contextmanager
    def new(self, kind: Kind, path: Path, *steps: Step) -> Iterator[str]:
        """Address of a database with all tables in which these steps were done, in this order; SQLite's is at ``path``."""
        template = self.template(kind, *steps)
        if kind == "sqlite":
            shutil.copyfile(template, path)
            url = f"sqlite:///{path}"
            yield url
            dispose_engine(url)
            return
        with self.empty_postgresql(f"TEMPLATE {template} STRATEGY FILE_COPY") as url:
            yield url

    @contextmanager
    def empty_postgresql(self, made_from: str = "") -> Iterator[str]:
        """Address of a new database on the server, dropped at the end."""
        name = f"gpuwise_test_{uuid4().hex[:12]}"
        self._administer(f"CREATE DATABASE {name} {made_from}")
        url = self._named(name)
        yield url
        dispose_engine(url)
        self._administer(f"DROP DATABASE {name} WITH (FORCE)")

    def template(self, kind: Kind, *steps: Step) -> str:
        """Path, or name on the server, of a database with all tables in which these steps were done: copy it only."""
        key = (kind, steps)
        if key not in self._templates:
            self._templates[key] = self._made(kind, steps)
        return self._templates[key]

    def _made(self, kind: Kind, steps: tuple[Step, ...]) -> str:
        before = self.template(kind, *steps[:-1]) if steps else None
        name = f"gpuwise_template_{uuid4().hex[:12]}"
        if kind == "sqlite":
            made = str(self._folder / f"{name}.db")
            url = f"sqlite:///{made}"
            if before is not None:
                shutil.copyfile(before, made)
        else:
            made, url = name, self._named(name)
            self._administer(f"CREATE DATABASE {name}" + ("" if before is None else f" TEMPLATE {before}"))
        if steps:
            steps[-1](url)
        else:
            schema.upgrade(url)
        dispose_engine(url)  # SQLite's log goes into the file; PostgreSQL copies nothing that is open
        return made

    def _named(self, database: str) -> str:
        return urlunsplit(urlsplit(self._server())._replace(path=f"/{database}"))

    def _administer(self, statement: str) -> None:
        import psycopg

        with closing(psycopg.connect(self._server(), autocommit=True)) as connection:
            connection.execute(statement.encode())
