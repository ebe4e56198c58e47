"""A fleet whose agents reported just now, for tests of alerts."""

import pytest
from sqlalchemy import Engine

from store.engine import make_engine
from tests.integration.api.fleet_for_tests import NOW, fill
from tests.integration.mail.alerts_for_tests import hear


@pytest.fixture
def fleet(ready_database: str) -> Engine:
    """Three GPUs on two hosts, whose agents reported just now."""
    fill(ready_database)
    engine = make_engine(ready_database)
    hear(engine, NOW, "h1", "h2")
    return engine
