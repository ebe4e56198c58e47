"""One order of findings wherever they are listed."""

from api.ranking import rank
from api.resources.advise import view_of
from core.finding import (
    Action,
    Advice,
    Effort,
    Finding,
    Grade,
    Range,
    Risk,
    Saving,
    Stake,
    Subject,
    Totals,
)

NOTHING = Totals(None, None, None, None)
FOR_FREE = Action("Do it", "nvidia-smi -pm 1")


def finding(
    name: str,
    *,
    saving: Saving | None = None,
    effort: Effort = Effort.LOW,
    actions: tuple[Action, ...] = (),
    at_stake: Stake | None = None,
) -> Finding:
    return Finding(
        rule_id=name,
        subject=Subject("gpu", "GPU-1", "GPU 0"),
        cause=name,
        title=name,
        because="",
        state="",
        confidence="",
        grade=Grade.A,
        effort=effort,
        risk=Risk.LOW,
        saving=saving or Saving(),
        evidence={},
        actions=actions,
        wrong_when="",
        at_stake=at_stake,
    )


BEST_FIRST = [
    finding("cash", saving=Saving(cash_usd_month=Range(1.0, 2.0, 3.0))),
    finding("capacity", saving=Saving(capacity_gpu_h_month=Range(1.0, 500.0, 900.0))),
    finding("energy", saving=Saving(energy_kwh_month=Range(1.0, 900.0, 1000.0))),
    finding("quick-win", actions=(FOR_FREE,)),
    finding("project", actions=(FOR_FREE,), effort=Effort.HIGH),
    finding("classification"),
]


def test_advice_lists_money_first_then_quick_wins_and_classifications_last() -> None:
    advice = Advice(tuple(reversed(BEST_FIRST)), (), NOTHING)
    assert [row.rule_id for row in view_of(advice, NOTHING, {}).recommendations] == [
        each.rule_id for each in BEST_FIRST
    ]
    assert sorted(BEST_FIRST, key=rank) == BEST_FIRST


def test_what_burns_now_stands_among_the_savings_at_its_pace() -> None:
    much = finding("much", saving=Saving(cash_usd_month=Range(1e3, 15e3, 2e4)))
    stuck = finding("stuck", at_stake=Stake(8, 20.0))  # $14,600 at 730 hours a month
    little = finding("little", saving=Saving(cash_usd_month=Range(1.0, 14e3, 2e4)))
    hours = finding("hours", saving=Saving(capacity_gpu_h_month=Range(1.0, 731.0, 900.0)))
    unpriced = finding("unpriced", at_stake=Stake(1, None))
    best = [much, stuck, little, hours, unpriced, finding("classification")]
    shuffled = [*best[3:], *best[:3]]
    assert sorted(shuffled, key=rank) == best
