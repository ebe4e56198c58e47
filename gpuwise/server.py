"""The web process: uvicorn over the FastAPI application."""

import socket
import sys
from typing import Final

import uvicorn

from api.app import create_app
from api.live_hub import LiveHub
from core.collector import settle
from core.settings import Settings

SWITCH_S: Final = 0.0005
"""A tenth of Python's own: ``bench/ingest_server.py`` stores a sixth more deliveries with it."""
KEEP_ALIVE_S: Final = 75
"""Agents deliver every 10 s: with uvicorn's 5 s each delivery would find its connection closed."""


class Server(uvicorn.Server):
    """Ends live views first: they would hold it up for the whole time it leaves to running requests."""

    def __init__(self, config: uvicorn.Config, live: LiveHub) -> None:
        super().__init__(config)
        self._live = live

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """On the way down after SIGTERM."""
        self._live.close()
        await super().shutdown(sockets)


def serve(settings: Settings) -> int:
    """Serve pages and REST until SIGTERM; finishes running requests first."""
    # A thread that stores a delivery holds Python for up to this long while the web server has only bytes to move.
    sys.setswitchinterval(SWITCH_S)
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=KEEP_ALIVE_S,
    )
    settle()
    Server(config, app.state.live).run()
    return 0
