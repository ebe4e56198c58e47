"""Log lines: a constant sentence, then its fields. Text for people, JSON lines where a machine reads (``GPUWISE_LOG=json``)."""

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


class TextFormatter(logging.Formatter):
    """``2026-11-21T10:00:00Z WARNING gpu lost gpu_uuid=GPU-…``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the traceback below it when there is one."""
        fields = "".join(f" {key}={value}" for key, value in _fields(record).items())
        line = (
            f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')} {record.levelname} {record.getMessage()}{fields}"
        )
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, logger, event, fields, and the traceback when there is one."""
        entry: dict[str, object] = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def set_up(level: int = logging.INFO) -> None:
    """Send logs to stderr; called once by each process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if os.environ.get("GPUWISE_LOG") == "json" else TextFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for chatty in ("apscheduler", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


@contextmanager
def silenced(name: str) -> Iterator[None]:
    """Lines of one logger stay away: whoever asked is told the same in a sentence."""
    logger = logging.getLogger(name)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
