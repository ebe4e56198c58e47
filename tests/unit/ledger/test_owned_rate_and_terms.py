"""What an owned hour costs, what a prepayment adds to each, what interruptions cost; and which prices stand together."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.user_price import UserPrice
from ledger.owned_rate import OwnedInputs, owned_rate
from ledger.price_changes import changes
from ledger.price_terms import SpotTerms, effective_amount, spot_effective
from ledger.prices import plain

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NODE = OwnedInputs(capex=330_000.0, gpu_count=8, maintenance_ratio=0.05, staff_per_year=18_000.0)
PRICE = UserPrice(7, "host", "h1", Decimal(2), "on_demand", None, 10 * DAY_MS)


def test_the_worked_example_of_the_cost_model() -> None:
    with_energy = owned_rate(replace(NODE, includes_energy=True, tariff_per_kwh=0.12))
    # fixed_year 126,155.22 = 88,648.79 + 37,506.43 over 8 × 8,760 hours.
    assert float(with_energy.capital_per_year) == pytest.approx(88_648.79, abs=0.005)
    assert float(with_energy.running_per_year) == pytest.approx(37_506.43, abs=0.005)
    assert with_energy.amount_per_gpu_hour == Decimal("1.800160")
    without = owned_rate(NODE)
    energy_year = with_energy.running_per_year - without.running_per_year
    assert float(energy_year) == pytest.approx(3_006.43, abs=0.005)


def test_energy_is_in_the_rate_or_not_and_it_says_so() -> None:
    assert "energy is not in the rate" in owned_rate(NODE).energy
    assert "all-in colo fee" in owned_rate(replace(NODE, colo_includes_power=True)).energy
    assert "work draws on top" in owned_rate(replace(NODE, includes_energy=True, tariff_per_kwh=0.1)).energy


@given(
    st.floats(1, 1e9),
    st.integers(1, 10_000),
    st.floats(0.25, 30),
    st.floats(0, 1),
    st.just(0.0) | st.floats(1e-6, 1),
)
def test_no_owned_hour_is_free_and_twice_the_cards_cost_half(
    capex: float, count: int, years: float, residual: float, capital: float
) -> None:
    inputs = OwnedInputs(
        capex=capex, gpu_count=count, life_years=years, residual_ratio=residual, cost_of_capital_ratio=capital
    )
    one, two = owned_rate(inputs), owned_rate(replace(inputs, gpu_count=2 * count))
    assert one.capital_per_year >= 0
    assert one.amount_per_gpu_hour > 0
    assert abs(one.amount_per_gpu_hour - 2 * two.amount_per_gpu_hour) <= Decimal("0.000002")
    assert OwnedInputs.of(inputs.by_name()) == inputs


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"capex": 0.0}, "capex is 0"),
        ({"capex": float("nan")}, "capex is nan"),
        ({"gpu_count": 8.0}, "capex is not given"),
        ({"capex": 1e5, "staff_per_year": -1.0}, "staff_per_year is -1"),
        ({"capex": 1e5, "tax": 1.0}, "tax is no input of an owned machine"),
        ({"capex": 1e5, "includes_energy": True}, "includes_energy without tariff_per_kwh"),
    ],
)
def test_a_machine_that_cannot_be_is_refused_in_our_words(inputs: dict[str, float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        OwnedInputs.of(inputs)


@given(st.integers(1, 400), st.integers(1, 5_000), st.decimals(0, 10**6, places=2))
def test_what_was_paid_upfront_comes_back_over_the_term(days: int, gpus: int, upfront: Decimal) -> None:
    price = replace(
        PRICE,
        billing="reserved",
        commitment="c",
        committed_gpus=gpus,
        upfront=upfront,
        valid_to_ms=PRICE.valid_from_ms + days * DAY_MS,
    )
    spread = (effective_amount(price) - price.amount_per_gpu_hour) * gpus * days * 24
    assert abs(spread - upfront) < Decimal("1e-12")
    assert effective_amount(PRICE) == PRICE.amount_per_gpu_hour


def test_spot_with_interruptions() -> None:
    terms = SpotTerms(interruptions_per_hour=0.1, checkpoint_h=1.0, restart_h=0.25)
    assert terms.factor == pytest.approx(1.075)
    spot = replace(PRICE, billing="spot", inputs=terms.by_name())
    assert spot_effective(spot) == Decimal("2.15")
    assert spot_effective(replace(spot, inputs=None)) is None
    with pytest.raises(ValueError, match="restart_h is -1"):
        replace(terms, restart_h=-1.0)


MOMENTS = st.integers(0, 60).map(lambda day: day * DAY_MS)


@st.composite
def _prices(draw: st.DrawFn) -> list[UserPrice]:
    found = []
    for _ in range(draw(st.integers(0, 8))):
        start = draw(MOMENTS)
        end = draw(st.none() | st.integers(1, 30))
        found.append(
            replace(
                PRICE,
                id=0,
                scope_value=draw(st.sampled_from(["h1", "h2"])),
                valid_from_ms=start,
                valid_to_ms=None if end is None else start + end * DAY_MS,
                amount_per_gpu_hour=Decimal(draw(st.integers(0, 3))),
            )
        )
    return found


@given(_prices(), _prices(), st.booleans())
def test_what_is_kept_never_overlaps_and_nothing_is_lost(
    before: list[UserPrice], given_: list[UserPrice], supersede: bool
) -> None:
    there = [replace(price, id=at + 1) for at, price in enumerate(changes([], before, supersede=False).add)]
    plan = changes(there, given_, supersede=supersede, skip_same=True)
    after = [replace(price, valid_to_ms=plan.ends.get(price.id, price.valid_to_ms)) for price in there]
    kept = [*after, *plan.add]
    assert not any(one.overlaps(other) for at, one in enumerate(kept) for other in kept[at + 1 :])
    assert len(plan.add) + len(plan.same) + len(plan.refused) == len(given_)
    assert supersede or not plan.ends


def test_a_list_of_starts_is_a_history_and_is_itself_when_it_comes_again() -> None:
    starts = [replace(PRICE, id=0, valid_from_ms=day * DAY_MS) for day in (30, 20, 25)]
    assert len(changes([], starts, supersede=False).refused) == 2
    first = changes([PRICE], starts, supersede=True, skip_same=True)
    assert first.ends == {7: 20 * DAY_MS}
    assert [price.valid_to_ms for price in first.add] == [None, 25 * DAY_MS, 30 * DAY_MS]
    there = [replace(price, id=at + 8) for at, price in enumerate(first.add)]
    again = changes(there, starts, supersede=True, skip_same=True)
    assert (len(again.same), again.add, again.ends, again.refused) == (3, [], {}, [])


def test_both_are_named_and_prepaid_ones_do_not_end_early() -> None:
    later = replace(PRICE, id=0, valid_from_ms=20 * DAY_MS)
    refused = changes([PRICE], [later], supersede=False).refused
    assert refused[0][1].startswith(
        "host h1, 2 USD, from 1970-01-21 00:00: overlaps price 7 (host h1, 2 USD, from 1970-01-11 00:00)"
    )
    assert changes([PRICE], [later], supersede=True).ends == {7: 20 * DAY_MS}
    prepaid = replace(
        PRICE,
        billing="reserved",
        commitment="c",
        committed_gpus=1,
        upfront=Decimal(1),
        valid_to_ms=90 * DAY_MS,
    )
    assert "paid upfront" in changes([prepaid], [later], supersede=True).refused[0][1]


@pytest.mark.parametrize(
    ("amount", "text"), [("2.500000", "2.5"), ("100", "100"), ("0", "0"), ("1E-7", "0.0000001")]
)
def test_figures_read_plainly(amount: str, text: str) -> None:
    assert plain(Decimal(amount)) == text
