"""Who held one GPU over a window: from usage hours, near also from process samples; with owner, share of time and cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from api.links import owner_path, user_path, workload_path
from api.pages.gpu_money import Paid
from api.pages.view import Address
from api.resources.report_filters import workload_text
from api.words import workload_kind
from core.readings import WorkloadKey
from store.queries.gpu_trace import Presence, Use

MOST: Final = 30
"""Lines of the table; the rest is counted below it."""
UNPAID: Final = Paid(None, ())


@dataclass(frozen=True, slots=True)
class Link:
    """Words with where they lead."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Holder:
    """One workload that held the GPU; ``kind`` in words.

    Attributes:
        href: its page. owner: the team that pays; None: unowned. user: None: unknown.
        share_ratio: of the time with samples; None: its hours are not added up yet. shared: others held a part with it.
        memory_bytes: its most (near), its mean while it held (far).
        first_ms, last_ms: seen from and to; whole hours where it is far.
    """

    name: str
    href: str
    kind: str
    owner: Link | None
    user: Link | None
    share_ratio: float | None
    active_ratio: float | None
    shared: bool
    cost_usd: Decimal | None
    memory_bytes: float | None
    first_ms: int
    last_ms: int


def holders(
    uses: Sequence[Use],
    present: Sequence[Presence],
    names: Mapping[int, WorkloadKey],
    *,
    money: Mapping[str, Paid],
    covered_s: float,
    address: Address,
) -> tuple[tuple[Holder, ...], int]:
    """The table, longest first, and how many it leaves out; ``covered_s``: time with samples that shares are of."""
    by_id = {use.workload_id: use for use in uses}
    seen = {one.workload_id: one for one in present}
    ids = [use.workload_id for use in uses] + [
        one.workload_id for one in present if one.workload_id not in by_id
    ]
    lines = [
        _holder(
            key, names[key], by_id.get(key), seen.get(key), money=money, covered_s=covered_s, address=address
        )
        for key in ids
        if key in names
    ]
    return tuple(lines[:MOST]), max(0, len(lines) - MOST)


def _holder(
    key: int,
    workload: WorkloadKey,
    use: Use | None,
    seen: Presence | None,
    *,
    money: Mapping[str, Paid],
    covered_s: float,
    address: Address,
) -> Holder:
    paid = money.get(workload_text(workload), UNPAID)
    first = seen.first_ms if seen is not None else use.first_ms if use is not None else 0
    last = seen.last_ms if seen is not None else use.last_ms if use is not None else 0
    memory = None if seen is None else seen.memory_max_bytes
    if memory is None and use is not None and use.memory_byte_s is not None and use.allocated_s > 0:
        memory = use.memory_byte_s / use.allocated_s if not use.shared else None
    return Holder(
        name=workload.name,
        href=address.link(workload_path(key)),
        kind=workload_kind(workload),
        owner=_link(address, owner_path, paid.owners[0]) if paid.owners else None,
        user=_link(address, user_path, workload.user) if workload.user else None,
        share_ratio=min(use.allocated_s / covered_s, 1.0) if use is not None and covered_s > 0 else None,
        active_ratio=min(use.active_s / use.allocated_s, 1.0)
        if use is not None and use.allocated_s > 0
        else None,
        shared=use is not None and use.shared,
        cost_usd=paid.cost_usd,
        memory_bytes=memory,
        first_ms=first,
        last_ms=last,
    )


def _link(address: Address, path: Callable[[str], str], name: str) -> Link:
    return Link(name, address.link(path(name)))
