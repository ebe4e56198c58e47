"""The small fleet in a database of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database_copies import Copies, Kind
from tests.integration.api.fleet_for_tests import fill


@pytest.fixture
def filled_database(copies: Copies, database_kind: Kind, tmp_path: Path) -> Iterator[str]:
    """The small fleet, on each kind of database."""
    with copies.new(database_kind, tmp_path / "gpuwise.db", fill) as url:
        yield url
