"""Money rounded to what is kept of it; parts of amounts are divided in ``ledger.whole_shares``."""

from decimal import Decimal

from core.money import from_micro, to_micro


def rounded(amount: Decimal) -> Decimal:
    """An amount in whole micro-dollars, half to even."""
    return from_micro(to_micro(amount))
