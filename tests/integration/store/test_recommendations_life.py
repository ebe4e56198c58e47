"""Findings followed over time, on both databases."""

from dataclasses import replace

import pytest
from sqlalchemy.orm import Session

from core.errors import StoreError
from core.finding import (
    Advice,
    Effort,
    Finding,
    Grade,
    NotEvaluated,
    Range,
    Risk,
    Saving,
    Status,
    Subject,
    Totals,
)
from store.queries import recommendations as kept

HOUR = 3_600_000
DAY = 24 * HOUR
T0 = 1_791_158_400_000
TOTALS = Totals(None, None, None, None)
FINDING = Finding(
    rule_id="empty-gpu",
    subject=Subject("gpu", "GPU-a", "GPU 0 on h1"),
    cause="empty",
    title="Release GPU 0",
    because="Empty for 30 h.",
    state="empty",
    confidence="measured",
    grade=Grade.A,
    effort=Effort.LOW,
    risk=Risk.LOW,
    saving=Saving(),
    evidence={"empty_h": 30.0},
    actions=(),
    wrong_when="It is a spare.",
)


def run(session: Session, day: int, *findings: Finding, not_evaluated: tuple[NotEvaluated, ...] = ()) -> None:
    run_at(session, T0 + day * DAY, *findings, not_evaluated=not_evaluated)


def run_at(
    session: Session, at_ms: int, *findings: Finding, not_evaluated: tuple[NotEvaluated, ...] = ()
) -> None:
    kept.record(session, Advice(findings, not_evaluated, TOTALS), at_ms)
    session.commit()


def test_findings_on_every_gpu_of_a_host_close_as_part_of_the_hosts(session: Session) -> None:
    parts = [replace(FINDING, subject=Subject("gpu", uuid), gpu_uuids=(uuid,)) for uuid in ("GPU-a", "GPU-b")]
    whole = replace(FINDING, subject=Subject("host", "h1", "h1"), gpu_uuids=("GPU-a", "GPU-b"))
    run(session, 0, *parts)
    run(session, 1, whole)
    by_kind = {(one.finding.subject.kind, one.finding.subject.id): one for one in kept.listing(session)}
    assert {key: one.status for key, one in by_kind.items()} == {
        ("gpu", "GPU-a"): Status.GONE,
        ("gpu", "GPU-b"): Status.GONE,
        ("host", "h1"): Status.OPEN,
    }
    assert (
        kept.events(session, by_kind["gpu", "GPU-a"].id)[-1].note == "part of what is found of h1 as a whole"
    )
    run(session, 2, parts[0])
    assert {one.finding.subject.id for one in kept.listing(session, [Status.OPEN])} == {"GPU-a"}


def test_a_silent_host_is_not_taken_as_mended(session: Session) -> None:
    whole = replace(FINDING, subject=Subject("host", "h1", "h1"), gpu_uuids=("GPU-a", "GPU-b"))
    run(session, 0, whole)
    empty = Advice((), (), TOTALS)
    kept.record(session, empty, T0 + DAY, {("gpu", "GPU-z")})
    assert only(session).status is Status.OPEN
    kept.record(session, empty, T0 + 2 * DAY, {("gpu", "GPU-b")})
    assert only(session).status is Status.GONE


def only(session: Session) -> kept.Recommendation:
    (found,) = kept.listing(session)
    return found


def life(session: Session) -> list[tuple[Status | None, Status]]:
    return [(event.before, event.status) for event in kept.events(session, only(session).id)]


def test_a_finding_opens_a_recommendation(session: Session) -> None:
    run(session, 0, FINDING)
    found = only(session)
    assert (found.finding, found.status, found.note) == (FINDING, Status.OPEN, None)
    assert (found.opened_at_ms, found.seen_at_ms, found.snoozed_until_ms) == (T0, T0, None)
    assert life(session) == [(None, Status.OPEN)]
    assert kept.get(session, found.id) == found


def test_found_again_it_is_the_same_one_with_the_newest_figures(session: Session) -> None:
    run(session, 0, FINDING)
    newer = replace(FINDING, because="Empty for 54 h.", evidence={"empty_h": 54.0})
    run(session, 1, newer)
    found = only(session)
    assert (found.finding, found.opened_at_ms, found.seen_at_ms) == (newer, T0, T0 + DAY)
    assert life(session) == [(None, Status.OPEN)]


def test_another_cause_is_another_recommendation(session: Session) -> None:
    run(session, 0, FINDING, replace(FINDING, cause="drained"))
    assert len(kept.listing(session)) == 2


def test_no_longer_found_it_is_gone_and_found_again_it_is_open(session: Session) -> None:
    run(session, 0, FINDING)
    run(session, 1)
    assert only(session).status is Status.GONE
    run(session, 2, FINDING)
    assert only(session).status is Status.OPEN
    assert life(session) == [(None, Status.OPEN), (Status.OPEN, Status.GONE), (Status.GONE, Status.OPEN)]


def test_a_rule_that_could_not_judge_leaves_its_finding_open(session: Session) -> None:
    run(session, 0, FINDING)
    silent = NotEvaluated(FINDING.rule_id, Subject("gpu", "GPU-a"), ("busy_ratio",), "no counters")
    run(session, 1, not_evaluated=(silent,))
    assert only(session).status is Status.OPEN
    run(session, 2, not_evaluated=(replace(silent, subject=Subject("gpu", "GPU-b")),))
    assert only(session).status is Status.GONE


def test_a_rule_that_has_the_data_and_denies_it_ends_its_finding_with_the_reason(session: Session) -> None:
    run(session, 0, FINDING)
    denied = NotEvaluated(FINDING.rule_id, FINDING.subject, ("a habit",), "It has ended.", denies=True)
    run(session, 1, not_evaluated=(denied,))
    assert only(session).status is Status.GONE
    assert kept.events(session, only(session).id)[-1].note == "It has ended."


def test_a_rule_that_could_not_judge_anything_leaves_its_findings_open(session: Session) -> None:
    run(session, 0, FINDING)
    silent = NotEvaluated(FINDING.rule_id, Subject("fleet", "fleet"), ("price",), "no price")
    run(session, 1, not_evaluated=(silent,))
    assert only(session).status is Status.OPEN


@pytest.mark.parametrize("status", [Status.CLAIMED, Status.DISMISSED, Status.DONE])
def test_what_people_decided_stays_when_it_is_no_longer_found(session: Session, status: Status) -> None:
    run(session, 0, FINDING)
    kept.set_status(session, only(session).id, status, T0 + 1)
    run(session, 1)
    assert only(session).status is status


@pytest.mark.parametrize("status", [Status.CLAIMED, Status.DISMISSED])
def test_what_people_decided_stays_when_it_is_found_again(session: Session, status: Status) -> None:
    run(session, 0, FINDING)
    kept.set_status(session, only(session).id, status, T0 + 1, note="spare for the launch")
    run(session, 1, FINDING)
    assert (only(session).status, only(session).note) == (status, "spare for the launch")


@pytest.mark.parametrize("hours", [1, 24, 30 * 24 - 1])
def test_done_it_stays_done_while_the_days_before_still_show_it(session: Session, hours: int) -> None:
    run(session, 0, FINDING)
    kept.set_status(session, only(session).id, Status.DONE, T0 + HOUR, note="unloaded it")
    run_at(session, T0 + HOUR + hours * HOUR, FINDING)
    assert (only(session).status, only(session).note) == (Status.DONE, "unloaded it")
    assert life(session)[-1] == (Status.OPEN, Status.DONE)


def test_still_found_a_month_after_it_was_done_it_is_reopened(session: Session) -> None:
    run(session, 0, FINDING)
    kept.set_status(session, only(session).id, Status.DONE, T0 + 1, note="stopped it")
    run_at(session, T0 + 1 + 30 * DAY, FINDING)
    assert only(session).status is Status.REOPENED
    assert life(session)[-1] == (Status.DONE, Status.REOPENED)


def test_done_a_second_time_it_has_a_month_again(session: Session) -> None:
    run(session, 0, FINDING)
    kept.set_status(session, only(session).id, Status.DONE, T0 + 1)
    run(session, 31, FINDING)
    assert only(session).status is Status.REOPENED
    kept.set_status(session, only(session).id, Status.DONE, T0 + 32 * DAY)
    run(session, 33, FINDING)
    assert only(session).status is Status.DONE
    run(session, 62, FINDING)
    assert only(session).status is Status.REOPENED


def test_dismissed_it_stays_dismissed_whether_it_leaves_or_comes_back(session: Session) -> None:
    run(session, 0, FINDING)
    kept.set_status(session, only(session).id, Status.DISMISSED, T0 + 1, note="hot spare")
    for day in (1, 30, 400):
        run(session, day)
        run_at(session, T0 + day * DAY + HOUR, FINDING)
        assert only(session).status is Status.DISMISSED
    assert life(session)[-1] == (Status.OPEN, Status.DISMISSED)


@pytest.mark.parametrize("kind", ["gpu", "engine"])
def test_what_had_no_data_keeps_its_finding_open(session: Session, kind: str) -> None:
    run(session, 0, replace(FINDING, subject=Subject(kind, "a")))
    kept.record(session, Advice((), (), TOTALS), T0 + DAY, {("gpu", "b"), ("engine", "b")})
    assert only(session).status is Status.OPEN
    kept.record(session, Advice((), (), TOTALS), T0 + 2 * DAY, {(kind, "a")})
    assert only(session).status is Status.GONE


@pytest.mark.parametrize("kind", ["fleet", "host"])
def test_a_fleet_is_judged_when_any_gpu_was(session: Session, kind: str) -> None:
    run(session, 0, replace(FINDING, subject=Subject(kind, "a")))
    kept.record(session, Advice((), (), TOTALS), T0 + DAY, {("engine", "b")})
    assert only(session).status is Status.OPEN
    kept.record(session, Advice((), (), TOTALS), T0 + 2 * DAY, {("gpu", "b")})
    assert only(session).status is Status.GONE


def test_a_snooze_lasts_until_its_end(session: Session) -> None:
    run(session, 0, FINDING)
    kept.set_status(session, only(session).id, Status.SNOOZED, T0 + 1, until_ms=T0 + 2 * DAY)
    run(session, 1, FINDING)
    assert (only(session).status, only(session).snoozed_until_ms) == (Status.SNOOZED, T0 + 2 * DAY)
    run(session, 2, FINDING)
    assert (only(session).status, only(session).snoozed_until_ms) == (Status.OPEN, None)


def test_a_snooze_that_ran_out_on_a_finding_that_left_is_gone(session: Session) -> None:
    run(session, 0, FINDING)
    kept.set_status(session, only(session).id, Status.SNOOZED, T0 + 1, until_ms=T0 + DAY)
    run(session, 2)
    assert only(session).status is Status.GONE
    assert life(session)[-2:] == [(Status.SNOOZED, Status.OPEN), (Status.OPEN, Status.GONE)]


def test_every_change_by_hand_is_kept_with_its_reason(session: Session) -> None:
    run(session, 0, FINDING)
    changed = kept.set_status(session, only(session).id, Status.DISMISSED, T0 + 5, note="hot spare")
    assert changed.status is Status.DISMISSED
    last = kept.events(session, changed.id)[-1]
    assert (last.at_ms, last.before, last.status, last.note) == (
        T0 + 5,
        Status.OPEN,
        Status.DISMISSED,
        "hot spare",
    )


def test_the_list_can_be_narrowed_by_status(session: Session) -> None:
    run(session, 0, FINDING, replace(FINDING, cause="drained"))
    first, second = sorted(kept.listing(session), key=lambda item: item.id)
    kept.set_status(session, second.id, Status.CLAIMED, T0 + 1)
    assert [item.id for item in kept.listing(session, [Status.OPEN])] == [first.id]
    assert [item.id for item in kept.listing(session, [Status.CLAIMED, Status.DONE])] == [second.id]


def test_mistakes_are_sentences(session: Session) -> None:
    run(session, 0, FINDING)
    id_ = only(session).id
    assert kept.get(session, 999) is None
    with pytest.raises(StoreError, match="no recommendation 999"):
        kept.set_status(session, 999, Status.DONE, T0)
    with pytest.raises(StoreError, match="needs the time it ends"):
        kept.set_status(session, id_, Status.SNOOZED, T0)
    with pytest.raises(StoreError, match="needs the time it ends"):
        kept.set_status(session, id_, Status.DONE, T0, until_ms=T0 + 1)
    with pytest.raises(StoreError, match="in the past"):
        kept.set_status(session, id_, Status.SNOOZED, T0, until_ms=T0)


def claiming(cash_usd_month: float) -> Finding:
    return replace(FINDING, saving=Saving(cash_usd_month=Range.around(cash_usd_month, 0.1)))


@pytest.mark.parametrize(("later", "status"), [(120.0, Status.DISMISSED), (130.0, Status.REOPENED)])
def test_a_dismissed_one_returns_when_its_saving_grew_by_more_than_a_quarter(
    session: Session, later: float, status: Status
) -> None:
    run(session, 0, claiming(100.0))
    kept.set_status(session, only(session).id, Status.DISMISSED, T0 + 1, note="too small")
    run(session, 1, claiming(later))
    assert only(session).status is status
    if status is Status.REOPENED:
        note = kept.events(session, only(session).id)[-1].note or ""
        assert "since it was dismissed: cash_usd_month is 130, was 100" in note


def test_growth_is_counted_from_the_day_somebody_set_it_aside(session: Session) -> None:
    run(session, 0, claiming(100.0))
    kept.set_status(session, only(session).id, Status.DISMISSED, T0 + 1, note="too small")
    for day, figure in enumerate((110.0, 120.0, 124.0), start=1):
        run(session, day, claiming(figure))
    assert only(session).status is Status.DISMISSED
    run(session, 5, claiming(126.0))
    assert only(session).status is Status.REOPENED


def test_a_snoozed_one_returns_early_when_it_grew(session: Session) -> None:
    run(session, 0, claiming(100.0))
    kept.set_status(session, only(session).id, Status.SNOOZED, T0 + 1, until_ms=T0 + 90 * DAY)
    run(session, 1, claiming(200.0))
    assert (only(session).status, only(session).snoozed_until_ms) == (Status.REOPENED, None)


def test_another_cause_of_what_was_set_aside_opens_and_says_so(session: Session) -> None:
    run(session, 0, FINDING)
    first = only(session).id
    kept.set_status(session, first, Status.DISMISSED, T0 + 1, note="hot spare")
    run(session, 1, replace(FINDING, cause="drained"))
    (opened,) = kept.listing(session, [Status.OPEN])
    note = kept.events(session, opened.id)[0].note
    assert note == f"the cause changed since recommendation {first} was dismissed: hot spare"


def test_every_step_keeps_who_took_it(session: Session) -> None:
    run(session, 0, FINDING)
    kept.set_status(session, only(session).id, Status.CLAIMED, T0 + 5, note="on it", who="Ada")
    kept.set_status(session, only(session).id, Status.DONE, T0 + 9, who="Grace")
    assert [event.who for event in kept.events(session, only(session).id)] == [None, "Ada", "Grace"]


def test_verified_it_stays_so_while_the_days_before_still_show_it(session: Session) -> None:
    run(session, 0, FINDING)
    kept.set_status(session, only(session).id, Status.DONE, T0 + 1)
    kept.set_status(session, only(session).id, Status.VERIFIED, T0 + 15 * DAY, note="saves $10 a month")
    run(session, 16, FINDING)
    assert only(session).status is Status.VERIFIED
    run(session, 31, FINDING)
    assert only(session).status is Status.REOPENED
