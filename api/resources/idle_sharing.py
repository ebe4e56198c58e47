"""Idle cost of GPUs that nobody owns, shared out to those who use the fleet (cost-model 5).

Accounting day by accounting day (a day of which the window holds a part: that part), among the groups that held GPUs on
that day: so a longer window is the sum of its days, and nobody pays for a day before they came. A day on which nobody
held any stays where it is. Only idle lines are shared out: what is unknown (gaps, unknown holders) stays said as such.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from api.resources.by import TIMES, By, Keys
from api.resources.report_parts import Amounts, Part
from api.resources.report_sum import LineSum, Sums
from core.errors import UsageError
from ledger.whole_shares import split_whole


class IdlePolicy(StrEnum):
    """What becomes of the idle cost of GPUs that nobody owns."""

    KEEP = "keep"
    EVEN = "even"
    PROPORTIONAL = "proportional"


SHARED_BY: Final = (By.OWNER, By.PROJECT, By.COST_CENTRE, By.WORKLOAD, By.USER, By.NAMESPACE)
MOVED: Final = ("cost_usd", "idle_cost_usd", "billed_energy_usd")
Key = tuple[str | None, ...]


@dataclass(slots=True)
class Sharing:
    """Notes lines of a report, and then moves cost between its groups.

    Raises:
        UsageError: groups that are no tenants.
    """

    keys: Keys
    policy: IdlePolicy
    _pools: dict[tuple[int, Key], dict[str, int]] = field(init=False, default_factory=dict)
    _used: defaultdict[tuple[int, str | None], defaultdict[Key, int]] = field(
        init=False, default_factory=lambda: defaultdict(lambda: defaultdict(int))
    )

    def __post_init__(self) -> None:
        fits = self.keys[0] in SHARED_BY and all(key in TIMES for key in self.keys[1:])
        if not fits:
            names = ", ".join(SHARED_BY)
            raise UsageError(
                f"idle is {self.policy} and by is {','.join(self.keys)}: idle cost is shared out by one of {names}, "
                "with a length of time as the second key"
            )

    def note(self, key: Key, part: Part, amounts: Amounts) -> None:
        """A part of the report, with its keys."""
        if part.rate is None:
            return
        at = part.at_ms or 0
        if key[0] is None:
            if part.kind == "idle":
                pool = self._pools.setdefault((at, key), dict.fromkeys(MOVED, 0))
                for name in MOVED:
                    pool[name] += amounts.get(name) or 0
            return
        cost = (amounts.get("cost_usd") or 0) + (amounts.get("billed_energy_usd") or 0)
        self._used[at, _time(key)][key] += cost

    def apply(self, sums: Sums) -> None:
        """Move what was noted."""
        for (at, nobody), pool in self._pools.items():
            used: dict[Key, int] = self._used.get((at, _time(nobody)), defaultdict(int))
            groups = sorted((key for key, cost in used.items() if cost > 0), key=str)
            if not groups:
                continue
            weights = [1 if self.policy is IdlePolicy.EVEN else used[key] for key in groups]
            for name, total in pool.items():
                for key, share in zip(groups, split_whole(total, weights), strict=True):
                    _move(sums[nobody], sums[key], name, share)


def _time(key: Key) -> str | None:
    return key[1] if len(key) > 1 else None


def _move(taken: LineSum, given: LineSum, name: str, micro: int) -> None:
    if not micro:
        return
    for one, amount in ((taken, -micro), (given, micro)):
        if name == "billed_energy_usd":
            one.paid_usd += amount
        else:
            one.amounts[name] = one.whole(name) + amount
        if name != "idle_cost_usd":
            one.shared_usd += amount
