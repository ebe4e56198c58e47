"""Run the rules over the last 30 days of data and record what they find, every hour; and learn what engines can reach."""

from typing import Final

from sqlalchemy import Engine

from api.jobs.model import Job
from api.resources import advise, engine_reach
from api.resources.scope import Scope, default_window
from core.settings import Settings
from store.engine import session_scope


def run(engine: Engine, settings: Settings, now_ms: int) -> str:
    """Evidence from the store, findings into the store."""
    with session_scope(engine) as session:
        window = default_window(session, now_ms)
        if window is None:
            return "no data yet"
        scope = Scope(session, settings, now_ms, window)
        view = advise.run(scope, record=True)
        engine_reach.learn(scope)
        return f"{len(view.recommendations)} recommendations, {len(view.not_evaluated)} not evaluated"


ADVICE: Final = Job(
    "advice", "Run the rules and record what they find.", lambda _settings: {"minute": "7"}, run
)
