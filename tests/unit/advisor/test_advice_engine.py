"""One failing rule is one failure; nothing is passed over in silence."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import pytest
from advice_builders import FORTNIGHT_H, engine, evidence, gpu, gpu_hours
from pydantic import ValidationError

from advisor.empty_streak import EmptyGpuLimits
from advisor.engine import advise, advise_chunks
from advisor.model import Limits, Verdict, counted
from advisor.rules import RULES, empty_gpu
from advisor.rules.small_batch import SmallBatchLimits
from core.activity import Activity
from core.evidence import Evidence
from core.finding import NotEvaluated, Subject

EMPTY = gpu(gpu_hours(FORTNIGHT_H, Activity.EMPTY))


def broken(evidence: Evidence, limits: Limits) -> Iterator[Verdict]:
    yield NotEvaluated("broken", Subject("gpu", "GPU-a"), ("x",), "first")
    raise ZeroDivisionError("half a division")


def repeating(evidence: Evidence, limits: Limits) -> Iterator[Verdict]:
    for _ in range(2):
        yield NotEvaluated("repeating", Subject("gpu", "GPU-a"), ("x",), "why")


def test_a_rule_that_raises_is_said_and_its_neighbours_go_on(caplog: pytest.LogCaptureFixture) -> None:
    bad = replace(empty_gpu.RULE, id="broken", evaluate=broken)
    with caplog.at_level(logging.ERROR):
        advice = advise(evidence([EMPTY]), rules=(bad, empty_gpu.RULE))
    assert [finding.rule_id for finding in advice.findings] == ["empty-gpu"]
    mine = [item for item in advice.not_evaluated if item.rule_id == "broken"]
    assert [item.subject.kind for item in mine] == ["gpu", "fleet"], "what it had said by then stays"
    assert "ZeroDivisionError: half a division" in mine[1].why
    assert any(record.message == "rule failed" for record in caplog.records)


def test_a_subject_gets_one_verdict_per_rule() -> None:
    twice = replace(empty_gpu.RULE, id="repeating", evaluate=repeating)
    assert len(advise(evidence([EMPTY]), rules=(twice,)).not_evaluated) == 1


LACKING = (
    NotEvaluated("lacking", Subject("fleet", "fleet"), ("engine metrics",), "No engine is seen."),
    counted("lacking", ("price",), 1, "One GPU has no price.", "{count} GPUs have no price."),
    counted("lacking", ("power_w",), 1, "One GPU tells no power.", "{count} GPUs tell no power."),
)


def lacking(evidence: Evidence, limits: Limits) -> Iterator[Verdict]:
    yield from LACKING


@pytest.mark.parametrize("scope", ["gpu", "fleet"])
def test_everything_that_is_missing_of_the_fleet_is_said_and_the_fleet_is_named_once(
    scope: Literal["gpu", "fleet"],
) -> None:
    rule = replace(empty_gpu.RULE, id="lacking", evaluate=lacking, scope=scope)
    chunks = [evidence([gpu(uuid=uuid, host=uuid)]) for uuid in ("GPU-a", "GPU-b")]
    (said,) = advise_chunks(chunks, rules=(rule,)).not_evaluated
    assert (said.subject.kind, said.subject.id) == ("fleet", "fleet")
    assert said.missing == ("engine metrics", "power_w", "price")
    many = "2 GPUs have no price." if scope == "gpu" else "One GPU has no price."
    assert said.why.startswith("No engine is seen. ")
    assert many in said.why


def test_no_data_at_all_is_said_by_every_rule() -> None:
    advice = advise(evidence())
    assert [item.rule_id for item in advice.not_evaluated] == [rule.id for rule in RULES]
    assert all(item.missing for item in advice.not_evaluated)


def test_limits_of_another_rule_are_refused() -> None:
    with pytest.raises(TypeError, match="EmptyGpuLimits"):
        advise(evidence([EMPTY]), limits={"empty-gpu": SmallBatchLimits()})


def test_a_limit_that_is_misspelt_or_out_of_bounds_is_refused() -> None:
    with pytest.raises(ValidationError, match="min_rentd_h"):
        EmptyGpuLimits.model_validate({"min_rentd_h": 5})
    with pytest.raises(ValidationError, match="min_coverage_ratio"):
        EmptyGpuLimits.model_validate({"min_coverage_ratio": 1.5})


def test_findings_come_with_the_most_money_first() -> None:
    busy = engine()
    fleet = evidence([EMPTY, gpu(uuid="GPU-b", host="node-2")], [replace(busy, gpu_uuids=("GPU-b",))])
    ids = [finding.rule_id for finding in advise(fleet).findings]
    assert ids[0] == "empty-gpu"
    assert len(ids) > 2


def test_every_finding_is_complete() -> None:
    busy = engine()
    parked = gpu(gpu_hours(FORTNIGHT_H, Activity.PARKED), uuid="GPU-c", host="node-3")
    fleet = evidence([EMPTY, gpu(uuid="GPU-b", host="node-2"), parked], [replace(busy, gpu_uuids=("GPU-b",))])
    findings = advise(fleet).findings
    assert {finding.rule_id for finding in findings} >= {
        "empty-gpu",
        "parked-model",
        "small-batch",
        "memory-bound-decode",
    }
    for finding in findings:
        assert {"window_from", "window_to", "coverage_ratio"} <= finding.evidence.keys()
        assert finding.title[0].isupper()
        assert finding.because.endswith(".")
        assert finding.wrong_when
        assert finding.actions
        assert finding.confidence
        assert not finding.saving.is_empty or finding.no_figure
        assert None not in finding.evidence.values() or finding.rule_id == "rent-or-buy"
