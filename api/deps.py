"""What routes and pages are given: a session per request, the settings, and the scope of the question."""

from collections.abc import Iterator
from typing import Annotated, Any, cast

from fastapi import Depends, Query, Request
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from api.resources.scope import Scope, scope_of
from core.clock import now_ms as clock_ms
from core.settings import Settings
from store.engine import session_scope

SINCE: str = "Start of the window: a time (2026-10-05T14:00:00Z), a day, or an age before its end (7d, 24h); before now when until is an age too."
UNTIL: str = "End of the window: a time, a day, or an age before now. Default: the newest data."


def settings(request: Request) -> Settings:
    """Settings the application was made with."""
    return cast("Settings", request.app.state.settings)


def now_ms(request: Request) -> int:
    """Now, in epoch milliseconds; tests put a clock of their own into ``app.state.clock``."""
    clock: Any = getattr(request.app.state, "clock", clock_ms)
    return int(clock())


def session(request: Request) -> Iterator[Session]:
    """A session for this request; it commits once, before the answer leaves."""
    engine: Engine = request.app.state.engine
    with session_scope(engine) as opened:
        yield opened


SettingsDep = Annotated[Settings, Depends(settings)]
NowDep = Annotated[int, Depends(now_ms)]
# scope="function": the commit is part of the request; a failed one must not follow a 200.
SessionDep = Annotated[Session, Depends(session, scope="function")]


def scope(
    opened: SessionDep,
    given: SettingsDep,
    now: NowDep,
    since: Annotated[str | None, Query(description=SINCE, max_length=40)] = None,
    until: Annotated[str | None, Query(description=UNTIL, max_length=40)] = None,
) -> Scope:
    """Session, settings, now and window of one question."""
    return scope_of(opened, given, now, since, until)


ScopeDep = Annotated[Scope, Depends(scope, scope="function")]
