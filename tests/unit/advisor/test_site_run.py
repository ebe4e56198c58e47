"""Thresholds of parts of the fleet, exclusions with an end, the least saving worth a word."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
from advice_builders import claim, evidence, gpu
from pydantic import Field

from advisor.limits_book import limits_book
from advisor.model import Limits, Rule
from advisor.rules import RULES
from advisor.site_run import SiteRun
from core.errors import SettingsError
from core.evidence import Evidence, GpuEvidence, WorkloadUse
from core.finding import (
    Advice,
    Effort,
    Finding,
    NotEvaluated,
    Range,
    Risk,
    Saving,
    Subject,
)
from core.ownership import Owner
from core.readings import WorkloadKey
from core.rule_settings import parse

NOW = datetime(2026, 12, 1, tzinfo=UTC)


class ClaimLimits(Limits):
    least_index: Annotated[int, Field(ge=0)] = 0
    usd: Annotated[float, Field(gt=0)] = 100.0


def judge(seen: Evidence, limits: Any) -> Iterator[Finding | NotEvaluated]:
    for one in seen.gpus:
        subject = Subject("gpu", one.gpu_uuid)
        if (one.identity.index or 0) < limits.least_index:
            yield NotEvaluated("claim", subject, (), "index too low")
            continue
        yield claim(
            "claim",
            subject=subject,
            saving=Saving(cash_usd_month=Range.around(limits.usd, 0.1)),
            gpu_uuids=(one.gpu_uuid,),
            stage="stop",
        )


RULE = Rule("claim", "R00", "", frozenset(), ClaimLimits(), Effort.LOW, Risk.LOW, (), judge)


def card(uuid: str, host: str, user: str = "ann", namespace: str = "ml") -> GpuEvidence:
    one = gpu(uuid=uuid, host=host)
    workload = WorkloadKey("pod", uuid, "p", user, host, (("namespace", namespace),))
    return replace(
        one,
        uses=(WorkloadUse(workload, 0, 1, 3600.0, 0.0),),
    )


FLEET = (card("GPU-1", "dev-1"), card("GPU-2", "prod-1", "bob", "web"), card("GPU-3", "prod-2"))


def owner_of(workload: WorkloadKey | None, host: str | None, at_ms: int) -> Owner | None:
    """Everything idle on dev hosts is the floor's; what is in a web namespace a team's."""
    if workload is None:
        return Owner("floor") if host == "dev-1" else None
    return Owner("team-web", "shop") if ("namespace", "web") in workload.attributes else None


def advice(text: dict[str, Any], least_usd: float = 0.0) -> tuple[Advice, SiteRun]:
    run = SiteRun(
        limits_book(parse(text, "gpuwise.toml"), [RULE]),
        now=NOW,
        min_saving_usd_month=least_usd,
        rules=[RULE],
        owner_of=owner_of,
    )
    for one in FLEET:
        run.feed(evidence([one]))
    return run.advice(), run


def figures(made: Advice) -> dict[str, float]:
    return {
        one.subject.id: one.saving.cash_usd_month.p50
        for one in made.findings
        if one.saving.cash_usd_month is not None
    }


def test_a_threshold_of_the_fleet_holds_everywhere() -> None:
    made, _ = advice({"rules": {"claim": {"usd": 70.0}}})
    assert figures(made) == {"GPU-1": 70.0, "GPU-2": 70.0, "GPU-3": 70.0}


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ({"host": "dev-*"}, {"GPU-1"}),
        ({"gpu": "GPU-3"}, {"GPU-3"}),
        ({"user": "bob"}, {"GPU-2"}),
        ({"owner": "team-w*"}, {"GPU-2"}),
        ({"owner": "team-web / shop"}, {"GPU-2"}),
        ({"owner": "floor"}, {"GPU-1"}),
        ({"label": "namespace=m*"}, {"GPU-1", "GPU-3"}),
        ({"host": "prod-*", "user": "ann"}, {"GPU-3"}),
        ({"engine": "*"}, set()),
    ],
)
def test_a_threshold_of_a_part_holds_there_alone(selector: dict[str, str], chosen: set[str]) -> None:
    made, _ = advice({"rules": {"scope": [{"rule": "claim", "usd": 30.0, **selector}]}})
    assert {uuid for uuid, usd in figures(made).items() if usd == 30.0} == chosen
    assert len(figures(made)) == 3


def test_the_last_table_that_fits_wins_and_the_rest_comes_from_the_fleet() -> None:
    scopes = [{"rule": "claim", "host": "*", "usd": 40.0}, {"rule": "claim", "host": "dev-1", "usd": 60.0}]
    made, _ = advice({"rules": {"claim": {"usd": 50.0}, "scope": scopes}})
    assert figures(made) == {"GPU-1": 60.0, "GPU-2": 40.0, "GPU-3": 40.0}


def test_a_part_where_the_rule_says_no_says_it_there() -> None:
    made, _ = advice({"rules": {"scope": [{"rule": "claim", "host": "dev-1", "least_index": 9}]}})
    assert set(figures(made)) == {"GPU-2", "GPU-3"}
    assert [(one.subject.id, one.why) for one in made.not_evaluated] == [("GPU-1", "index too low")]


def test_what_is_excluded_is_listed_with_its_end() -> None:
    spare = {"gpu": "GPU-2", "until": "2026-12-04", "reason": "hot spare until Friday"}
    made, run = advice({"exclusion": [spare]})
    assert set(figures(made)) == {"GPU-1", "GPU-3"}
    (said,) = made.not_evaluated
    assert (said.subject.id, said.why) == ("GPU-2", "Excluded until 2026-12-04: hot spare until Friday.")
    assert [one.finding.subject.id for one in run.left_out] == ["GPU-2"]


def test_an_exclusion_that_ended_or_is_of_another_rule_leaves_nothing_out() -> None:
    ended = {"gpu": "GPU-2", "until": "2026-11-30", "reason": "spare"}
    assert len(figures(advice({"exclusion": [ended]})[0])) == 3


def test_a_saving_too_small_for_a_word_is_said_as_left_out() -> None:
    text = {"rules": {"scope": [{"rule": "claim", "gpu": "GPU-1", "usd": 12.5}]}}
    made, _ = advice(text, least_usd=20.0)
    assert set(figures(made)) == {"GPU-2", "GPU-3"}
    assert made.not_evaluated[0].why == (
        "It would save $12.50 a month: less than minimum_saving_usd_month ($20.00)."
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ({"rules": {"small-bath": {}}}, r"\[rules.small-bath\]: there is no rule 'small-bath'"),
        ({"rules": {"small-batch": {"min_gian": 2}}}, "setting rules.small-batch.min_gian: there is no such"),
        ({"rules": {"small-batch": {"min_gain": 0.5}}}, "setting rules.small-batch.min_gain is 0.5"),
        ({"rules": {"small-batch": {"min_gain": "big"}}}, "setting rules.small-batch.min_gain is 'big'"),
        (
            {"rules": {"scope": [{"rule": "small-batch", "host": "a", "min_gain": 0.5}]}},
            r"\[\[rules.scope\]\] 1.min_gain is 0.5",
        ),
        (
            {"exclusion": [{"rule": "nope", "host": "a", "until": "2026-12-04", "reason": "x"}]},
            "there is no rule 'nope'",
        ),
    ],
)
def test_a_bad_value_fails_at_start_and_names_its_key(text: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        limits_book(parse(text, "gpuwise.toml"), RULES)
