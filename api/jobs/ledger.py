"""Price the days that changed, every five minutes."""

from typing import Final

from sqlalchemy import Engine

from api.jobs.model import Job
from api.resources.ledger_days import materialise
from core.settings import Settings
from store import ledger_totals


def run(engine: Engine, settings: Settings, now_ms: int) -> str:
    """Write the ledger's lines of every marked day."""
    done = materialise(engine, settings, now_ms)
    if done.busy:
        return "another process writes the ledger"
    ledger_totals.add_up(engine)
    said = f"{done.gpu_days} GPU-days, {done.lines} lines"
    if done.corrections:
        said += f", {done.corrections} corrections of closed months"
    return f"{said}; {done.pending_left} GPU-days wait" if done.pending_left else said


LEDGER: Final = Job("ledger", "Price the days that changed.", lambda _settings: {"minute": "2-59/5"}, run)
