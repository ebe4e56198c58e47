"""What nobody owns, by what an owner rule could ask for: user, namespace and kind of the workloads, and the GPUs' own time."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from api.resources.report_filters import namespace_of
from api.resources.report_parts import Need, parts
from api.resources.report_sum import LineSum
from api.resources.scope import Scope

AMOUNTS: Final = ("known_ms", "covered_ms", "cost_usd", "billed_energy_usd")


@dataclass(frozen=True, slots=True)
class UnownedRow:
    """Unowned GPU time that is alike. ``kind`` None: the GPUs' own, idle, a gap, or held by something unseen."""

    kind: str | None
    user: str | None
    namespace: str | None
    gpu_h: float
    cost_usd: Decimal | None


def rows(scope: Scope) -> list[UnownedRow]:
    """What no rule claims of the window, the dearest first; what has no price last."""
    sums: dict[tuple[str | None, str | None, str | None], LineSum] = {}
    need = Need(frozenset({"owner", "money", "workload"}), AMOUNTS)
    for part, amounts in parts(scope, need):
        if part.owner is not None:
            continue
        one = part.workload
        key = (None, None, None) if one is None else (one.kind, one.user, namespace_of(one))
        sums.setdefault(key, LineSum()).add(part, amounts)
    found = [
        UnownedRow(*key, gpu_h=total.hours("known_ms"), cost_usd=total.spend_usd)
        for key, total in sums.items()
        if total.hours("known_ms") > 0
    ]
    return sorted(found, key=lambda row: (row.cost_usd is None, -(row.cost_usd or 0), -row.gpu_h))
