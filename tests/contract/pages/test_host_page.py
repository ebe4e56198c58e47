"""A host's page rendered from values: its sentence, its strips and their table, and that names are only names."""

from dataclasses import replace
from decimal import Decimal

import pytest

from api.pages import host, host_heat
from api.pages.view import Address
from api.resources.fleet_rows import FleetGpu
from api.resources.host_detail import HostDetail, HostUse
from api.resources.report_sum import LineSum
from api.templating import render
from core.activity import Activity
from core.evidence import Price, Window
from core.ownership import HostFacts
from core.quarters import QUARTER_MS
from core.samples import GpuEvent
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from store.queries.gpu_heat import Step
from tests.contract import page_fixtures as good
from tests.contract.pages import fleet_fixtures as some

WEEK = Window(good.WINDOW.to_ms - 7 * DAY_MS, good.WINDOW.to_ms)
GPUS = tuple(some.gpu(2, index) for index in range(4))


def money(cost: int = 8_640, idle: int = 3_960) -> LineSum:
    """Four GPUs over the period; in dollars."""
    amounts = {
        "known_ms": 4 * 30 * DAY_MS,
        "covered_ms": 4 * 30 * DAY_MS,
        "allocated_ms": 4 * 30 * DAY_MS,
        "active_ms": 65 * DAY_MS,
        "energy_mj": 800_000_000,
        "energy_method": "counter",
        "cost_usd": cost * 1_000_000,
        "idle_cost_usd": idle * 1_000_000,
        "parked_usd": idle * 1_000_000,
        "memory_bound_ms": 65 * DAY_MS,
        "parked_ms": 55 * DAY_MS,
    }
    return LineSum("held", amounts, kinds={"workload"})


def detail(**changes: object) -> HostDetail:
    base = HostDetail(
        host="gpu-node-03",
        gpus=GPUS,
        whole=money(),
        uses=(
            HostUse("pod:ml/embed", "embed · pod in ml", money()),
            HostUse(None, "not held", money(100, 100)),
        ),
        teams=(("research", money()),),
        machine=None,
        facts=HostFacts("gpu-node-03", cluster="hall-1", labels=(("rack", "a2"),)),
        prices=((Price(Decimal("2.99"), "your price", "on_demand", 1, "2025-11-01", from_user=True), 4),),
        drivers=("580.95.05",),
        events=(
            (GPUS[0], GpuEvent("GPU-8", good.NOW_MS - HOUR_MS, "xid", "Xid 79: fallen off the bus", 79)),
        ),
        advice=(good.recommendation(2),),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def heat(what: str = "activity", gpus: tuple[FleetGpu, ...] = GPUS, **told: float | None) -> host_heat.Heat:
    metric, grid = host_heat.METRICS[what], host_heat.grid_of(WEEK)
    if metric.column:
        steps = [
            Step(gpus[0].now.id, grid.first_ms, 350.0),
            Step(gpus[0].now.id, grid.first_ms + HOUR_MS, None),
        ]
        cells = host_heat.value_cells(gpus, metric, steps) if what == "power" else {}
    else:
        cells = host_heat.activity_cells(
            {(gpus[0].now.id, grid.first_ms): {Activity.PARKED: 3000.0, Activity.MEMORY_BOUND: 600.0}}
        )
    machine = {grid.first_ms: told} if told else {}
    return host_heat.heat_of(
        gpus, metric, grid, cells, machine, title="What it shows", link=lambda uuid: f"/gpus/{uuid}"
    )


def html(found: HostDetail | None = None, drawn: host_heat.Heat | None = None, what: str = "activity") -> str:
    frame = good.frame("fleet", title="gpu-node-03")
    page = host.page_of(
        found or detail(), drawn or heat(what), frame, address=Address("/hosts/gpu-node-03"), what=what
    )
    return render("pages/host.html", page)


def test_the_sentence_says_what_of_the_money_did_nothing() -> None:
    assert "<bdi>gpu-node-03</bdi>: 46\xa0% of $8,640 bought hours in which nothing ran" in html()
    assert "$8,640 bought hours of work" in html(detail(whole=money(idle=0)))


def test_a_host_without_a_price_speaks_of_work() -> None:
    text = html(detail(whole=LineSum(), prices=((None, 4),), teams=(), uses=()))
    assert "0 of 4 GPUs work, 4 do nothing" in text
    assert "no price known" in text
    assert "Nothing is known to have held a GPU" in text


def test_a_cell_is_the_activity_with_most_of_its_time_and_the_table_says_the_same() -> None:
    text = html()
    assert '<rect class="a-parked" x="0" width="1"' in text
    table = text.partition('class="heat-table"')[2].partition("</table>")[0]
    assert table.count("<tr>") == 1 + 7 * 24
    assert "<td>parked</td><td>–</td><td>–</td><td>–</td>" in table


def test_shades_say_what_full_stands_for_and_unknown_stays_blank() -> None:
    text = html(drawn=heat("power"), what="power")
    assert text.count('<rect class="h-4" x="0"') == 1, "350 W of 700 W"
    assert "<span>700\xa0W" in text
    assert text[text.index('class="heatrows"') : text.index("heataxis")].count("<rect") == 1


def test_a_title_says_what_the_strips_show() -> None:
    seconds = [{Activity.PARKED: 60.0}, {Activity.MEMORY_BOUND: 30.0, Activity.PARKED: 30.0}]
    assert host_heat.activity_title(seconds) == "Parked for 75\xa0% of the time seen"
    power = host_heat.METRICS["power"]
    steps = [Step(1, 0, 300.0), Step(1, HOUR_MS, None), Step(2, 0, 100.0)]
    assert host_heat.value_title(power, steps) == "200\xa0W a GPU on average"
    assert host_heat.value_title(power, []) == "Power"


def test_missing_counters_are_named() -> None:
    assert "profiling counters" in html(drawn=heat("sm"), what="sm")


def test_the_machines_own_figures_stand_below_its_gpus() -> None:
    text = html(drawn=heat(cpu_busy_ratio=0.4, cpu_busiest_ratio=None, iowait_ratio=None))
    assert "Processors busy" in text
    assert "Waiting for disk" not in text


def test_long_periods_have_coarser_cells_and_never_more_than_a_screen_shows() -> None:
    for days in (1, 2, 7, 30, 90, 365, 1095):
        grid = host_heat.grid_of(Window(good.WINDOW.to_ms - days * DAY_MS, good.WINDOW.to_ms))
        assert 24 <= grid.count <= host_heat.MOST_CELLS == 200
        assert grid.window.from_ms <= good.WINDOW.to_ms - days * DAY_MS
        assert grid.window.to_ms >= good.WINDOW.to_ms
    assert host_heat.grid_of(WEEK).step_ms == HOUR_MS


@pytest.mark.parametrize("offset_ms", [0, 7 * MINUTE_MS, 59 * MINUTE_MS])
def test_up_to_two_days_have_a_cell_a_quarter_hour(offset_ms: int) -> None:
    to_ms = good.WINDOW.to_ms + offset_ms
    for hours in (1, 24, 48):
        grid = host_heat.grid_of(Window(to_ms - hours * HOUR_MS, to_ms))
        assert grid.step_ms == QUARTER_MS
        assert grid.count in {4 * hours, 4 * hours + 1}
    assert host_heat.grid_of(Window(to_ms - 72 * HOUR_MS, to_ms)).step_ms == HOUR_MS


def test_hours_that_are_shown_whole_are_said() -> None:
    assert "shown whole" in html(drawn=replace(heat(), whole_hours=True))
    assert "shown whole" not in html()


def test_users_events_facts_and_advice_are_there_with_their_links() -> None:
    text = html()
    assert 'href="/workloads/pod%3Aml%2Fembed"' in text
    assert "nobody known (not held)" in text
    assert 'href="/owners/research"' in text
    assert "Xid 79" in text
    assert 'href="/recommendations/2"' in text
    assert 'href="/fleet?label=rack%3Da2"' in text
    assert "your price" in text


@pytest.mark.parametrize("name", [None, good.HOSTILE])
def test_names_are_only_names(name: str | None) -> None:
    hostile = good.HOSTILE
    gpus = (some.gpu(now={"host": name, "model": hostile}),)
    text = html(
        detail(
            host=name,
            gpus=gpus,
            facts=HostFacts(name or "", cluster=hostile, labels=((hostile, hostile),)),
            uses=(HostUse(hostile, hostile, money()),),
            teams=((hostile, money()),),
            drivers=(hostile,),
            events=((gpus[0], GpuEvent("GPU-0", good.NOW_MS, hostile, hostile, None)),),
        ),
        heat(gpus=gpus),
    )
    assert "<script>alert" not in text
    assert "alert(1)" in text
    assert "\u202e" not in text
    assert ("GPUs of no known host" in text) == (name is None)


def test_runs_of_one_program_are_one_line_that_leads_to_them() -> None:
    uses = tuple(HostUse(f"process:n/{n}", "train.py · process", money()) for n in range(3))
    text = html(detail(uses=uses))
    assert text.count("train.py · process") == 1
    assert "3 runs" in text
    assert "name=train.py" in text
    assert "by=run" in text
