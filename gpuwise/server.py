"""The web process: uvicorn over the FastAPI application."""

import uvicorn

from api.app import create_app
from core.settings import Settings


def serve(settings: Settings) -> int:
    """Serve pages and REST until SIGTERM; finishes running requests first."""
    config = uvicorn.Config(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    uvicorn.Server(config).run()
    return 0
