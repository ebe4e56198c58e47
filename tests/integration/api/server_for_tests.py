"""gpuwise as a server in this process, on a port of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fleet_for_tests import settings_for

from api.app import create_app


class Running(uvicorn.Server):
    """A server in a thread; ``ready`` is set once it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@contextmanager
def serving(database_url: str) -> Iterator[str]:
    """Address of gpuwise over a database."""
    config = uvicorn.Config(create_app(settings_for(database_url)), port=0, log_level="error", lifespan="off")
    running = Running(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    assert running.ready.wait(20)
    yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
    running.should_exit = True
    thread.join(10)
