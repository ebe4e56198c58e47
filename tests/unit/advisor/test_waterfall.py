"""The portfolio never saves more than is spent, and no GPU-hour is saved twice."""

from dataclasses import replace
from decimal import Decimal

import pytest
from advice_builders import FORTNIGHT_H, PRICE, evidence, gpu, gpu_hours
from hypothesis import given
from hypothesis import strategies as st

from advisor.model import STAGES
from advisor.rules import RULES
from advisor.waterfall import EXCHANGES, EXCLUSIVE, TAKES_AWAY, totals
from core.evidence import Evidence
from core.finding import Effort, Finding, Grade, Range, Risk, Saving, Subject

UUIDS = ("GPU-0", "GPU-1", "GPU-2")
PAYS = Decimal("2.50")
SPEND = 3 * 730 * 2.50
FLEET: Evidence = evidence([gpu(gpu_hours(FORTNIGHT_H), uuid=uuid, host=f"node-{uuid}") for uuid in UUIDS])


def claim(
    rule_id: str, stage: str, cash: Range | None, uuids: tuple[str, ...] = ("GPU-0",), **ledgers: Range
) -> Finding:
    return Finding(
        rule_id=rule_id,
        subject=Subject("gpu", uuids[0]),
        cause="x",
        title="t",
        because="b",
        state="s",
        confidence="c",
        grade=Grade.A,
        effort=Effort.LOW,
        risk=Risk.LOW,
        saving=Saving(cash, ledgers.get("capacity"), ledgers.get("energy")),
        evidence={},
        actions=(),
        wrong_when="w",
        gpu_uuids=uuids,
        stage=stage,
    )


def flat(value: float) -> Range:
    return Range(value, value, value)


def test_a_later_saving_acts_on_what_the_former_left() -> None:
    """Half of a GPU is stopped; 40 % of a GPU by tuning is then 40 % of the other half."""
    found = totals(
        FLEET, [claim("off-hours", "schedule", flat(912.5)), claim("power-cap", "clocks", flat(730))]
    )
    assert found.cash_usd_month is not None
    assert found.cash_usd_month.p50 == pytest.approx(912.5 + 0.4 * 912.5)


def test_the_order_is_that_of_the_stages_and_not_of_the_list() -> None:
    one, two = claim("off-hours", "schedule", flat(912.5)), claim("decode-clock", "clocks", flat(730))
    assert totals(FLEET, [one, two]) == totals(FLEET, [two, one])


def test_stops_on_different_hours_of_a_gpu_add_up_until_it_is_gone() -> None:
    found = totals(FLEET, [claim("empty-gpu", "stop", flat(1000)), claim("parked-model", "stop", flat(700))])
    assert found.cash_usd_month is not None
    assert found.cash_usd_month.p50 == pytest.approx(1700)
    found = totals(FLEET, [claim("empty-gpu", "stop", flat(1500)), claim("parked-model", "stop", flat(1500))])
    assert found.cash_usd_month is not None
    assert found.cash_usd_month.p50 == pytest.approx(1825)


def test_one_throughput_gain_is_not_counted_twice() -> None:
    found = totals(
        FLEET,
        [claim("small-batch", "workload", flat(900)), claim("quantization-candidate", "workload", flat(400))],
    )
    assert found.cash_usd_month is not None
    assert found.cash_usd_month.p50 == pytest.approx(900)


def test_the_precision_of_weights_and_of_the_cache_share_one_gain() -> None:
    found = totals(
        FLEET,
        [
            claim("kv-cache-precision", "workload", flat(700)),
            claim("quantization-candidate", "workload", flat(400)),
            claim("small-batch", "workload", flat(500)),
        ],
    )
    assert found.cash_usd_month == flat(700)


@pytest.mark.parametrize("rule_id", sorted(TAKES_AWAY))
def test_a_replica_that_falls_away_is_not_moved_to_a_smaller_gpu_as_well(rule_id: str) -> None:
    """In whatever ledger: hours that fall free inside a node are no money, and the node is not exchanged for them."""
    gone = claim(rule_id, "consolidate", None, capacity=flat(730))
    moved = [claim("oversized-gpu", "consolidate", flat(800), (uuid,)) for uuid in UUIDS]
    found = totals(FLEET, [gone, *moved])
    assert found.cash_usd_month == flat(1600), "GPU-1 and GPU-2"
    assert found.capacity_gpu_h_month == flat(730)
    carries_on = replace(gone, saving=Saving())
    assert totals(FLEET, [carries_on, *moved]).cash_usd_month == flat(2400)


def test_a_claim_over_several_gpus_is_spread_by_their_price() -> None:
    found = totals(
        FLEET,
        [
            claim("rent-or-buy", "price", flat(3000), UUIDS),
            claim("empty-gpu", "stop", flat(1825), ("GPU-1",)),
        ],
    )
    assert found.cash_usd_month is not None
    assert found.cash_usd_month.p50 == pytest.approx(1825 + 2000), "nothing is left of GPU-1 to save on"


def test_a_ledger_without_claims_is_none_and_not_zero() -> None:
    found = totals(FLEET, [])
    assert (found.cash_usd_month, found.capacity_gpu_h_month, found.energy_kwh_month) == (None, None, None)
    assert found.spend_usd_month == pytest.approx(SPEND)


def test_a_gap_is_spent_but_nothing_is_saved_in_it() -> None:
    holes = tuple(replace(each, hours=each.hours[::2]) for each in FLEET.gpus)
    found = totals(replace(FLEET, gpus=holes), [claim("empty-gpu", "stop", flat(1825))])
    assert found.spend_usd_month == pytest.approx(SPEND)
    assert found.cash_usd_month is not None
    assert found.cash_usd_month.p50 == pytest.approx(1825 / 2)


def test_unpriced_gpus_are_no_spend_and_carry_no_cash() -> None:
    bare = replace(FLEET, gpus=tuple(replace(each, price=None) for each in FLEET.gpus))
    found = totals(bare, [claim("empty-gpu", "stop", flat(100), capacity=flat(50))])
    assert found.spend_usd_month is None
    assert found.cash_usd_month is None
    assert found.capacity_gpu_h_month == flat(50)


def test_errors_of_different_rules_do_not_all_come_at_once() -> None:
    findings = [
        claim("empty-gpu", "stop", Range(400, 500, 600), ("GPU-0",)),
        claim("power-cap", "clocks", Range(400, 500, 600), ("GPU-1",)),
    ]
    found = totals(FLEET, findings)
    assert found.cash_usd_month is not None
    assert found.cash_usd_month.p50 == pytest.approx(1000)
    assert found.cash_usd_month.p90 == pytest.approx(1000 + 100 * 2**0.5)
    assert found.cash_usd_month.p10 == pytest.approx(1000 - 100 * 2**0.5)


def test_errors_of_one_rule_come_together() -> None:
    findings = [claim("empty-gpu", "stop", Range(400, 500, 600), (uuid,)) for uuid in UUIDS]
    found = totals(FLEET, findings)
    assert found.cash_usd_month is not None
    assert found.cash_usd_month.p90 == pytest.approx(1800)


ranges = st.tuples(*[st.floats(-500, 6_000)] * 3).map(lambda values: Range(*sorted(values)))
claims = st.builds(
    claim,
    rule_id=st.sampled_from(
        (
            "empty-gpu",
            "parked-model",
            "small-batch",
            "quantization-candidate",
            "kv-cache-precision",
            "oversized-gpu",
            "power-cap",
            "rent-or-buy",
        )
    ),
    stage=st.sampled_from(STAGES),
    cash=st.none() | ranges,
    uuids=st.lists(st.sampled_from((*UUIDS, "GPU-unknown")), min_size=1, max_size=4, unique=True).map(tuple),
    capacity=ranges,
    energy=ranges,
)


@given(st.lists(claims, max_size=12))
def test_the_total_never_exceeds_the_spend_the_hours_or_the_energy(findings: list[Finding]) -> None:
    found = totals(FLEET, findings)
    energy_kwh = sum(each.energy_j or 0 for each in FLEET.gpus) / 3.6e6 / FORTNIGHT_H * 730
    for figure, ceiling in (
        (found.cash_usd_month, SPEND),
        (found.capacity_gpu_h_month, 3 * 730),
        (found.energy_kwh_month, energy_kwh),
    ):
        if figure is not None:
            assert figure.p10 <= figure.p50 <= figure.p90 <= ceiling * (1 + 1e-9)


@given(st.lists(claims, max_size=8))
def test_the_order_of_findings_changes_nothing(findings: list[Finding]) -> None:
    forwards, backwards = totals(FLEET, findings), totals(FLEET, findings[::-1])
    for name in ("cash_usd_month", "capacity_gpu_h_month", "energy_kwh_month"):
        one, other = getattr(forwards, name), getattr(backwards, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert one.p50 == pytest.approx(other.p50, abs=1e-6)


@given(st.lists(st.floats(0, 730), min_size=1, max_size=5), st.floats(0.1, 30))
def test_money_follows_the_price(hours: list[float], rate: float) -> None:
    price = replace(PRICE, usd_per_gpu_hour=Decimal(str(round(rate, 4))))
    fleet = replace(FLEET, gpus=tuple(replace(each, price=price) for each in FLEET.gpus))
    findings = [claim("off-hours", "schedule", flat(h * round(rate, 4)), capacity=flat(h)) for h in hours]
    found = totals(fleet, findings)
    assert found.cash_usd_month is not None
    assert found.capacity_gpu_h_month is not None
    assert found.cash_usd_month.p50 == pytest.approx(found.capacity_gpu_h_month.p50 * round(rate, 4))
    assert found.spend_usd_month == pytest.approx(3 * 730 * round(rate, 4))


def test_every_rule_that_is_named_here_is_one() -> None:
    assert {*TAKES_AWAY, EXCHANGES, *frozenset().union(*EXCLUSIVE)} <= {rule.id for rule in RULES}
