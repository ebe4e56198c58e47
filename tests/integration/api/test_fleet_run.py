"""A fleet judged by two processes: the same advice to the last bit, also when the second one dies."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

from advisor.limits_book import limits_book
from advisor.site_run import SiteRun
from api.resources import fleet_run
from api.resources.fleet_run import judge_fleet
from api.resources.scope import Scope
from core.clock import from_ms
from core.finding import Advice


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
