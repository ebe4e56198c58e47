"""An owner's part of a finding's figures."""

from api.resources.owner_advice import part_of
from core.finding import Range, Saving, Stake
from tests.contract import page_fixtures as good


def test_an_owner_is_told_its_part_of_a_saving_and_of_what_is_at_stake() -> None:
    whole = good.finding(saving=Saving(cash_usd_month=Range(100, 200, 300)), at_stake=Stake(8, 20.0))
    mine = part_of(whole, 0.25)
    assert mine.saving == Saving(cash_usd_month=Range(25, 50, 75))
    assert mine.at_stake == Stake(2, 5.0)
    assert part_of(good.finding(at_stake=Stake(8, None)), 0.5).at_stake == Stake(4, None)
