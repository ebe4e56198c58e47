"""The web process: uvicorn over the FastAPI application."""

import sys
from typing import Final

import uvicorn

from api.app import create_app
from core.settings import Settings

SWITCH_S: Final = 0.0005
"""A tenth of Python's own: ``bench/ingest_server.py`` stores a sixth more deliveries with it."""
KEEP_ALIVE_S: Final = 75
"""Agents deliver every 10 s: with uvicorn's 5 s each delivery would find its connection closed."""


def serve(settings: Settings) -> int:
    """Serve pages and REST until SIGTERM; finishes running requests first."""
    # A thread that stores a delivery holds Python for up to this long while the web server has only bytes to move.
    sys.setswitchinterval(SWITCH_S)
    config = uvicorn.Config(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=KEEP_ALIVE_S,
    )
    uvicorn.Server(config).run()
    return 0
