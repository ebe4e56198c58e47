"""What two rules say of the same replicas is one card."""

from dataclasses import replace

from advice_builders import claim

from advisor.said_twice import said_once
from core.finding import Finding, Subject


def said(rule_id: str, engine: str, cause: str, **evidence: object) -> Finding:
    return replace(claim(rule_id), subject=Subject("engine", engine, engine), cause=cause, evidence=evidence)


GROUP = said("too-many-replicas", "b:1", "replicas", replicas=["a:1", "b:1"])
OF_A = said("small-batch", "a:1", "demand")
OF_B = said("small-batch", "b:1", "demand")


def test_the_rule_of_the_group_speaks_for_its_replicas() -> None:
    assert said_once([OF_A, GROUP, OF_B]) == [GROUP]


def test_alone_each_engine_has_its_own_finding() -> None:
    assert said_once([OF_A, OF_B]) == [OF_A, OF_B]


def test_engines_outside_the_group_and_other_causes_stay() -> None:
    other, limit = said("small-batch", "c:1", "demand"), said("small-batch", "a:1", "configuration")
    assert said_once([GROUP, other, limit]) == [GROUP, other, limit]


def test_what_somebody_took_a_step_on_stays() -> None:
    assert said_once([GROUP, OF_A], {OF_A.fingerprint}) == [GROUP, OF_A]
