"""A fleet to report on, and one whose agents reported just now, for tests of alerts."""

import pytest
from sqlalchemy import Engine

from store.engine import make_engine
from tests.integration.api.fleet_for_tests import NOW
from tests.integration.mail.alerts_for_tests import hear


@pytest.fixture
def filled(filled_database: str) -> Engine:
    """A database with three GPUs and two hours."""
    return make_engine(filled_database)


@pytest.fixture
def fleet(filled_database: str) -> Engine:
    """Three GPUs on two hosts, whose agents reported just now."""
    engine = make_engine(filled_database)
    hear(engine, NOW, "h1", "h2")
    return engine
