"""One host over a window: its GPUs, who used them, what is said of the machine, its price, its events and advice."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from api.resources.by import By
from api.resources.fleet_rows import WAITING, FleetGpu, FleetHost, read_fleet
from api.resources.pricing import price_lookup, spec_of
from api.resources.report import Question, report
from api.resources.report_filters import Filters
from api.resources.report_parts import ENERGY, MONEY, SPENT_USD, USAGE
from api.resources.report_sum import LineSum, merged
from api.resources.scope import Scope
from core.errors import NotFoundError
from core.evidence import Price
from core.ownership import HostFacts
from core.samples import GpuEvent
from store.known import known_gpus
from store.queries import host_samples, recommendations
from store.queries.events import gpu_events
from store.queries.host_facts import host_facts
from store.queries.host_samples import AgentHost
from store.queries.recommendations import Recommendation

AMOUNTS: Final = tuple(dict.fromkeys([*MONEY, *USAGE, *ENERGY, *SPENT_USD]))
MOST_ADVICE: Final = 5
"""Findings that are shown with their evidence; the rest is a link away."""


@dataclass(frozen=True, slots=True)
class HostUse:
    """What one workload had of the host; ``key`` as ``by=workload`` has it, None: nobody known."""

    key: str | None
    label: str
    total: LineSum


@dataclass(frozen=True, slots=True)
class HostDetail:
    """One host.

    Attributes:
        host: its name; None: GPUs of no known host. gpus: those known in the window.
        whole: its window in money, time and energy. uses: most expensive first. teams: who paid, by cost.
        machine: as its agent describes it; None: no agent. facts: what is said of it.
        prices: in force now, with how many GPUs have them; None among them: unpriced. drivers: of its GPUs.
        events: of its GPUs in the window. advice: what waits for somebody, the best first.
    """

    host: str | None
    gpus: tuple[FleetGpu, ...]
    whole: LineSum
    uses: tuple[HostUse, ...]
    teams: tuple[tuple[str | None, LineSum], ...]
    machine: AgentHost | None
    facts: HostFacts
    prices: tuple[tuple[Price | None, int], ...]
    drivers: tuple[str, ...]
    events: tuple[tuple[FleetGpu, GpuEvent], ...]
    advice: tuple[Recommendation, ...]

    @property
    def group(self) -> FleetHost:
        """Its GPUs together."""
        return FleetHost(self.host, self.gpus)


def host_detail(scope: Scope, host: str | None) -> HostDetail:
    """One host, or (None) the GPUs whose host no source names.

    Raises:
        NotFoundError: nobody knows a host of that name.
    """
    session = scope.session
    gpus = read_fleet(scope, host or "")
    machine = None
    if host is not None:
        machine = next(iter(host_samples.hosts(session, host)), None)
        if machine is None:
            raise NotFoundError(f"no host is called {host[:80]!r}: the fleet page lists them")
    uuids = tuple(gpu.now.gpu_uuid for gpu in gpus)
    filters = Filters(gpu=uuids)
    by_workload = (
        report(scope, Question((By.WORKLOAD,), AMOUNTS, money=True, filters=filters)) if gpus else {}
    )
    by_owner = report(scope, Question((By.OWNER,), AMOUNTS, money=True, filters=filters)) if gpus else {}
    heads = FleetHost(host, tuple(gpus)).advice[:MOST_ADVICE]
    found = recommendations.several(session, [head.id for head in heads])
    of_uuid = {gpu.now.gpu_uuid: gpu for gpu in gpus}
    happened = gpu_events(session, scope.window, uuids) if gpus else []
    known = {one.identity.gpu_uuid: one.identity for one in known_gpus(session.connection(), _ids(gpus))}
    prices = price_lookup(session, scope.settings)
    in_force: dict[Price | None, int] = {}
    for identity in known.values():
        spec = spec_of(identity)
        price = prices(identity, None if spec is None else spec.gpu_key, scope.now_ms)
        in_force[price] = in_force.get(price, 0) + 1
    return HostDetail(
        host=host,
        gpus=tuple(gpus),
        whole=merged(by_owner.values()),
        uses=tuple(
            sorted((HostUse(key[0], one.label, one) for key, one in by_workload.items()), key=_dearest)
        ),
        teams=tuple(
            sorted(
                ((key[0], one) for key, one in by_owner.items()), key=lambda pair: -(pair[1].spend_usd or 0)
            )
        ),
        machine=machine,
        facts=host_facts(session).get(host or "", HostFacts(host or "")),
        prices=tuple(in_force.items()),
        drivers=tuple(sorted({one.driver_version for one in known.values() if one.driver_version})),
        events=tuple((of_uuid[event.gpu_uuid], event) for event in happened),
        advice=tuple(rec for rec in found if rec.status in WAITING),
    )


def _ids(gpus: Sequence[FleetGpu]) -> list[int]:
    return [gpu.now.id for gpu in gpus]


def _dearest(use: HostUse) -> tuple[Decimal, float]:
    return -(use.total.spend_usd or Decimal(0)), -use.total.hours("known_ms")
