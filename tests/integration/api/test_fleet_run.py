"""A fleet judged by two processes: the same advice to the last bit, also when the second one dies."""

import json
import operator
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session

from advisor.limits_book import limits_book
from advisor.site_run import SiteRun
from api.resources import fleet_run
from api.resources.fleet_run import judge_fleet
from api.resources.scope import Scope, default_window
from core.clock import from_ms
from core.finding import Advice
from tests.integration.api.fleet_for_tests import NOW, fill, settings_for

ROOT = Path(__file__).parents[3]


def advice(scope: Scope, processes: int) -> Advice:
    rules = SiteRun(limits_book(scope.settings.rules), now=from_ms(scope.now_ms))
    judge_fleet(scope, rules, processes=processes, chunk_gpus=1)
    return rules.advice()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets this process judge only so many chunks before the second one is done."""
    judge = fleet_run.judge_here

    def only(most: int) -> None:
        turns = iter([most])

        def some(*known: Any) -> None:
            judge(*known, most=next(turns, None))

        monkeypatch.setattr(fleet_run, "judge_here", some)

    return only


@pytest.mark.parametrize("most", [0, 1])
def test_two_processes_say_what_one_says(filled_scope: Scope, here: Callable[[int], None], most: int) -> None:
    alone = advice(filled_scope, 1)
    assert alone.findings
    assert alone.not_evaluated
    here(most)
    assert advice(filled_scope, 2) == alone


@pytest.mark.parametrize("is_forked", [True, False])
def test_a_command_says_what_one_process_says_however_the_second_begins(
    ready_database: str, tmp_path: Path, *, is_forked: bool
) -> None:
    """In a process of its own: this one has threads, and is not forked."""
    fill(ready_database)
    script = tmp_path / "advise.py"
    script.write_text(COMMAND)
    said = subprocess.run(
        [sys.executable, str(script), ready_database, str(NOW), str(int(is_forked))],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert said.stderr == ""
    assert json.loads(said.stdout) == {"is_same": True, "found": True, "forked": is_forked}


COMMAND = """
import json, sys, threading
from dataclasses import replace

from api.resources import fleet_run
from store.engine import make_engine, session_scope
from tests.integration.api.fleet_for_tests import settings_for
from tests.integration.api.test_fleet_run import advice, whole

if __name__ == "__main__":
    url, now_ms, is_forked = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1"
    if not is_forked:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    with session_scope(make_engine(url)) as session:
        scope = whole(session, url, now_ms)
        alone = advice(scope, 1)
        judge, turns = fleet_run.judge_here, iter([0])
        fleet_run.judge_here = lambda *known, **_: judge(*known, most=next(turns, None))
        both = advice(scope, 2)
        again = advice(scope, 1)
    print(json.dumps({"is_same": alone == both == again, "found": bool(alone.findings), "forked": fleet_run.may_fork()}))
"""
"""Advises by one process, by two of which the second judges all, and by one again on the session that was open all along."""


def whole(session: Session, url: str, now_ms: int) -> Scope:
    """All that the database holds."""
    window = default_window(session, now_ms)
    assert window is not None
    return Scope(session, settings_for(url), now_ms, window)


def test_what_a_dead_process_left_is_judged_here_and_said(
    filled_scope: Scope,
    here: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    alone = advice(filled_scope, 1)
    here(0)
    monkeypatch.setattr(fleet_run, "judge_elsewhere", operator.truth)
    assert advice(filled_scope, 2) == alone
    assert "its share is judged by this one" in caplog.text
