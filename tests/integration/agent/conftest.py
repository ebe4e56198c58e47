"""A server of pages, for tests of what is read over HTTP."""

from collections.abc import Iterator

import pytest
from page_server import PageServer, serving


@pytest.fixture
def server() -> Iterator[PageServer]:
    with serving() as running:
        yield running
