"""A recorded run of the rules says nothing about what had no data."""

from dataclasses import replace

import pytest
from fleet_for_tests import A

from advisor.engine import AdviceRun
from api.resources import advise
from api.resources.scope import Scope
from core.finding import Advice, Effort, Finding, Grade, Risk, Saving, Status, Subject, Totals
from store.queries import recommendations

TOTALS = Totals(None, None, None, None)
OF_A = Finding(
    rule_id="empty-gpu",
    subject=Subject("gpu", A),
    cause="empty",
    title="Release it",
    because="Empty for 30 h.",
    state="empty",
    confidence="measured",
    grade=Grade.A,
    effort=Effort.LOW,
    risk=Risk.LOW,
    saving=Saving(),
    evidence={},
    actions=(),
    wrong_when="It is a spare.",
)
OF_SILENT = (
    replace(OF_A, subject=Subject("gpu", "GPU-silent")),
    replace(OF_A, subject=Subject("engine", "h9:8000/0")),
)


def test_a_run_ends_the_findings_of_what_it_saw_and_no_others(
    filled_scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Advice((OF_A, *OF_SILENT), (), TOTALS)
    recommendations.record(filled_scope.session, before, filled_scope.now_ms - 1)

    class Silent(AdviceRun):
        def advice(self) -> Advice:
            return Advice((), (), TOTALS)

    monkeypatch.setattr("advisor.site_run.AdviceRun", Silent)
    advise.run(filled_scope, record=True)
    after = {item.finding.subject.id: item.status for item in recommendations.listing(filled_scope.session)}
    assert after == {A: Status.GONE, "GPU-silent": Status.OPEN, "h9:8000/0": Status.OPEN}
