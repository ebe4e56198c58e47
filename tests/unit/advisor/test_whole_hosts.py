"""What is said of every GPU of a host is said once."""

import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, PRICE, claim, evidence, found, gpu, gpu_hour, gpu_hours, refused

from advisor.limits_book import limits_book
from advisor.roster import Roster
from advisor.rules import RULES
from advisor.site_run import SiteRun
from advisor.whole_hosts import merged
from core.activity import Activity
from core.evidence import GpuEvidence
from core.finding import Advice, Finding, Subject
from core.rule_settings import parse
from core.units import HOURS_PER_MONTH

RULE = "empty-gpu"
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def card(
    index: int, activity: Activity = Activity.EMPTY, count: int = FORTNIGHT_H, known: int = 3
) -> GpuEvidence:
    one = gpu(
        gpu_hours(count, activity, start=FORTNIGHT_H - count), uuid=f"GPU-{index}", host_gpu_count=known
    )
    return replace(one, identity=replace(one.identity, index=index))


def run(*cards: GpuEvidence, text: dict[str, Any] | None = None, followed: tuple[str, ...] = ()) -> Advice:
    site = SiteRun(limits_book(parse(text or {}, "gpuwise.toml")), now=NOW, followed=followed)
    site.feed(evidence(cards, hours=FORTNIGHT_H))
    return site.advice()


def subjects(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(one.subject.kind, one.subject.id) for one in findings]


def test_an_empty_host_is_one_finding_with_what_its_gpus_save_together() -> None:
    (made,) = found(run(card(0), card(1), card(2)), RULE)
    assert (made.subject.kind, made.subject.id) == ("host", "node-1")
    assert made.title == "Release node-1: all of its 3 GPUs are empty"
    assert made.saving.cash_usd_month is not None
    assert made.saving.cash_usd_month.p50 == pytest.approx(3 * 2.5 * HOURS_PER_MONTH)
    assert made.gpu_uuids == ("GPU-0", "GPU-1", "GPU-2")
    assert made.evidence["gpu_uuids"] == ["GPU-0", "GPU-1", "GPU-2"]
    assert made.evidence["empty_h"] == FORTNIGHT_H
    assert made.evidence["coverage_ratio"] == 1.0
    look = made.actions[0]
    assert look.command is not None
    assert look.command.startswith("nvidia-smi -i GPU-0,GPU-1,GPU-2 --query-compute-apps=")
    assert "\n" not in look.command


def test_totals_are_those_of_the_gpus_one_by_one() -> None:
    cards = card(0), card(1), card(2)
    alone = {found.fingerprint for found in found_alone(*cards)}
    whole, parts = run(*cards), run(*cards, followed=tuple(alone))
    assert len(found(parts, RULE)) == 3
    assert whole.totals == parts.totals


def found_alone(*cards: GpuEvidence) -> list[Finding]:
    return [one for card in cards for one in found(run(card), RULE)]


def test_what_differs_is_told_by_gpu_and_the_least_sure_word_counts() -> None:
    (made,) = found(run(card(0), card(1), card(2, count=48)), RULE)
    assert made.evidence["empty_h"] == [FORTNIGHT_H, FORTNIGHT_H, 48.0]
    assert "for the last 2 days of samples" in made.because
    assert made.is_short_of_data


@pytest.mark.parametrize(
    "cards",
    [
        (card(0), card(1), card(2, Activity.BUSY)),
        (card(0), card(1)),
        (card(0, known=1),),
    ],
    ids=["one at work", "one without data", "the only one"],
)
def test_less_than_the_whole_host_stays_by_gpu(cards: tuple[GpuEvidence, ...]) -> None:
    findings = found(run(*cards), RULE)
    assert {kind for kind, _ in subjects(findings)} == {"gpu"}


def nightly(uuid: str, begin: int = 20) -> GpuEvidence:
    """Off from ``begin`` to six."""
    weeks = 4 * 168
    hours = [
        gpu_hour(i, Activity.EMPTY if i % 24 >= begin or i % 24 < 6 else Activity.BUSY) for i in range(weeks)
    ]
    return gpu(hours, uuid=uuid, host_gpu_count=2, price=replace(PRICE, gpus_per_unit=2))


def nights_of(*cards: GpuEvidence, billing: str = "on_demand") -> list[Finding]:
    site = SiteRun(limits_book(parse({}, "gpuwise.toml")), now=NOW)
    price = replace(PRICE, gpus_per_unit=2, billing=billing)
    site.feed(evidence([replace(card, price=price) for card in cards]))
    return found(site.advice(), "off-hours")


@pytest.mark.parametrize("billing", ["on_demand", "owned"])
def test_off_hours_that_a_host_has_in_common_are_one_finding(billing: str) -> None:
    (made,) = nights_of(nightly("GPU-0"), nightly("GPU-1"), billing=billing)
    assert made.title == "Switch node-1 with its 2 GPUs off in 70 of 168 hours a week"
    assert made.evidence["off_h_week"] == 70
    assert made.evidence["gpu_uuids"] == ["GPU-0", "GPU-1"]
    assert len(made.actions) == 3, "the same clock for both is said once"
    assert (made.saving.cash_usd_month is None) == (billing == "owned")
    assert made.saving.capacity_gpu_h_month is not None
    assert made.saving.capacity_gpu_h_month.p50 > 2 * 60 * 730 / 168


def test_gpus_whose_hours_differ_by_little_go_together_and_say_how() -> None:
    (made,) = nights_of(nightly("GPU-0"), nightly("GPU-1", begin=21))
    assert "off in 63 of 168" in made.title
    assert made.evidence["off_h_week"] == [70, 63]


def test_gpus_with_other_hours_stay_apart() -> None:
    assert len(nights_of(nightly("GPU-0", begin=14), nightly("GPU-1"))) == 2


def test_hosts_do_not_mix() -> None:
    pairs = [
        replace(card(i, known=2), identity=replace(card(i).identity, host=f"node-{i % 2}")) for i in range(4)
    ]
    assert sorted(subjects(found(run(*pairs), RULE))) == [("host", "node-0"), ("host", "node-1")]


def test_a_gpu_that_somebody_set_aside_keeps_its_finding_and_its_neighbours_theirs() -> None:
    own = found_alone(card(1))[0].fingerprint
    findings = found(run(card(0), card(1), card(2), followed=(own,)), RULE)
    assert subjects(findings) == [("gpu", f"GPU-{i}") for i in range(3)]


def test_a_host_that_somebody_set_aside_does_not_return_gpu_by_gpu() -> None:
    """One of three has worked since: nothing is new about the others."""
    why = "Part of recommendation 7 about node-1, which is dismissed."
    covered = {(RULE, "empty", f"GPU-{at}"): why for at in range(3)}
    site = SiteRun(limits_book(parse({}, "gpuwise.toml")), now=NOW, covered=covered)
    site.feed(evidence([card(0), card(1), card(2, Activity.BUSY)], hours=FORTNIGHT_H))
    made = site.advice()
    assert not found(made, RULE)
    assert [(one.subject.id, one.why) for one in refused(made, RULE)] == [("GPU-0", why), ("GPU-1", why)]
    whole = SiteRun(limits_book(parse({}, "gpuwise.toml")), now=NOW, covered=covered)
    whole.feed(evidence([card(0), card(1), card(2)], hours=FORTNIGHT_H))
    assert subjects(found(whole.advice(), RULE)) == [("host", "node-1")], "its own fingerprint is followed"


def test_a_gpu_that_is_excluded_keeps_the_others_apart_and_a_whole_host_is_excluded_as_one() -> None:
    until = {"until": "2026-12-04", "reason": "spare"}
    some = run(card(0), card(1), card(2), text={"exclusion": [{"gpu": "GPU-1", **until}]})
    assert subjects(found(some, RULE)) == [("gpu", "GPU-0"), ("gpu", "GPU-2")]
    everything = run(card(0), card(1), card(2), text={"exclusion": [{"host": "node-1", **until}]})
    assert not found(everything, RULE)
    assert ("host", "node-1") in [(one.subject.kind, one.subject.id) for one in refused(everything, RULE)]


def test_a_threshold_of_one_gpu_still_holds_for_it() -> None:
    text = {"rules": {"scope": [{"rule": RULE, "gpu": "GPU-1", "min_rented_h": 800.0}]}}
    assert subjects(found(run(card(0), card(1), card(2), text=text), RULE)) == [
        ("gpu", "GPU-0"),
        ("gpu", "GPU-2"),
    ]


def test_words_that_fail_leave_the_findings_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    bare = [claim(RULE, subject=Subject("gpu", uuid), evidence={}) for uuid in ("GPU-0", "GPU-1")]
    roster = Roster()
    roster.add(evidence([card(0, known=2), card(1, known=2)]))
    with caplog.at_level(logging.ERROR):
        assert merged(bare, roster, RULES) == bare
    assert [record.message for record in caplog.records] == ["rule failed"]


def test_every_rule_that_speaks_of_hosts_can() -> None:
    assert {rule.id for rule in RULES if rule.of_host} == {"empty-gpu", "off-hours"}
