"""A week of the weekly report, made of the overview's fixture."""

from dataclasses import replace

from api.resources.gpu_bills import Bill, GpuBills
from api.resources.overview_model import Overview
from api.resources.report_sum import LineSum
from api.resources.report_week import HostMoney, Week
from core.ownership import Owner
from core.units import HOUR_MS
from tests.contract import page_fixtures as good


def week_of(view: Overview | None = None, **changes: object) -> Week:
    """The fleet's week; ``changes`` replace fields."""
    shown = view or good.overview()
    bills = GpuBills(shown.window)
    for item in shown.recommendations:
        for uuid in item.finding.gpu_uuids:
            bills.add(uuid, Owner("research"), Bill(700 * HOUR_MS, 690 * HOUR_MS, 1_400_000_000, 10**9))
    money = LineSum(amounts={"cost_usd": 9_000_000, "idle_cost_usd": 4_000_000})
    base = Week(
        audience=None,
        view=shown,
        parts={},
        veiled=frozenset(),
        bills=bills,
        budgets=(),
        outlook=None,
        steps=(),
        verified=(),
        hosts=tuple(HostMoney(f"gpu-node-{i:02d}", 8, money) for i in range(1, 9)),
        labels={},
        host_of={},
        silent=(),
    )
    return replace(base, **changes)  # type: ignore[arg-type]
