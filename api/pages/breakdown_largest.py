"""The largest GPUs or hosts of a long table: told from sums of GPUs, so that only their lines are read in full."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Final

from api.resources.by import By
from api.resources.gpu_totals import gpu_totals
from api.resources.report_filters import Filters
from api.resources.report_sum import LineSum, merged
from api.resources.scope import Scope
from store.known import known_gpus

MOST_ROWS: Final = 50
"""A table shows so many; the rest is in the file."""
AT_ONCE: Final = frozenset({By.HOST, By.MODEL, By.ENGINE, By.ACTIVITY, By.USER, By.NAMESPACE})
"""Groups of lines of single GPUs or workloads: read by time once, rather than once by themselves and again by time."""


def largest(
    scope: Scope, by: By, filters: Filters, figure: Callable[[LineSum], Decimal | float | None]
) -> tuple[Filters, int] | None:
    """Filters that keep the largest groups only, and how many they leave out; None: all are to be read.

    A thousand GPUs over 90 days: a sum for each takes a quarter of the time of all their lines by price and place.
    """
    only = filters.only(scope.session)
    if by not in {By.GPU, By.HOST} or any(
        keys is not None for keys in (only.teams, only.workload_ids, only.projects)
    ):
        return None
    names = {
        gpu.id: gpu.identity.gpu_uuid if by is By.GPU else gpu.identity.host
        for gpu in known_gpus(scope.session.connection(), only.gpu_ids)
    }
    if None in names.values() or len(set(names.values())) <= MOST_ROWS:
        return None
    sums: dict[str, list[LineSum]] = defaultdict(list)
    for gpu_id, total in gpu_totals(scope, only.gpu_ids).items():
        amounts = {"cost_usd": total.cost_micro, "energy_mj": total.energy_mj}
        known = {name: value for name, value in amounts.items() if value is not None}
        sums[names[gpu_id] or ""].append(LineSum(amounts=known, paid_usd=total.paid_micro))
    sizes = {name: figure(merged(of)) for name, of in sums.items()}
    ranked = sorted(sizes, key=lambda name: (-float(sizes[name] or 0), name))
    kept = tuple(ranked[:MOST_ROWS])
    narrowed = replace(filters, gpu=kept) if by is By.GPU else replace(filters, host=kept)
    return narrowed, len(ranked) - len(kept)
